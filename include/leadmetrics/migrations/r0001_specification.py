"""The specification's tables, the queue's guard, and the outbox of notifications; made, or taken over."""

from __future__ import annotations

from datetime import timedelta

from alembic import op
from sqlalchemy import (
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    insert,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.schema import CreateIndex

from include.adoption import Adoption
from include.columns import (
    Word,
    baseline_table,
    findings_table,
    identity,
    instant,
    metadata,
    one_of,
    stamp,
)
from include.queues.schema import audit_table, claim_columns, guard_statements, queue_indexes
from include.queues.table import QueueTable, Words

revision = "0001"
down_revision = None

_TASK_QUEUE = QueueTable(
    name="scheduled_task",
    words=Words(due="pending", claimed="running", done="completed", failed="failed"),
    due="scheduledAt",
    again="dueAgainAt",
    error="errorMessage",
    channel="leadmetrics_scheduled_tasks",
    key_type="text",
    kind="taskType",
    started="updatedAt",
    updated="updatedAt",
    dedupe="dedupeKey",
    delays=(),
    lost_delays=(0,),
    attempt_limit=3,
    lost_after=timedelta(minutes=2),
)

_TABLES = metadata()
_BASELINE = baseline_table(_TABLES)
findings_table(_TABLES)
audit_table(_TABLES)

_SCHEDULED_TASK = Table(
    "scheduled_task",
    _TABLES,
    Column("id", Text, primary_key=True, server_default=text("(gen_random_uuid())::text")),
    Column("taskType", Text, nullable=False),
    Column("payload", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("status", Word, nullable=False, server_default="pending"),
    stamp("scheduledAt"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    instant("completedAt"),
    Column("errorMessage", Text),
    stamp("createdAt"),
    stamp("updatedAt"),
    Column("dedupeKey", Text),
    instant("dueAgainAt"),
    *claim_columns(),
    UniqueConstraint("dedupeKey"),
    one_of("status", ("pending", "running", "completed", "failed")),
    Index(
        "ix_scheduled_task_failed",
        "updatedAt",
        postgresql_where=text("status = 'failed'"),
    ),
    info={"written": True},
)

Table(
    "registration_session",
    _TABLES,
    Column("id", Text, primary_key=True, server_default=text("(gen_random_uuid())::text")),
    Column("email", Text),
    Column("currentStage", Word, nullable=False, server_default="step_1"),
    stamp("createdAt"),
    stamp("updatedAt"),
)

Table(
    "notification_outbox",
    _TABLES,
    identity(),
    Column("dedupe_key", Text, nullable=False),
    Column("tenant_id", Text, nullable=False),
    Column("template_slug", Text, nullable=False),
    Column("recipient", Text, nullable=False),
    Column("data", JSONB, nullable=False),
    Column("task_id", Text),
    stamp("due_at"),
    Column("status", Word, nullable=False, server_default="pending"),
    Column("sink", Word),
    instant("begun_at"),
    Column("batch_id", Uuid),
    instant("finished_at"),
    Column("provider_message_id", Text),
    Column("error", Text),
    stamp("created_at"),
    UniqueConstraint("dedupe_key"),
    one_of("status", ("pending", "queued", "sent", "failed", "cancelled", "unknown")),
    one_of("sink", ("redis", "email")),
    Index(
        "ix_notification_outbox_pending",
        "due_at",
        "dedupe_key",
        postgresql_where=text("status = 'pending'"),
    ),
)

Table(
    "notification_attempts",
    _TABLES,
    Column("batch_id", Uuid, primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("notification_id", Uuid, ForeignKey("notification_outbox.id", ondelete="CASCADE"), nullable=False),
    Column("message", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    stamp("claimed_at"),
    instant("begun_at"),
    Column("outcome", Word),
    Column("reason", Text),
    Column("provider_message_id", Text),
    instant("answered_at"),
    one_of("outcome", ("accepted", "rejected", "deferred", "unknown")),
    Index("ix_notification_attempts_notification", "notification_id"),
    Index("ix_notification_attempts_open", "batch_id", postgresql_where=text("outcome IS NULL")),
)

Table(
    "notification_pause",
    _TABLES,
    Column("service", Text, primary_key=True),
    instant("paused_until", required=True),
    Column("reason", Text, nullable=False),
)


# The one place that knows the delays: an application calls these in its own transaction, and so does the platform.
_ENQUEUE_REMINDERS = """
CREATE OR REPLACE FUNCTION enqueue_signup_reminders(session_id text, name text DEFAULT NULL) RETURNS integer
LANGUAGE sql AS $$
    WITH enqueued AS (
        INSERT INTO scheduled_task (id, "taskType", payload, "scheduledAt", "updatedAt", "dedupeKey")
        SELECT gen_random_uuid()::text, t.kind,
               jsonb_strip_nulls(jsonb_build_object('sessionId', session_id, 'name', name)),
               now() + t.delay, now(), t.kind || '__' || session_id
        FROM (VALUES
            ('signup.reminder.early', interval '1 hour'),
            ('signup.reminder.late', interval '24 hours')
        ) AS t (kind, delay)
        ON CONFLICT ("dedupeKey") DO NOTHING
        RETURNING 1
    )
    SELECT count(*)::integer FROM enqueued
$$
"""
_ENQUEUE_ALERT = """
CREATE OR REPLACE FUNCTION enqueue_signup_alert(
    session_id text, email text, name text DEFAULT NULL, company_name text DEFAULT NULL
) RETURNS integer
LANGUAGE sql AS $$
    WITH enqueued AS (
        INSERT INTO scheduled_task (id, "taskType", payload, "scheduledAt", "updatedAt", "dedupeKey")
        VALUES (
            gen_random_uuid()::text, 'signup.alert.internal',
            jsonb_strip_nulls(jsonb_build_object(
                'sessionId', session_id, 'email', email, 'name', name, 'companyName', company_name
            )),
            now(), now(), 'signup.alert.internal__' || session_id
        )
        ON CONFLICT ("dedupeKey") DO NOTHING
        RETURNING 1
    )
    SELECT count(*)::integer FROM enqueued
$$
"""


def upgrade() -> None:
    """Make or adopt the tables, then what the engine's claims and guards need; on a database in use, note when."""
    adoption = Adoption(op.get_context(), "leadmetrics", revision, _TABLES)
    adoption.run()
    for index in queue_indexes(_TASK_QUEUE):
        _SCHEDULED_TASK.append_constraint(index)
        op.execute(CreateIndex(index, if_not_exists=True))
    for statement in guard_statements(_TASK_QUEUE):
        op.execute(statement)
    op.execute(_ENQUEUE_REMINDERS)
    op.execute(_ENQUEUE_ALERT)
    if adoption.had_rows:
        op.execute(insert(_BASELINE).values(name="adoption"))
