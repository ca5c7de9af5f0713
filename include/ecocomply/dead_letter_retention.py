"""Retention: resolved dead letters go to the audit log, and jobs that ended long ago go."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from include.ecocomply.access import as_service
from include.ecocomply.job_records import dead_letters
from include.job import NothingOutside
from include.run import Run, Transaction

NAME = "deadLetterRetention"
SETTINGS: dict[str, str | None] = {}
QUEUES: tuple[str, ...] = ()

RETENTION_DAYS = 30
"""How long a dead letter stays after it was resolved, unless a run is told otherwise."""

JOBS_KEPT = timedelta(days=90)
"""How long a job stays after its end."""


class Outside(NothingOutside):
    """Nothing but the database."""


def archive_letters(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Move dead letters that were resolved `retention_days` ago to the audit log; open ones stay for ever."""
    days = run.params.get("retention_days")
    before = run.as_of - timedelta(days=RETENTION_DAYS if days is None else days)
    archived = _all(run, dead_letters.archive, before)
    run.count("processed", archived)
    run.count("archived", archived)


def retire_jobs(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Delete jobs that ended 90 days ago; one that has a dead letter stays as long as that."""
    deleted = _all(run, dead_letters.retire_jobs, run.as_of - JOBS_KEPT)
    run.count("processed", deleted)
    run.count("deleted", deleted)


def _all(run: Run, some: Callable[[Transaction, datetime], int], before: datetime) -> int:
    """Call it, a chunk a transaction, until nothing is left."""
    whole = 0
    while True:
        with as_service(run).transaction() as tx:
            done = some(tx, before)
        whole += done
        if not done:
            return whole


STEPS = (archive_letters, retire_jobs)
