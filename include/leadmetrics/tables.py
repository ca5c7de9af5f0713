"""LeadMetrics' tables as the newest migration leaves them.

The application owns `scheduled_task` and `registration_session`: their columns have Prisma's names, which SQL
must quote, and their ids are text. In an adopted database a status or a stage may be an enum type; a statement
compares it with words. What the platform adds has names in small letters.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import (
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

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
from include.queues.engine import Queue
from include.queues.schema import audit_table, claim_columns, queue_indexes
from include.queues.table import QueueTable, Words

TASK_STATUSES = ("pending", "running", "completed", "failed")
NOTIFICATION_STATUSES = ("pending", "queued", "sent", "failed", "cancelled", "unknown")
SINKS = ("redis", "email")
ATTEMPT_OUTCOMES = ("accepted", "rejected", "deferred", "unknown")

CHANNEL = "leadmetrics_scheduled_tasks"
"""What the database notifies when tasks fall due."""

METADATA = metadata()

TASK_QUEUE = QueueTable(
    name="scheduled_task",
    words=Words(due="pending", claimed="running", done="completed", failed="failed"),
    due="scheduledAt",
    # Reminders are known by their hour, so a second claim waits for an instant of its own.
    again="dueAgainAt",
    error="errorMessage",
    channel=CHANNEL,
    key_type="text",
    kind="taskType",
    # A claim of the application's own scheduler has no heartbeat: it counts from the row's last change.
    started="updatedAt",
    updated="updatedAt",
    dedupe="dedupeKey",
    # No delays: a failure is final. A lost claim is no failure.
    delays=(),
    lost_delays=(0,),
    attempt_limit=3,
    lost_after=timedelta(minutes=2),
)

SCHEDULED_TASK = Table(
    "scheduled_task",
    METADATA,
    Column("id", Text, primary_key=True, server_default=text("(gen_random_uuid())::text")),
    # Not a list of words: one that the platform does not know fails, and says so.
    Column("taskType", Text, nullable=False),
    Column("payload", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("status", Word, nullable=False, server_default="pending"),
    stamp("scheduledAt"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    instant("completedAt"),
    Column("errorMessage", Text),
    stamp("createdAt"),
    stamp("updatedAt"),
    # One task for ever; null for a task that may come twice.
    Column("dedupeKey", Text),
    instant("dueAgainAt"),
    *claim_columns(),
    UniqueConstraint("dedupeKey"),
    one_of("status", TASK_STATUSES),
    *queue_indexes(TASK_QUEUE),
    Index(
        "ix_scheduled_task_failed",
        "updatedAt",
        postgresql_where=text("status = 'failed'"),
    ),
)

REGISTRATION_SESSION = Table(
    "registration_session",
    METADATA,
    Column("id", Text, primary_key=True, server_default=text("(gen_random_uuid())::text")),
    Column("email", Text),
    # step_1 to step_4, complete; an application may have others.
    Column("currentStage", Word, nullable=False, server_default="step_1"),
    stamp("createdAt"),
    stamp("updatedAt"),
)

NOTIFICATION_OUTBOX = Table(
    "notification_outbox",
    METADATA,
    identity(),
    # Unique for ever: BullMQ forgets.
    Column("dedupe_key", Text, nullable=False),
    # The registration's session: there is no account yet.
    Column("tenant_id", Text, nullable=False),
    Column("template_slug", Text, nullable=False),
    Column("recipient", Text, nullable=False),
    # What the notification's job holds, as it goes to the queue and into the template.
    Column("data", JSONB, nullable=False),
    Column("task_id", Text),
    # When its task was due: the oldest goes out first.
    stamp("due_at"),
    Column("status", Word, nullable=False, server_default="pending"),
    # Where it goes, from the moment that it may be there.
    Column("sink", Word),
    instant("begun_at"),
    # The batch of mail that holds it.
    Column("batch_id", Uuid),
    instant("finished_at"),
    Column("provider_message_id", Text),
    Column("error", Text),
    stamp("created_at"),
    UniqueConstraint("dedupe_key"),
    one_of("status", NOTIFICATION_STATUSES),
    one_of("sink", SINKS),
    Index(
        "ix_notification_outbox_pending",
        "due_at",
        "dedupe_key",
        postgresql_where=text("status = 'pending'"),
    ),
    Index(
        "ix_notification_outbox_standing",
        "status",
        "sink",
        postgresql_where=text("status IN ('pending', 'unknown')"),
    ),
)

NOTIFICATION_ATTEMPTS = Table(
    "notification_attempts",
    METADATA,
    Column("batch_id", Uuid, primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("notification_id", Uuid, ForeignKey("notification_outbox.id", ondelete="CASCADE"), nullable=False),
    # As include.stored_message packs it: JSON that gives the message byte for byte as claimed.
    Column("message", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    stamp("claimed_at"),
    # From then on the provider may have it.
    instant("begun_at"),
    Column("outcome", Word),
    Column("reason", Text),
    Column("provider_message_id", Text),
    instant("answered_at"),
    one_of("outcome", ATTEMPT_OUTCOMES),
    Index("ix_notification_attempts_notification", "notification_id"),
    Index("ix_notification_attempts_open", "batch_id", postgresql_where=text("outcome IS NULL")),
)

NOTIFICATION_PAUSE = Table(
    "notification_pause",
    METADATA,
    # The connection that wants to be left alone until then.
    Column("service", Text, primary_key=True),
    instant("paused_until", required=True),
    Column("reason", Text, nullable=False),
)

QUEUE_AUDIT = audit_table(METADATA)

BASELINE = baseline_table(METADATA)

ADOPTION_FINDINGS = findings_table(METADATA)

TASKS = Queue(TASK_QUEUE)
