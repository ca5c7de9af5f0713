"""The evening's work is put into the queue: the mailbox, scores, and a second, smaller selection."""

from __future__ import annotations

from include.arcvest import batches
from include.arcvest.batches import Planned
from include.job import NothingOutside
from include.run import Run

PACKAGE = "include.arcvest"
NAME = "eveningBatch"
SETTINGS: dict[str, str | None] = {}
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

BATCH = "evening"
JOBS = (
    Planned("email_scan", 10, {"sources": "all"}),
    Planned("score_ideas", 8),
    Planned("select_daily", 7, {"count": 2}),
)
"""The pipeline's jobs come from select_daily."""


def enqueue_jobs(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Enqueue each job of the day's batch once."""
    batches.enqueue(run, BATCH, JOBS)


def report_batch(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Say how the batch stands."""
    batches.report(run, BATCH)


STEPS = (enqueue_jobs, report_batch)
