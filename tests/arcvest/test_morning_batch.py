"""The morning batch: what is enqueued, in which order, and once a day."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from include.arcvest import morning_batch, tables
from include.arcvest.batches import batch_id
from include.job import NothingOutside
from tests.arcvest.rows import Rows

JOBS: list[tuple[str, int, dict[str, Any]]] = [
    ("news_scan", 10, {}),
    ("email_scan", 10, {"sources": "all"}),
    ("bloomberg_scan", 9, {}),
    ("score_ideas", 8, {}),
    ("select_daily", 7, {"count": 6}),
]


def queued(rows: Rows) -> list[tuple[str, int, dict[str, Any]]]:
    """Return type, priority and payload of every job, in the order in which they are to be done."""
    found = rows.all(tables.JOB_QUEUE, tables.JOB_QUEUE.c.priority.desc(), tables.JOB_QUEUE.c.job_type.desc())
    return [(row.job_type, row.priority, row.payload) for row in found]


def test_the_jobs_of_the_batch(rows: Rows) -> None:
    """The specification lists types, priorities and payloads; a batch is known by its correlation id."""
    run = rows.perform(morning_batch, NothingOutside())
    assert queued(rows) == JOBS
    assert len({row.correlation_id for row in rows.all(tables.JOB_QUEUE)}) == 1
    assert {row.status for row in rows.all(tables.JOB_QUEUE)} == {"pending"}
    assert run.counts == {"processed": len(JOBS), "queued": len(JOBS), "skipped": 0}
    assert run.notes == [f"morning batch of 2026-11-25: {len(JOBS)} pending"]


def test_once_a_day_also_when_the_rows_are_gone(rows: Rows) -> None:
    """Ruling: once per (date, batch, type); a queue that was cleaned up must not bring the day's work again."""
    rows.perform(morning_batch, NothingOutside())
    with rows.db.engine.begin() as connection:
        connection.execute(tables.JOB_QUEUE.delete())
    run = rows.perform(morning_batch, NothingOutside())
    assert queued(rows) == []
    assert run.counts["skipped"] == len(JOBS)
    assert run.notes == ["morning batch of 2026-11-25: none is left in the queue"]


def test_two_processes_at_once_enqueue_one_batch(rows: Rows) -> None:
    """A cleared task beside a manual run: the constraint decides, not a look before the leap."""
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: rows.perform(morning_batch, NothingOutside()), range(8)))
    assert queued(rows) == JOBS
    assert sum(run.counts["queued"] for run in runs) == len(JOBS)


@pytest.mark.parametrize(
    ("as_of", "day"),
    [
        (datetime(2026, 11, 25, 5, 59, 59, tzinfo=UTC), "2026-11-24"),
        (datetime(2026, 11, 25, 6, 0, tzinfo=UTC), "2026-11-25"),
        (datetime(2026, 11, 26, 5, 59, 59, tzinfo=UTC), "2026-11-25"),
        (datetime(2026, 7, 1, 4, 59, 59, tzinfo=UTC), "2026-06-30"),
        (datetime(2026, 7, 1, 5, 0, tzinfo=UTC), "2026-07-01"),
        (datetime(2027, 3, 14, 1, 30, tzinfo=ZoneInfo("America/Chicago")).astimezone(UTC), "2027-03-14"),
    ],
)
def test_the_day_is_chicagos(rows: Rows, as_of: datetime, day: str) -> None:
    """T4: the batch's date is the local day of the run's as-of."""
    rows.perform(morning_batch, NothingOutside(), as_of)
    assert {row.batch_date.isoformat() for row in rows.all(tables.JOB_BATCHES)} == {day}


def test_each_day_has_its_own(rows: Rows) -> None:
    """A backfill of an earlier day enqueues that day's batch, and leaves today's alone."""
    rows.perform(morning_batch, NothingOutside())
    rows.perform(morning_batch, NothingOutside(), datetime(2026, 11, 24, 18, tzinfo=UTC))
    assert len(rows.all(tables.JOB_QUEUE)) == 2 * len(JOBS)
    assert len({row.correlation_id for row in rows.all(tables.JOB_QUEUE)}) == 2


def test_the_correlation_is_the_local_days(rows: Rows) -> None:
    """T4: in the evening UTC has the next day already; the batch is the one of Chicago's day all the same."""
    run = rows.perform(morning_batch, NothingOutside(), datetime(2026, 11, 26, 3, tzinfo=UTC))
    (correlation,) = {row.correlation_id for row in rows.all(tables.JOB_QUEUE)}
    assert correlation == batch_id(date(2026, 11, 25), "morning")
    assert run.notes == [f"morning batch of 2026-11-25: {len(JOBS)} pending"]
