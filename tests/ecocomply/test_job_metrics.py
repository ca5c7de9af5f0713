"""Metrics and health, asserted against a thousand rows whose numbers are known."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import text

from include.ecocomply.job_records.metrics import (
    PERIODS,
    Health,
    JobMetrics,
    Period,
    job_metrics,
    job_system_health,
    status_of,
)
from include.run import EngineDatabase, Transaction
from tests.conftest import Databases

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)

TYPES = {"DEADLINE_ALERT": 600, "RISK_SCORE_CALCULATION": 400}

# Row n of a type: every tenth failed, every twentieth of these with a letter; every 50th still waits; the others
# took n seconds. Row n was made n * 10 minutes ago: six an hour, 144 a day.
ROWS = """
INSERT INTO background_jobs (job_type, created_at)
SELECT :type, CAST(:now AS timestamptz) - n * interval '10 minutes' FROM generate_series(1, :count) AS n
"""
NUMBERED = """
UPDATE background_jobs AS q
SET status = 'RUNNING', attempts = 1, started_at = q.created_at
WHERE q.job_type = :type
  AND extract(EPOCH FROM CAST(:now AS timestamptz) - q.created_at) / 600 % 50 <> 0
"""
ENDED = """
UPDATE background_jobs AS q
SET status = CASE WHEN n % 10 = 0 THEN 'FAILED' ELSE 'COMPLETED' END,
    completed_at = q.started_at + n * interval '1 second'
FROM (
    SELECT id, (extract(EPOCH FROM CAST(:now AS timestamptz) - created_at) / 600)::int AS n FROM background_jobs
) AS numbered
WHERE numbered.id = q.id AND q.job_type = :type AND q.status = 'RUNNING'
"""
LETTERS = """
INSERT INTO dead_letter_queue (job_id, error_message)
SELECT q.id, 'x' FROM background_jobs AS q
WHERE q.status = 'FAILED' AND extract(EPOCH FROM CAST(:now AS timestamptz) - q.created_at) / 600 % 20 = 0
"""


@pytest.fixture(scope="module")
def thousand(databases: Databases) -> Iterator[EngineDatabase]:
    """Make a thousand jobs."""
    name, engine = databases.make("ecocomply")
    with engine.begin() as connection:
        for job_type, count in TYPES.items():
            for statement in (ROWS, NUMBERED, ENDED):
                binds = {"type": job_type, "now": NOW, "count": count}
                used = {key: value for key, value in binds.items() if f":{key}" in statement}
                connection.execute(text(statement), used)
        connection.execute(text(LETTERS), {"now": NOW})
    yield EngineDatabase(engine)
    databases.drop(name, engine)


def known(job_type: str, period: Period) -> JobMetrics:
    """Count the same rows by hand."""
    within = PERIODS[period] / timedelta(minutes=10)
    made = [n for n in range(1, TYPES[job_type] + 1) if n <= within]
    failed = [n for n in made if n % 10 == 0 and n % 50]
    done = [n for n in made if n % 10]
    return JobMetrics(
        job_type=job_type,
        period=period,
        total_jobs=len(made),
        successful_jobs=len(done),
        failed_jobs=len(failed),
        success_rate=(Decimal(len(done)) / len(made) * 100).quantize(Decimal("0.01")),
        average_duration_ms=sum(done) / len(done) * 1000,
        p95_duration_ms=percentile(done, 0.95) * 1000,
        p99_duration_ms=percentile(done, 0.99) * 1000,
        dlq_count=len([n for n in failed if n % 20 == 0]),
    )


def percentile(sorted_values: list[int], share: float) -> float:
    """Return the continuous percentile, as Postgres defines it."""
    place = share * (len(sorted_values) - 1)
    below = int(place)
    above = min(below + 1, len(sorted_values) - 1)
    return sorted_values[below] + (place - below) * (sorted_values[above] - sorted_values[below])


@pytest.mark.parametrize("period", PERIODS)
def test_a_thousand_known_rows(thousand: EngineDatabase, period: Period) -> None:
    """18.4: hour, day and week, type by type."""
    with thousand.transaction() as tx:
        found = job_metrics(tx, period, NOW)
    assert [one.job_type for one in found] == list(TYPES)
    for one in found:
        expected = known(one.job_type, period)
        for name in JobMetrics.__dataclass_fields__:
            said, wanted = getattr(one, name), getattr(expected, name)
            assert said == (pytest.approx(wanted) if isinstance(wanted, float) else wanted), name


def test_a_period_without_jobs(thousand: EngineDatabase) -> None:
    """Nothing to say, and nothing to divide by."""
    with thousand.transaction() as tx:
        assert job_metrics(tx, "hour", NOW - timedelta(days=30)) == []


def test_a_type_without_a_completed_job(thousand: EngineDatabase) -> None:
    """Durations are of completed jobs; without any there are none."""
    with thousand.engine.connect() as connection, connection.begin() as transaction:
        connection.execute(
            text("INSERT INTO background_jobs (job_type, created_at) VALUES ('A', :at)"), {"at": NOW}
        )
        found = job_metrics(Transaction(connection), "hour", NOW + timedelta(minutes=1))[0]
        transaction.rollback()
    assert (found.job_type, found.total_jobs, found.success_rate) == ("A", 1, Decimal(0))
    assert (found.average_duration_ms, found.p95_duration_ms, found.p99_duration_ms) == (None, None, None)


def test_the_health_of_a_thousand(thousand: EngineDatabase) -> None:
    """18.4: open letters of all time, failures of the last hour, stale jobs that run."""
    with thousand.engine.connect() as connection, connection.begin() as transaction:
        tx = Transaction(connection)
        at = NOW - timedelta(minutes=50)
        found = job_system_health(tx, at)
        letters = sum(1 for count in TYPES.values() for n in range(1, count + 1) if n % 20 == 0 and n % 50)
        # Of the hour before, rows 6 to 11: the tenth of each type failed.
        assert (found.stale_jobs, found.unresolved_dlq, found.recent_failures) == (0, letters, 2)
        assert (found.status, found.timestamp) == ("degraded", at)
        connection.execute(text("UPDATE dead_letter_queue SET resolved_at = now()"))
        assert job_system_health(tx, at).status == "healthy"
        connection.execute(text("UPDATE background_jobs SET status = 'RUNNING' WHERE status = 'PENDING'"))
        connection.execute(
            text("UPDATE background_jobs SET health_status = 'STALE' WHERE status = 'RUNNING'")
        )
        assert job_system_health(tx, at).stale_jobs == sum(count // 50 for count in TYPES.values())
        assert job_system_health(tx, at).status == "unhealthy"
        transaction.rollback()


@pytest.mark.parametrize(
    ("stale", "letters", "failures", "status"),
    [
        (0, 0, 0, "healthy"), (0, 10, 20, "healthy"), (1, 0, 0, "degraded"), (10, 0, 0, "degraded"),
        (11, 0, 0, "unhealthy"), (0, 11, 0, "degraded"), (0, 50, 0, "degraded"), (0, 51, 0, "unhealthy"),
        (0, 0, 21, "degraded"), (0, 0, 9999, "degraded"),
    ],
)  # fmt: skip
def test_the_thresholds(stale: int, letters: int, failures: int, status: Health) -> None:
    """10 and 50 make it unhealthy; 0, 10 and 20 degraded."""
    assert status_of(stale, letters, failures) == status
