"""What a batch enqueues: once per day, batch and type of job, whoever asks and however often."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from include.run import Run
from include.statements import statement

PACKAGE = "include.arcvest"
_NAMES = uuid.uuid5(uuid.NAMESPACE_DNS, "batches.arcvest.almanac")


@dataclass(frozen=True, slots=True)
class Planned:
    """One job of a batch; a higher priority is done before a lower one starts."""

    job_type: str
    priority: int
    payload: Mapping[str, Any] = field(default_factory=dict)


def batch_id(day: date, batch: str) -> uuid.UUID:
    """Return the correlation id that the jobs of a day's batch share."""
    return uuid.uuid5(_NAMES, f"{day.isoformat()}/{batch}")


def enqueue(run: Run, batch: str, jobs: Sequence[Planned]) -> None:
    """Put the run's local day's batch into the queue; what is there already is skipped."""
    correlation = batch_id(run.today, batch)
    rows = [
        {
            "id": str(uuid.uuid5(correlation, job.job_type)),
            "job_type": job.job_type,
            "priority": job.priority,
            "payload": dict(job.payload),
        }
        for job in jobs
    ]
    with run.transaction() as tx:
        queued = tx.execute(
            statement(PACKAGE, "enqueue_batch"),
            day=run.today,
            batch=batch,
            correlation=correlation,
            jobs=json.dumps(rows),
        )
    run.count("processed", len(jobs))
    run.count("queued", queued)
    run.count("skipped", len(jobs) - queued)


def report(run: Run, batch: str) -> None:
    """Say how the jobs of the run's day's batch stand."""
    with run.transaction() as tx:
        found = tx.rows(statement(PACKAGE, "batch_standing"), correlation=batch_id(run.today, batch))
    standing = ", ".join(f"{row.jobs} {row.status}" for row in found) or "none is left in the queue"
    run.note(f"{batch} batch of {run.today.isoformat()}: {standing}")
