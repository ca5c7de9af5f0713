"""The trail is written into the one table alone, whatever a session has made beside it; a key stays as it is."""

from __future__ import annotations

from alembic import op

from include.queues.schema import guard_statements
from include.queues.table import QueueTable, Words

revision = "0004"
down_revision = "0003"

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


def upgrade() -> None:
    """Replace functions and triggers."""
    for statement in guard_statements(_JOBS):
        op.execute(statement)
