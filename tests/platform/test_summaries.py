"""Every run ends in a summary: the sum of what all attempts of its steps did."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Row, select

from include.platform.summaries import RunKey, Summary, begin_run, end_run, keep_preview, record_step
from include.platform.tables import PREVIEW, RUN_STEP, RUN_SUMMARY
from include.run import EngineDatabase

KEY = RunKey("clearpath_session_expiry", "manual__1")
OTHER = RunKey("clearpath_session_expiry", "manual__2")
AS_OF = datetime(2027, 3, 10, 9, tzinfo=UTC)


def step(
    almanac: EngineDatabase,
    task: str = "work",
    attempt: int = 1,
    state: str = "success",
    key: RunKey = KEY,
    **counts: int,
) -> None:
    """Record an attempt of a task."""
    record_step(
        almanac, key, task, attempt,
        started_at=datetime.now(UTC), state=state, counts=counts, notes=[],
        error="it broke" if state == "failed" else None,
    )  # fmt: skip


def ended(almanac: EngineDatabase, key: RunKey = KEY, state: str | None = None) -> Summary:
    """End a run that has begun."""
    summary = end_run(almanac, key, state)
    assert summary is not None
    return summary


def rows(almanac: EngineDatabase, table: Any) -> list[Row[Any]]:
    """Return all rows of a table."""
    with almanac.transaction() as tx:
        return list(tx.rows(select(table)))


def test_a_run(almanac: EngineDatabase) -> None:
    """Ruling 8: as-of, state, duration and the counts of all steps, in the platform's own database."""
    begin_run(almanac, KEY, AS_OF, preview=False)
    step(almanac, "settle", processed=3, skipped=3)
    step(almanac, "send", processed=2, sent=2)
    summary = ended(almanac)
    assert (summary.dag_id, summary.run_id, summary.as_of) == (KEY.dag_id, KEY.run_id, AS_OF)
    assert (summary.state, summary.counts) == ("success", {"processed": 5, "skipped": 3, "sent": 2})
    assert 0 <= summary.duration < 60
    (row,) = rows(almanac, RUN_SUMMARY)
    assert (row.state, row.counts, row.preview) == ("success", dict(summary.counts), False)
    assert row.ended_at - row.started_at == pytest.approx(
        timedelta(seconds=summary.duration), abs=timedelta(1e-6)
    )


def test_every_attempt_counts(almanac: EngineDatabase) -> None:
    """What a failed attempt did before it failed has happened, and is in the sum."""
    begin_run(almanac, KEY, AS_OF, preview=False)
    step(almanac, attempt=1, state="failed", sent=40)
    step(almanac, attempt=2, sent=60)
    summary = ended(almanac)
    assert (summary.counts, summary.state) == ({"sent": 100}, "success")
    assert {row.try_number: row.error for row in rows(almanac, RUN_STEP)} == {1: "it broke", 2: None}


def test_an_attempt_is_kept_once(almanac: EngineDatabase) -> None:
    """An attempt that is recorded twice, as after a lost connection, is counted once."""
    begin_run(almanac, KEY, AS_OF, preview=False)
    step(almanac, sent=1)
    step(almanac, sent=5)
    assert ended(almanac).counts == {"sent": 5}


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], "success"),
        (["success", "success"], "success"),
        (["success", "deferred", "success"], "deferred"),
        (["skipped", "success"], "skipped"),
        (["deferred", "failed"], "failed"),
        (["skipped", "deferred"], "deferred"),
    ],
)
def test_the_state(almanac: EngineDatabase, states: list[str], expected: str) -> None:
    """The worst that a step came to, by its last attempt."""
    begin_run(almanac, KEY, AS_OF, preview=False)
    for number, state in enumerate(states):
        step(almanac, f"task {number}", state=state)
    assert ended(almanac).state == expected


def test_a_state_from_outside(almanac: EngineDatabase) -> None:
    """A run that did not end by itself is what the scheduler says that it is."""
    begin_run(almanac, KEY, AS_OF, preview=False)
    step(almanac)
    assert ended(almanac, state="failed").state == "failed"


def test_a_run_that_never_began(almanac: EngineDatabase) -> None:
    """There is nothing to close, and that is no error."""
    assert end_run(almanac, KEY) is None


def test_a_run_that_is_done_over(almanac: EngineDatabase) -> None:
    """Cleared and run again, it starts with empty counts; another run keeps its own."""
    for key in (KEY, OTHER):
        begin_run(almanac, key, AS_OF, preview=False)
        step(almanac, key=key, sent=7)
        ended(almanac, key)
    begin_run(almanac, KEY, AS_OF + timedelta(days=1), preview=False)
    summary = ended(almanac)
    assert (summary.counts, summary.as_of) == ({}, AS_OF + timedelta(days=1))
    assert ended(almanac, OTHER).counts == {"sent": 7}


def test_notes_are_told_once_and_in_order(almanac: EngineDatabase) -> None:
    """A sentence that two steps say is one sentence."""
    begin_run(almanac, KEY, AS_OF, preview=False)
    start = datetime.now(UTC)
    for number, notes in enumerate([["zebra"], ["apple", "zebra"]]):
        record_step(
            almanac, KEY, f"task {number}", 1,
            started_at=start + timedelta(seconds=number), state="success", counts={}, notes=notes,
        )  # fmt: skip
    assert ended(almanac).notes == ["zebra", "apple"]


def test_two_steps_at_once(almanac: EngineDatabase) -> None:
    """Tasks end beside each other; no count is lost."""
    begin_run(almanac, KEY, AS_OF, preview=False)
    workers = [
        threading.Thread(target=step, args=(almanac, f"task {n}"), kwargs={"processed": 1}) for n in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert ended(almanac).counts == {"processed": 4}


def test_a_preview_is_kept(almanac: EngineDatabase) -> None:
    """The console shows the latest one of a run."""
    begin_run(almanac, KEY, AS_OF, preview=True)
    keep_preview(almanac, KEY, AS_OF, {"tables": [], "when": AS_OF})
    keep_preview(almanac, KEY, AS_OF, {"tables": [1], "when": AS_OF})
    (row,) = rows(almanac, PREVIEW)
    assert row.result == {"tables": [1], "when": "2027-03-10 09:00:00+00:00"}
    assert rows(almanac, RUN_SUMMARY)[0].preview
