"""The trail is written into the one table alone, whatever a session has made beside it; a key stays as it is."""

from __future__ import annotations

from datetime import timedelta

from alembic import op

from include.queues.schema import guard_statements
from include.queues.table import QueueTable, Words

revision = "0003"
down_revision = "0002"

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


def upgrade() -> None:
    """Replace functions and triggers."""
    for statement in guard_statements(_TASK_QUEUE):
        op.execute(statement)
