"""How the jobs do: counts and durations by type, and whether the whole is healthy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

from include.ecocomply.job_records.failures import PACKAGE
from include.run import Transaction
from include.statements import statement

Period = Literal["hour", "day", "week"]
Health = Literal["healthy", "degraded", "unhealthy"]

PERIODS: Mapping[Period, timedelta] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}

STALE_UNHEALTHY = 10
LETTERS_UNHEALTHY = 50
STALE_DEGRADED = 0
LETTERS_DEGRADED = 10
FAILURES_DEGRADED = 20
"""More than so many: stale jobs, open dead letters, jobs of the last hour that failed."""


@dataclass(frozen=True, slots=True)
class JobMetrics:
    """How the jobs of one type did that were made in a period. Durations are of completed jobs, None without any.

    A duration goes from the beginning of the first attempt to the end of the last.
    """

    job_type: str
    period: Period
    total_jobs: int
    successful_jobs: int
    failed_jobs: int
    success_rate: Decimal
    average_duration_ms: float | None
    p95_duration_ms: float | None
    p99_duration_ms: float | None
    dlq_count: int


@dataclass(frozen=True, slots=True)
class JobSystemHealth:
    """How the jobs as a whole stand at an instant."""

    status: Health
    stale_jobs: int
    unresolved_dlq: int
    recent_failures: int
    timestamp: datetime


def job_metrics(tx: Transaction, period: Period, until: datetime) -> Sequence[JobMetrics]:
    """Return the metrics of every type that had a job in the period that ends at `until`, by type."""
    rows = tx.rows(statement(PACKAGE, "job_metrics"), since=until - PERIODS[period], until=until)
    return [JobMetrics(period=period, **row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's public name


def job_system_health(tx: Transaction, at: datetime) -> JobSystemHealth:
    """Return how the jobs stand."""
    row = tx.rows(statement(PACKAGE, "job_system_health"), since=at - PERIODS["hour"], until=at)[0]
    return JobSystemHealth(
        status_of(row.stale_jobs, row.unresolved_dlq, row.recent_failures),
        row.stale_jobs,
        row.unresolved_dlq,
        row.recent_failures,
        at,
    )


def status_of(stale_jobs: int, unresolved_dlq: int, recent_failures: int) -> Health:
    """Return the word for a standing."""
    if stale_jobs > STALE_UNHEALTHY or unresolved_dlq > LETTERS_UNHEALTHY:
        return "unhealthy"
    degraded = (
        stale_jobs > STALE_DEGRADED
        or unresolved_dlq > LETTERS_DEGRADED
        or recent_failures > FAILURES_DEGRADED
    )
    return "degraded" if degraded else "healthy"
