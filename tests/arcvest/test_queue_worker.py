"""The worker: what it takes, how many at a time, and what becomes of a job that fails."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from include.arcvest import queue_worker, tables
from include.arcvest.job_types import TYPES, types_within
from include.arcvest.pipeline_call import CHANNEL
from include.arcvest.queue_worker import Outside, SilentBell
from include.errors import BadInput, Outage
from include.feeds import FeedAnswer, FeedRequest
from include.preview import preview
from include.queues import heartbeat
from include.run import Database, Run
from stack.fakes.feed_server import rss
from tests.arcvest.rows import Rows
from tests.arcvest.worker_world import FakeFeeds, FakeMailbox

NEWS = "https://news.test/feed"
SETTINGS: dict[str, str | None] = {"arcvest_news_feeds": NEWS}
JOBS = tables.JOB_QUEUE


def good_feeds() -> FakeFeeds:
    """Return one feed with one entry."""
    return FakeFeeds({NEWS: rss("News", [{"link": "https://news.test/1", "title": "One"}])})


def work(
    rows: Rows,
    feeds: Any = None,
    bell: Any = None,
    slots: int | None = 1,
    settings: dict[str, str | None] | None = None,
) -> Any:
    """Let the worker run once, and return its run."""
    run = rows.run(queue_worker, datetime.now(UTC), SETTINGS | (settings or {}), slots=slots)
    outside = Outside(feeds or good_feeds(), FakeMailbox([]), bell or SilentBell())
    for step in queue_worker.STEPS:
        step(run, outside)
    return run


def test_a_job_is_done(rows: Rows) -> None:
    """The plain case: a due job is claimed, its attempt counted, its work kept, and it is completed."""
    job = rows.job("news_scan")
    run = work(rows)
    row = rows.one(JOBS, job)
    assert (row.status, row.attempts, row.claimed_by, row.last_error) == ("completed", 1, None, None)
    assert row.completed_at >= row.started_at
    assert [idea.title for idea in rows.all(tables.IDEA_QUEUE)] == ["One"]
    assert run.counts["processed"] == run.counts["completed"] == run.counts["added"] == 1


def test_what_is_others_is_left(rows: Rows) -> None:
    """The pipeline's rows are its DAG's, and an application's own types are the application's: it says so."""
    mine, other = rows.job("process_pipeline", payload={"idea_id": str(uuid.uuid4())}), rows.job("post_tweet")
    later = rows.job("news_scan", next_run_at=datetime.now(UTC) + timedelta(minutes=1))
    run = work(rows)
    assert {rows.one(JOBS, job).status for job in (mine, other, later)} == {"pending"}
    assert run.counts["processed"] == 0
    assert run.notes == [
        "due: 1 of post_tweet, a type that the platform leaves to others",
        "due: 1 of process_pipeline",
    ]


@dataclass
class Meeting:
    """Feeds that answer once as many have asked as are to work at a time, or after a while."""

    together: int
    most: int = 0
    now: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    met: threading.Event = field(default_factory=threading.Event)

    def fetch(self, asked: Any, seconds: float) -> list[FeedAnswer]:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now == self.together:
                self.met.set()
        self.met.wait(10)
        time.sleep(0.05)
        with self.lock:
            self.now -= 1
        return [FeedAnswer(one.url, rss("N", []), "text/xml") for one in asked]


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_up_to_slots_jobs_at_a_time(rows: Rows, slots: int) -> None:
    """Ruling: up to `slots` jobs are done at a time, and never more."""
    for _ in range(7):
        rows.job("news_scan", created_at=datetime.now(UTC) + timedelta(hours=1))
    feeds = Meeting(slots)
    run = work(rows, feeds, slots=slots)
    assert feeds.most == slots
    assert run.counts["completed"] == 7
    assert {row.status for row in rows.all(JOBS)} == {"completed"}


def test_a_batch_is_done_in_order_whatever_the_slots(rows: Rows) -> None:
    """Ruling: scans precede scores and scores precede the selection, though three could be done at a time."""
    batch = uuid.uuid4()
    for kind, priority, payload in (
        ("select_daily", 7, {"count": 1}),
        ("score_ideas", 8, {}),
        ("news_scan", 10, {}),
    ):
        rows.job(kind, priority=priority, payload=payload, correlation_id=batch)
    work(rows, slots=3)
    ended = rows.all(JOBS, JOBS.c.completed_at)
    assert [row.job_type for row in ended][:3] == ["news_scan", "score_ideas", "select_daily"]
    (idea,) = rows.all(tables.IDEA_QUEUE)
    assert idea.status == "selected"
    (pipeline,) = [row for row in ended if row.job_type == "process_pipeline"]
    assert (pipeline.payload, pipeline.correlation_id) == ({"idea_id": str(idea.id)}, batch)


@pytest.mark.parametrize(
    ("seconds", "types"),
    [
        (90, {"news_scan", "bloomberg_scan", "email_scan", "score_ideas", "select_daily"}),
        (89.9, {"news_scan", "bloomberg_scan", "score_ideas", "select_daily"}),
        (59.9, {"select_daily"}),
        (29.9, set()),
    ],
)
def test_a_job_is_claimed_only_while_it_can_end_in_time(seconds: float, types: set[str]) -> None:
    """Ruling: a job that would be killed halfway is left to the next run."""
    assert set(types_within(seconds)) == types
    assert max(one.seconds for one in TYPES.values()) < queue_worker.KILLED_AFTER


@dataclass
class Clock:
    """A clock that a test moves; nobody waits by it."""

    now: float = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("passed", "left"),
    [
        (199, set()),
        (201, {"email_scan"}),
        (229, {"email_scan"}),
        (231, {"email_scan", "score_ideas"}),
        (239, {"email_scan", "score_ideas"}),
        (241, {"email_scan", "score_ideas", "select_daily"}),
    ],
)
def test_the_worker_claims_what_its_time_covers(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, passed: float, left: set[str]
) -> None:
    """Ruling: of a run that is killed at 300 s, with 10 s to spare, a job is claimed only if it ends before."""
    clock = Clock()
    monkeypatch.setattr(queue_worker, "time", clock)

    class Long(FakeFeeds):
        def fetch(self, asked: Any, seconds: float) -> Any:
            clock.now += passed
            return super().fetch(asked, seconds)

    rows.job("news_scan", priority=9)
    rows.job("email_scan")
    rows.job("score_ideas")
    rows.job("select_daily", payload={"count": 1})
    work(rows, Long({NEWS: rss("News", [])}))
    assert {row.job_type for row in rows.all(JOBS) if row.status == "pending"} == left
    assert {row.status for row in rows.all(JOBS) if row.job_type not in left} == {"completed"}


def test_claims_stay_alive_while_jobs_take_long(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ruling: stuck is no heartbeat, not a long run: the worker's come from beside the work."""
    monkeypatch.setattr(heartbeat, "BEATS_PER_LIFE", 6_000)
    old = datetime.now(UTC) - timedelta(minutes=9)
    job = rows.job("news_scan")

    class Long(FakeFeeds):
        def fetch(self, asked: Any, seconds: float) -> Any:
            with rows.db.transaction() as tx:
                tx.execute(text("UPDATE job_queue SET heartbeat_at = :old"), old=old)
            give_up_at = time.monotonic() + 20
            while rows.one(JOBS, job).heartbeat_at == old:
                assert time.monotonic() < give_up_at, "no heartbeat came"
                time.sleep(0.05)
            return super().fetch(asked, seconds)

    assert work(rows, Long(good_feeds().answers)).counts["completed"] == 1


@pytest.mark.parametrize("step", [queue_worker.free_stuck, queue_worker.report_queue])
def test_the_pipeline_is_called_for_retries_that_fell_due(rows: Rows, step: Callable[..., None]) -> None:
    """A delay that ends makes no sound: the worker calls, before its work and after it."""
    rows.job("process_pipeline", payload={"idea_id": str(uuid.uuid4())})
    run = rows.run(queue_worker, datetime.now(UTC), SETTINGS, slots=1)
    outside = Outside(good_feeds(), FakeMailbox([]), SilentBell())
    address = rows.db.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as listener:
        listener.execute(f"LISTEN {CHANNEL}")
        step(run, outside)
        assert list(listener.notifies(timeout=2, stop_after=1))


def test_without_a_number_of_slots_the_usual_holds(rows: Rows) -> None:
    """Ruling 10: what an event starts brings no params: null means the default."""
    for _ in range(5):
        rows.job("news_scan", created_at=datetime.now(UTC) + timedelta(hours=1))
    feeds = Meeting(queue_worker.SLOTS)
    work(rows, feeds, slots=None)
    assert feeds.most == queue_worker.SLOTS == 3


@pytest.mark.parametrize(
    ("kind", "payload"),
    [("email_scan", ["x"]), ("email_scan", "x"), ("select_daily", ["x"]), ("select_daily", 7)],
)
def test_a_payload_that_is_no_object_is_final(rows: Rows, kind: str, payload: Any) -> None:
    """A slip in a payload ends its job at the first attempt, and breaks no preview."""
    job = rows.job(kind, payload=payload)
    outside = Outside(good_feeds(), FakeMailbox([]), SilentBell())

    def make(database: Database) -> Run:
        run = rows.run(queue_worker, datetime.now(UTC), SETTINGS, slots=1)
        return replace(run, db=database, preview=True)

    assert preview(rows.db.engine, queue_worker, make, outside)["counts"]["failed"] == 1
    work(rows)
    row = rows.one(JOBS, job)
    assert (row.status, row.attempts) == ("failed", 1)


@pytest.mark.parametrize("given", ["0", "241", "-1", "ten", "", None])
def test_a_slip_in_the_time_is_told(rows: Rows, given: str | None) -> None:
    """A worker that ran to its kill would lose what it holds."""
    with pytest.raises(BadInput, match="arcvest_worker_seconds"):
        work(rows, settings={"arcvest_worker_seconds": given})


@dataclass
class RingingBell:
    """A bell that does something the first time it is waited for, and rings."""

    then: Callable[[], Any]
    live: bool = True
    waited: int = 0

    def listening(self) -> AbstractContextManager[None]:
        return nullcontext()

    def wait(self, seconds: float) -> bool:
        self.waited += 1
        if self.waited == 1:
            self.then()
            return True
        self.live = False
        return False


def test_it_listens_for_more_until_its_time_is_over(rows: Rows) -> None:
    """Ruling: a job that is enqueued while the worker waits is done at once, not five minutes later."""
    bell = RingingBell(lambda: rows.job("news_scan"))
    run = work(rows, bell=bell)
    assert run.counts["completed"] == 1
    began = time.monotonic()
    idle = RingingBell(lambda: time.sleep(0.3))
    idle.wait = lambda seconds: bool(time.sleep(min(seconds, 0.2)))  # type: ignore[method-assign]
    work(rows, bell=idle, settings={"arcvest_worker_seconds": "1"})
    assert 0.9 < time.monotonic() - began < 3


def test_a_slip_of_ours_keeps_the_rows_attempts(rows: Rows) -> None:
    """An error that nobody thought of is no reason to give a job up at once, nor to stop the others."""

    class Broken:
        def fetch(self, asked: list[FeedRequest], seconds: float) -> list[FeedAnswer]:
            raise ZeroDivisionError("oops")

    job, other = rows.job("news_scan", priority=1), rows.job("score_ideas")
    work(rows, Broken())
    row = rows.one(JOBS, job)
    assert (row.status, row.attempts, row.last_error) == ("pending", 1, "ZeroDivisionError: oops")
    assert rows.one(JOBS, other).status == "completed"


def test_a_job_that_was_taken_away_is_not_completed(rows: Rows) -> None:
    """R6: a worker that was given up for dead and comes back changes nothing of the job."""
    job = rows.job("news_scan")

    class Taken(FakeFeeds):
        def fetch(self, asked: Any, seconds: float) -> Any:
            with rows.db.transaction() as tx:
                tx.execute(
                    text(
                        "UPDATE job_queue SET status = 'pending', claimed_by = NULL, next_run_at = '2099-01-01'"
                    )
                )
            return super().fetch(asked, seconds)

    run = work(rows, Taken(good_feeds().answers))
    assert rows.one(JOBS, job).status == "pending"
    assert (run.counts["stale"], run.counts["completed"]) == (1, 0)


def test_a_permanent_error_ends_a_job_at_once(rows: Rows) -> None:
    """Ruling: what can't succeed is not tried five times; the activity log has it."""
    job = rows.job("email_scan", payload={"sources": 7})
    run = work(rows)
    row = rows.one(JOBS, job)
    assert (row.status, row.attempts) == ("failed", 1)
    (log,) = rows.all(tables.ACTIVITY_LOG)
    assert log.type == "job_failed_permanently"
    assert log.metadata == {
        "job_id": str(job),
        "job_type": "email_scan",
        "attempts": 1,
        "error": row.last_error,
    }
    assert run.notes == ["failed in the last 24 hours: 1 of email_scan"]


def test_a_row_of_its_own_limit(rows: Rows) -> None:
    """Engine: the row's own max_attempts wins."""
    feeds = FakeFeeds({NEWS: Outage("feed: down")})
    once = rows.job("news_scan", max_attempts=1)
    work(rows, feeds)
    assert rows.one(JOBS, once).status == "failed"
