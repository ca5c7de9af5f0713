"""How the jobs do: their health with its thresholds in words, their metrics, and what runs now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from include.ecocomply.console import PACKAGE
from include.ecocomply.job_records import metrics
from include.ecocomply.job_records.dag_runs import DagRun, run_of_key
from include.ecocomply.job_records.metrics import Health, JobSystemHealth
from include.run import Transaction
from include.statements import statement

MOST_RUNNING = 100
"""How many running jobs are shown, those that run longest."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One of the figures that the health is judged by, what it makes of the health by itself, and its limits."""

    name: str
    value: int
    health: Health
    limits: str


@dataclass(frozen=True, slots=True)
class HowFar:
    """How far a running job is: `current` of `total`, and what it says of that itself."""

    current: int | None = None
    total: int | None = None
    said: str | None = None

    @property
    def is_known(self) -> bool:
        return self.current is not None and bool(self.total)


@dataclass(frozen=True, slots=True)
class Running:
    """A job that runs now; `dag_run` is None where the row names none that Airflow could know."""

    row: Row[Any]
    how_far: HowFar
    dag_run: DagRun | None


def measures(health: JobSystemHealth) -> Sequence[Measure]:
    """Return the figures with their limits in words."""
    return (
        Measure(
            "Stale jobs",
            health.stale_jobs,
            metrics.status_of(health.stale_jobs, 0, 0),
            f"degraded with more than {metrics.STALE_DEGRADED}, unhealthy with more than {metrics.STALE_UNHEALTHY}",
        ),
        Measure(
            "Open dead letters",
            health.unresolved_dlq,
            metrics.status_of(0, health.unresolved_dlq, 0),
            f"degraded with more than {metrics.LETTERS_DEGRADED}, unhealthy with more than {metrics.LETTERS_UNHEALTHY}",
        ),
        Measure(
            "Jobs of the last hour that failed",
            health.recent_failures,
            metrics.status_of(0, 0, health.recent_failures),
            f"degraded with more than {metrics.FAILURES_DEGRADED}",
        ),
    )


def running(tx: Transaction) -> tuple[Sequence[Running], bool]:
    """Return what runs now, the longest first, and whether there is more than is shown."""
    rows = tx.rows(statement(PACKAGE, "jobs_running"), limit=MOST_RUNNING + 1)
    shown = [Running(row, how_far(row.progress), run_of_key(row.dag_run_id)) for row in rows[:MOST_RUNNING]]
    return shown, len(rows) > MOST_RUNNING


def how_far(progress: Any) -> HowFar:
    """Read a row's progress, which an application's own worker may write as it likes."""
    if not isinstance(progress, Mapping):
        return HowFar()
    said = progress.get("said")
    return HowFar(
        _count(progress.get("current")),
        _count(progress.get("total")),
        said if isinstance(said, str) else None,
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
