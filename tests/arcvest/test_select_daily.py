"""The daily selection: the best `count`, none twice, never more, however often the job is tried."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from include.arcvest import queue_worker, select_daily, tables
from include.arcvest.jobs import QUEUE
from include.arcvest.sources import Sources
from include.errors import BadInput
from include.queues.engine import Claim
from include.run import Run
from include.statements import statement
from tests.arcvest.rows import Rows
from tests.arcvest.worker_world import FakeFeeds, FakeMailbox

NOW = datetime.now(UTC)
BATCH = uuid.UUID(int=7)
IDEAS, JOBS = tables.IDEA_QUEUE, tables.JOB_QUEUE


def claimed(rows: Rows, payload: Any, owner: str = "worker") -> Claim:
    """Return a claim of a new job with that payload."""
    rows.job("select_daily", payload=payload, correlation_id=BATCH, priority=7)
    with rows.db.transaction() as tx:
        (claim,) = QUEUE.claim(tx, owner, 1, kinds=["select_daily"])
    return claim


def select(rows: Rows, claim: Claim) -> Run:
    """Let the handler do the job."""
    run = rows.run(queue_worker, slots=1)
    select_daily.handle(run, claim, Sources(FakeFeeds({}), FakeMailbox([])))
    return run


def selected(rows: Rows) -> list[str]:
    """Return the titles of what is selected, in order."""
    return sorted(row.title for row in rows.all(IDEAS) if row.status == "selected")


def scored(rows: Rows, *scores: float, **values: Any) -> list[uuid.UUID]:
    """Insert an idea for each score, titled by it."""
    return [rows.idea(f"{score:05.1f}", status="scored", score=score, **values) for score in scores]


def test_the_best_are_selected_and_each_gets_its_job(rows: Rows) -> None:
    """Specification: `count` ideas, by score; the pipeline's jobs are created here, as children of this one."""
    scored(rows, 10, 90, 50, 70)
    claim = claimed(rows, {"count": 2})
    run = select(rows, claim)
    assert selected(rows) == ["070.0", "090.0"]
    assert run.counts["selected"] == 2
    jobs = [row for row in rows.all(JOBS) if row.job_type == "process_pipeline"]
    ideas = [row for row in rows.all(IDEAS) if row.status == "selected"]
    assert {row.payload["idea_id"] for row in jobs} == {str(row.id) for row in ideas}
    assert {(row.parent_job_id, row.correlation_id, row.priority, row.status) for row in jobs} == {
        (claim.key, BATCH, select_daily.PIPELINE_PRIORITY, "pending")
    }
    assert {row.selected_by_job_id for row in ideas} == {claim.key}


def test_of_equals_the_newest(rows: Rows) -> None:
    """The order is whole, so that a repeat picks the same."""
    for hours, title in ((30, "old"), (2, "new"), (None, "unknown")):
        at = None if hours is None else NOW - timedelta(hours=hours)
        rows.idea(title, status="scored", score=50, published_at=at)
    select(rows, claimed(rows, {"count": 2}))
    assert selected(rows) == ["new", "old"]


@pytest.mark.parametrize(
    ("values", "taken"),
    [
        ({"published_at": NOW - timedelta(days=13, hours=23)}, True),
        ({"published_at": NOW - timedelta(days=14, hours=1)}, False),
        ({"published_at": None, "created_at": NOW - timedelta(days=15)}, False),
        ({"published_at": NOW, "created_at": NOW - timedelta(days=15)}, True),
    ],
)
def test_what_is_stale_is_left(rows: Rows, values: dict[str, Any], taken: bool) -> None:  # noqa: FBT001 - a case
    """Two weeks after its publication nobody wants to read of it; a feed that is silent for a day changes nothing."""
    scored(rows, 99, **values)
    select(rows, claimed(rows, {"count": 1}))
    assert selected(rows) == (["099.0"] if taken else [])


@pytest.mark.parametrize("status", ["new", "selected", "processing", "completed", "failed", "rejected"])
def test_no_other_status_is_selected(rows: Rows, status: str) -> None:
    """No idea twice: one that has gone further is not selected anew."""
    rows.idea(status=status, score=99)
    assert select(rows, claimed(rows, {"count": 5})).counts["selected"] == 0
    assert [row.job_type for row in rows.all(JOBS)] == ["select_daily"]


def test_a_retry_never_selects_more_than_count(rows: Rows) -> None:
    """Ruling: keyed by its job row: what an earlier attempt selected counts, whatever became of it since."""
    first = scored(rows, 90, 80)
    claim = claimed(rows, {"count": 3})
    select(rows, claim)
    scored(rows, 99, 98, 97)
    with rows.db.transaction() as tx:
        tx.execute(text("UPDATE idea_queue SET status = 'completed' WHERE id = :id"), id=first[0])
    assert select(rows, claim).counts["selected"] == 1
    assert select(rows, claim).counts["selected"] == 0
    assert selected(rows) == ["080.0", "099.0"]


def by_statement(rows: Rows, claim: Claim, ids: Sequence[uuid.UUID], count: int) -> int:
    """Select by the statement alone, as if the look before it lay back."""
    binds = {"job": claim.key, "attempt": claim.attempt, "owner": claim.owner, "count": count, "priority": 5}
    with rows.db.transaction() as tx:
        chosen = statement("include.arcvest", "select_ideas")
        return tx.execute(chosen, ids=ids, job_type="process_pipeline", **binds)


def test_a_worker_that_was_given_up_selects_nothing(rows: Rows) -> None:
    """R6: the claim's attempt and owner are looked at in the statement that selects."""
    ids = scored(rows, 90, 80, 70, 60)
    late = claimed(rows, {"count": 2})
    with rows.db.transaction() as tx:
        tx.execute(text("UPDATE job_queue SET heartbeat_at = now() - interval '1 hour', max_attempts = 9"))
        assert QUEUE.take_back(tx) == (1, 0)
        tx.execute(text("UPDATE job_queue SET next_run_at = now()"))
        (claim,) = QUEUE.claim(tx, "another", 1)
    assert select(rows, late).counts["selected"] == 0
    # Given up between its look and its statement, it is told by the statement alone.
    assert by_statement(rows, late, ids, 2) == 0
    assert select(rows, claim).counts["selected"] == 2


def test_two_workers_with_one_job_select_count_together(rows: Rows) -> None:
    """The job's row is locked while it selects, so that two see each other's ideas."""
    scored(rows, *range(40))
    claim = claimed(rows, {"count": 5})
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: select(rows, claim), range(8)))
    assert sum(run.counts["selected"] for run in runs) == 5
    assert len(selected(rows)) == 5


def test_the_statement_counts_for_itself(rows: Rows) -> None:
    """What was looked up before may be out of date: the statement that selects has the last word on how many."""
    ids = scored(rows, 90, 80, 70, 60)
    claim = claimed(rows, {"count": 3})
    assert [by_statement(rows, claim, ids, 3) for _ in range(2)] == [3, 0]
    assert selected(rows) == ["070.0", "080.0", "090.0"]


def test_two_jobs_at_once_select_no_idea_twice(rows: Rows) -> None:
    """A morning batch that is late meets the evening's: each idea has one job."""
    scored(rows, *range(12))
    claims = [claimed(rows, {"count": 4}, f"w{n}") for n in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda claim: select(rows, claim), claims))
    jobs = [row.payload["idea_id"] for row in rows.all(JOBS) if row.job_type == "process_pipeline"]
    assert len(jobs) == len(set(jobs)) == len(selected(rows)) == 12
    by_job = Counter(row.selected_by_job_id for row in rows.all(IDEAS))
    assert by_job == {claim.key: 4 for claim in claims}


def test_what_another_selection_took_is_made_up_for(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ruling: the best `count`: a job whose candidates another one took goes on with the next best."""
    scored(rows, *range(12))
    one, two = claimed(rows, {"count": 4}, "w1"), claimed(rows, {"count": 4}, "w2")
    each_chunk = select_daily.each_chunk

    def late(run: Run, ids: Any, change: Any) -> Any:
        monkeypatch.setattr(select_daily, "each_chunk", each_chunk)
        select(rows, one)
        return each_chunk(run, ids, change)

    monkeypatch.setattr(select_daily, "each_chunk", late)
    assert select(rows, two).counts["selected"] == 4
    assert selected(rows) == [f"{score:05.1f}" for score in range(4, 12)]


def test_a_bad_idea_takes_nobodys_place(rows: Rows) -> None:
    """Ruling 6: the next best comes in for what the database refuses to change, and the search has an end."""
    bad = scored(rows, 90, 80, 70, 60)[0]
    with rows.db.engine.begin() as connection:
        connection.exec_driver_sql(
            f"ALTER TABLE idea_queue ADD CHECK (id <> '{bad}' OR status = 'scored') NOT VALID"
        )
    select(rows, claimed(rows, {"count": 3}))
    assert selected(rows) == ["060.0", "070.0", "080.0"]


def test_one_bad_idea_stops_no_other(rows: Rows) -> None:
    """Ruling 6: an idea that the database refuses to change is counted; the others are selected."""
    bad = scored(rows, 90, 80, 70)[0]
    with rows.db.engine.begin() as connection:
        connection.exec_driver_sql(
            f"ALTER TABLE idea_queue ADD CHECK (id <> '{bad}' OR status = 'scored') NOT VALID"
        )
    run = select(rows, claimed(rows, {"count": 3}))
    assert selected(rows) == ["070.0", "080.0"]
    assert run.counts["failed"] == 1


@pytest.mark.parametrize("count", [..., 0, 51, -1, "6", True, 1.5, None])
def test_a_payload_that_says_nothing(rows: Rows, count: Any) -> None:
    """A slip in a payload is final, and told with its value."""
    with pytest.raises(BadInput, match="count"):
        select(rows, claimed(rows, {} if count is ... else {"count": count}))


@pytest.mark.parametrize("payload", [["count"], "count", 7, True, None])
def test_a_payload_that_is_no_object(rows: Rows, payload: Any) -> None:
    """Any JSON may stand there: a slip is final, not an error of ours that is tried five times."""
    with pytest.raises(BadInput, match="count"):
        select(rows, claimed(rows, payload))
