"""The trail is written into the one table alone, whatever a session has made beside it; a key stays as it is."""

from __future__ import annotations

from datetime import timedelta

from alembic import op

from include.queues.schema import guard_statements
from include.queues.table import QueueTable, Words, doubling

revision = "0006"
down_revision = "0005"

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


def upgrade() -> None:
    """Replace functions and triggers."""
    for statement in guard_statements(_JOBS):
        op.execute(statement)
