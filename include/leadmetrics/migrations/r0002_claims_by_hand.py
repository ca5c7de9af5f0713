"""What the queue's guard and trail say now; a claim by the application is as young as its last change of status."""

from __future__ import annotations

from datetime import timedelta

from alembic import op

from include.queues.schema import guard_statements
from include.queues.table import QueueTable, Words

revision = "0002"
down_revision = "0001"

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

_STANDING = """
CREATE INDEX IF NOT EXISTS ix_notification_outbox_standing ON notification_outbox (status, sink)
WHERE status IN ('pending', 'unknown')
"""

# Prisma's client writes "updatedAt"; a statement by hand may not, and its claim would look as old as the row.
_TOUCHED = """
CREATE OR REPLACE FUNCTION scheduled_task_touched() RETURNS trigger LANGUAGE plpgsql AS $touched$
BEGIN
    NEW."updatedAt" := clock_timestamp();
    RETURN NEW;
END
$touched$
"""
_TOUCHED_TRIGGER = """
CREATE OR REPLACE TRIGGER scheduled_task_touched BEFORE UPDATE ON scheduled_task FOR EACH ROW
WHEN (OLD.status IS DISTINCT FROM NEW.status AND OLD."updatedAt" IS NOT DISTINCT FROM NEW."updatedAt")
EXECUTE FUNCTION scheduled_task_touched()
"""


def upgrade() -> None:
    """Replace functions and triggers; make the index of what the run's report counts."""
    for statement in guard_statements(_TASK_QUEUE):
        op.execute(statement)
    for each in (_STANDING, _TOUCHED, _TOUCHED_TRIGGER):
        op.execute(each)
