"""`scheduled_jobs` becomes a queue of the engine's: claims, attempts, the guard, the audit trail, the NOTIFY."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, Index, Integer, Table, false, text
from sqlalchemy.schema import CreateIndex

from include.adoption import Adoption
from include.columns import identity, instant, metadata
from include.queues.schema import audit_table, claim_columns, guard_statements, queue_indexes
from include.queues.table import QueueTable, Words

revision = "0002"
down_revision = "0001"

_JOBS = QueueTable(
    name="scheduled_jobs",
    words=Words(due="pending", claimed="processing", done="completed", failed="failed"),
    due="next_run_at",
    again="retry_at",
    error="error",
    channel="nifya_scheduled_jobs",
    kind="type",
    started="last_run_at",
    finished="finished_at",
    updated="updated_at",
    delays=(60, 300),
    attempt_limit=3,
    people_may=frozenset({"retry"}),
)

_TABLES = metadata()

_SCHEDULED_JOBS = Table(
    "scheduled_jobs",
    _TABLES,
    identity(),
    instant("next_run_at"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    instant("retry_at"),
    instant("finished_at"),
    Column("failures_in_row", Integer, nullable=False, server_default="0"),
    instant("failing_since"),
    Column("failing_told", Boolean, nullable=False, server_default=false()),
    *claim_columns(),
    Index("ix_scheduled_jobs_listed", "next_run_at", "id"),
    Index(
        "ix_scheduled_jobs_failing",
        "failing_since",
        postgresql_where=text("failures_in_row >= 3 AND NOT failing_told"),
    ),
)
audit_table(_TABLES)


def upgrade() -> None:
    """Make the columns and the audit trail, then what the engine's claims and guards need."""
    Adoption(op.get_context(), "nifya", revision, _TABLES).run()
    for index in queue_indexes(_JOBS):
        _SCHEDULED_JOBS.append_constraint(index)
        op.execute(CreateIndex(index, if_not_exists=True))
    for statement in guard_statements(_JOBS):
        op.execute(statement)
