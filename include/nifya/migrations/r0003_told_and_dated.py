"""A digest has its local date; a job's copy, and what the operators are told of jobs; where old subscriptions begin."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, Date, Index, String, Table, Text, UniqueConstraint, Uuid, text, true

from include.adoption import Adoption
from include.columns import identity, instant, metadata
from include.queues.schema import guard_statements
from include.queues.table import QueueTable, Words

revision = "0003"
down_revision = "0002"

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

Table(
    "scheduled_jobs",
    _TABLES,
    identity(),
    Column("status", String(50), nullable=False, server_default="pending"),
    Column("copy_of", Uuid),
    Column("failing_cause", Text),
    Column("ending_told", Boolean, nullable=False, server_default=true()),
    Column("ending_cause", Text),
    Index(
        "ix_scheduled_jobs_copies",
        "copy_of",
        postgresql_where=text("copy_of IS NOT NULL AND status IN ('pending', 'processing')"),
    ),
    Index("ix_scheduled_jobs_endings", "id", postgresql_where=text("NOT ending_told")),
)
Table(
    "digests",
    _TABLES,
    identity(),
    Column("user_id", String(128), nullable=False),
    instant("due_at", required=True),
    Column("due_on", Date),
    UniqueConstraint("user_id", "due_on"),
)

# Of two digests of one date, which could be until now, the first alone stands for it.
_DATED = """
UPDATE digests AS d
SET due_on = first.due_on
FROM (
    SELECT DISTINCT ON (o.user_id, l.due_on) o.id, l.due_on
    FROM digests AS o
    JOIN users AS u ON u.id = o.user_id
    LEFT JOIN pg_timezone_names AS z ON z.name = u.timezone
    CROSS JOIN LATERAL (
        SELECT CAST(o.due_at AT TIME ZONE coalesce(z.name, 'Europe/Madrid') AS date) AS due_on
    ) AS l
    WHERE isfinite(o.due_at)
    ORDER BY o.user_id, l.due_on, o.due_at, o.id
) AS first
WHERE first.id = d.id
"""

# The application's last look, whatever became of it; what has no such row begins with the adoption.
_SEEN = """
UPDATE subscription_processing AS p
SET last_success_at = p.last_run_at
FROM baseline AS b
WHERE b.name = 'adoption'
  AND p.last_success_at IS NULL
  AND p.last_run_at < b.at
"""


def upgrade() -> None:
    """Make the columns, date the digests that there are, replace what guards the queue."""
    Adoption(op.get_context(), "nifya", revision, _TABLES).run()
    op.execute(_DATED)
    op.execute(_SEEN)
    for statement in guard_statements(_JOBS):
        op.execute(statement)
