"""`job_queue` becomes a queue of the engine's; `claim_next_job()` keeps to its batches and says who claims."""

from __future__ import annotations

from datetime import timedelta

from alembic import op
from sqlalchemy import Column, Index, Integer, Table, Text, Uuid, insert, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.schema import CreateIndex

from include.adoption import Adoption
from include.columns import findings_table, identity, instant, metadata
from include.queues.schema import audit_table, claim_columns, guard_statements, queue_indexes
from include.queues.table import QueueTable, Words, doubling

revision = "0002"
down_revision = "0001"

_JOBS = QueueTable(
    name="job_queue",
    words=Words(
        due="pending", claimed="processing", done="completed", failed="failed", cancelled="cancelled"
    ),
    due="next_run_at",
    error="last_error",
    channel="arcvest_jobs",
    max_attempts="max_attempts",
    priority="priority",
    stage="correlation_id",
    kind="job_type",
    started="started_at",
    finished="completed_at",
    delays=doubling(30, 3600, 9),
    attempt_limit=5,
    lost_after=timedelta(minutes=10),
    moves=frozenset({("processing", "cancelled")}),
    people_may=frozenset({"cancel", "retry", "requeue"}),
)

_TABLES = metadata()
_FINDINGS = findings_table(metadata())

_JOB_QUEUE = Table(
    "job_queue",
    _TABLES,
    identity(),
    Column("job_type", Text),
    Column("payload", JSONB),
    Column("priority", Integer),
    Column("correlation_id", Uuid),
    instant("next_run_at"),
    instant("completed_at"),
    *claim_columns(),
    Index("ix_job_queue_failed", "completed_at", postgresql_where=text("status = 'failed'")),
)
Table("scan_state", _TABLES, Column("source", Text, primary_key=True), Column("position", Text))
audit_table(_TABLES)

_OF_IDEA = Index(
    "ix_job_queue_idea",
    text("(payload ->> 'idea_id')"),
    postgresql_where=text("job_type = 'process_pipeline'"),
)

# As before, but a batch keeps its order, and the row says who holds it. No heartbeat comes from this claimer,
# so started_at counts.
_CLAIM = """
CREATE OR REPLACE FUNCTION claim_next_job(p_worker_id TEXT DEFAULT 'default') RETURNS SETOF job_queue
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    UPDATE job_queue
    SET status = 'processing', started_at = now(), attempts = attempts + 1,
        claimed_by = p_worker_id, heartbeat_at = NULL
    WHERE id = (
        SELECT q.id FROM job_queue AS q
        WHERE q.status = 'pending'
          AND q.next_run_at <= now()
          AND NOT EXISTS (
              SELECT FROM job_queue AS s
              WHERE s.correlation_id = q.correlation_id
                AND s.status IN ('pending', 'processing')
                AND s.priority > q.priority
          )
        ORDER BY q.priority DESC, q.next_run_at ASC
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    )
    RETURNING *;
END
$$
"""


def upgrade() -> None:
    """Make the columns and the audit trail, then what the engine's claims and guards need."""
    Adoption(op.get_context(), "arcvest", revision, _TABLES).run()
    op.drop_column("scan_state", "watermark")
    for index in (*queue_indexes(_JOBS), _OF_IDEA):
        _JOB_QUEUE.append_constraint(index)
        op.execute(CreateIndex(index, if_not_exists=True))
    for statement in guard_statements(_JOBS):
        op.execute(statement)
    _replace_claim()


def _replace_claim() -> None:
    connection = op.get_bind()
    try:
        with connection.begin_nested():
            op.execute(_CLAIM)
    except ProgrammingError as error:
        # An application's function of another form can't be replaced under its users.
        finding = f"stays as it is, and claims regardless of batches: {str(error.orig).splitlines()[0]}"
        op.execute(
            insert(_FINDINGS).values(
                revision=revision, table_name="job_queue", subject="claim_next_job(text)", finding=finding
            )
        )
