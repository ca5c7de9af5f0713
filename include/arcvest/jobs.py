"""`job_queue` as the queue engine sees it, and which types of job are whose."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy.exc import DBAPIError

from include.queues.engine import Ended, Queue
from include.queues.table import QueueTable, Words, doubling
from include.run import Transaction, is_row_fault, row_error
from include.statements import statement

PACKAGE = "include.arcvest"
CHANNEL = "arcvest_jobs"
STUCK_AFTER = timedelta(minutes=10)

PIPELINE = "process_pipeline"
"""The type of job that belongs to the content pipeline's DAG; its payload holds `idea_id`."""

JOBS = QueueTable(
    name="job_queue",
    words=Words(
        due="pending", claimed="processing", done="completed", failed="failed", cancelled="cancelled"
    ),
    due="next_run_at",
    error="last_error",
    channel=CHANNEL,
    max_attempts="max_attempts",
    priority="priority",
    # Within a batch scans precede scores, and scores precede the selection.
    stage="correlation_id",
    kind="job_type",
    started="started_at",
    finished="completed_at",
    # Nine attempts reach the longest delay, for rows that allow more than the usual five.
    delays=doubling(30, 3600, 9),
    attempt_limit=5,
    lost_after=STUCK_AFTER,
    moves=frozenset({("processing", "cancelled")}),
    people_may=frozenset({"cancel", "retry", "requeue"}),
)


_LOG = logging.getLogger("almanac")


def log_ended(tx: Transaction, ended: Sequence[Ended]) -> None:
    """Tell the activity log of jobs that nobody will try again, and let their ideas end with them."""
    tx.execute(
        statement(PACKAGE, "log_failed_permanently"),
        keys=[one.key for one in ended],
        attempts=[one.attempt for one in ended],
        errors=[one.reason for one in ended],
    )
    try:
        with tx.savepoint():
            tx.execute(
                statement(PACKAGE, "pipeline_ideas_ended"),
                keys=[one.key for one in ended],
                errors=[one.reason for one in ended],
            )
    except DBAPIError as error:
        if not is_row_fault(error):
            raise
        # The job has to end whatever its idea is.
        _LOG.warning("ideas of ended jobs stay as they are: %s", row_error(error))


QUEUE = Queue(JOBS, bury=log_ended)
