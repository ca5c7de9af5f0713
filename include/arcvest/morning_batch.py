"""The morning's work is put into the queue: scans, then scores, then the day's selection."""

from __future__ import annotations

from include.arcvest import batches
from include.arcvest.batches import Planned
from include.job import NothingOutside
from include.run import Run

PACKAGE = "include.arcvest"
NAME = "morningBatch"
SETTINGS: dict[str, str | None] = {}
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

BATCH = "morning"
JOBS = (
    Planned("news_scan", 10),
    Planned("email_scan", 10, {"sources": "all"}),
    Planned("bloomberg_scan", 9),
    Planned("score_ideas", 8),
    Planned("select_daily", 7, {"count": 6}),
)
"""The pipeline's jobs come from select_daily."""


def enqueue_jobs(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Enqueue each job of the day's batch once."""
    batches.enqueue(run, BATCH, JOBS)


def report_batch(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Say how the batch stands."""
    batches.report(run, BATCH)


STEPS = (enqueue_jobs, report_batch)
