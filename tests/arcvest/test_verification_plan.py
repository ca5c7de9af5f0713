"""The specification's verification plan, point by point.

1 is in test_queue (`test_1_run_migration`), 4 in test_content_pipeline (`test_4_…`).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pendulum
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.timetables.base import DataInterval, TimeRestriction
from airflow.timetables.trigger import CronTriggerTimetable
from sqlalchemy import text

from include.arcvest import content_pipeline, morning_batch, queue_worker, tables
from include.arcvest.queue_worker import Outside, SilentBell
from include.errors import Outage
from include.job import NothingOutside
from stack.fakes.feed_server import rss
from tests.arcvest import world
from tests.arcvest.rows import Rows
from tests.arcvest.worker_world import FakeFeeds, FakeMailbox, letters
from tests.dags.every import ROOT

JOBS = tables.JOB_QUEUE
NEWS = "https://news.test/feed"
SETTINGS: dict[str, str | None] = {"arcvest_news_feeds": NEWS, "arcvest_bloomberg_feeds": NEWS}


def work(rows: Rows, feeds: FakeFeeds, mailbox: FakeMailbox | None = None) -> Any:
    """Let the worker run once."""
    run = rows.run(queue_worker, datetime.now(UTC), SETTINGS, slots=3)
    outside = Outside(feeds, mailbox or FakeMailbox([]), SilentBell())
    for step in queue_worker.STEPS:
        step(run, outside)
    return run


@pytest.mark.parametrize(
    "day",
    [datetime(2026, 11, 25, tzinfo=UTC), datetime(2026, 3, 8, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)],
)
def test_2_worker_cron_runs_every_5_minutes(day: datetime) -> None:
    """Verification plan 2: every five minutes of a day, also of those on which Chicago's clocks change."""
    said: Any = DagBag(str(ROOT / "dags" / "arcvest")).dags["arcvest_queue_worker"].timetable
    schedule = CronTriggerTimetable(said.timetable.expression, timezone=said.timetable.timezone)
    restriction = TimeRestriction(earliest=pendulum.instance(day), latest=None, catchup=True)
    fired: list[datetime] = []
    last: DataInterval | None = None
    while len(fired) < 24 * 12:
        info = schedule.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)
        assert info is not None
        fired.append(info.run_after)
        last = info.data_interval
    assert fired == [day + n * timedelta(minutes=5) for n in range(24 * 12)]


@pytest.mark.parametrize("delays", [[30, 60, 120, 240]])
def test_3_retry_logic(rows: Rows, delays: list[int]) -> None:
    """Verification plan 3: a job that fails waits 30, 60, 120 and 240 s, and is failed after its fifth attempt."""
    feeds = FakeFeeds({NEWS: Outage("feed: answered HTTP 529")})
    job = rows.job("news_scan")
    for attempt, delay in enumerate(delays, start=1):
        before = datetime.now(UTC)
        work(rows, feeds)
        row = rows.one(JOBS, job)
        assert (row.status, row.attempts, row.completed_at) == ("pending", attempt, None)
        assert "HTTP 529" in row.last_error
        assert timedelta(0) <= row.next_run_at - before - timedelta(seconds=delay) < timedelta(seconds=5)
        work(rows, feeds)
        assert rows.one(JOBS, job).attempts == attempt, "tried before its time"
        with rows.db.transaction() as tx:
            tx.execute(text("UPDATE job_queue SET next_run_at = now()"))
    work(rows, feeds)
    row = rows.one(JOBS, job)
    assert (row.status, row.attempts) == ("failed", 5)
    assert row.completed_at is not None
    (log,) = rows.all(tables.ACTIVITY_LOG)
    assert log.metadata == {
        "job_id": str(job),
        "job_type": "news_scan",
        "attempts": 5,
        "error": row.last_error,
    }


def test_5_stuck_job_cleanup(rows: Rows) -> None:
    """Verification plan 5: a job in processing since long ago is reset; one that is alive is left alone.

    Stuck is no heartbeat for 10 minutes, not a long run; an idea goes back to selected by the same rule.
    """
    now = datetime.now(UTC)
    held: dict[str, Any] = {"status": "processing", "attempts": 1, "started_at": now - timedelta(hours=2)}
    stuck = rows.job("news_scan", **held)
    silent = rows.job("news_scan", claimed_by="w", heartbeat_at=now - timedelta(minutes=11), **held)
    alive = rows.job("news_scan", claimed_by="w", heartbeat_at=now - timedelta(minutes=9), **held)
    last = rows.job("news_scan", **(held | {"attempts": 5}))
    idea = rows.idea(status="processing", updated_at=now - timedelta(minutes=11))
    fresh = rows.idea(status="processing", updated_at=now - timedelta(minutes=9))
    run = work(rows, FakeFeeds({NEWS: rss("N", [])}))
    assert [rows.one(JOBS, job).status for job in (stuck, silent, alive, last)] == [
        "pending",
        "pending",
        "processing",
        "failed",
    ]
    assert rows.one(JOBS, stuck).next_run_at > now + timedelta(seconds=25)
    assert run.counts["taken_back"] == 3
    assert [rows.one(tables.IDEA_QUEUE, one).status for one in (idea, fresh)] == ["selected", "processing"]


def test_6_end_to_end(rows: Rows) -> None:
    """Verification plan 6: the morning batch goes through the queue, and articles appear in the calendar."""
    now = datetime.now(UTC)
    items = [
        {"link": f"https://news.test/{n}", "title": f"Retirement and tax {n}", "published": now.isoformat()}
        for n in range(8)
    ]
    rows.perform(morning_batch, NothingOutside(), now)
    work(rows, FakeFeeds({NEWS: rss("News", items)}), FakeMailbox(letters(now)))
    around = world.world(now)
    while True:
        run = rows.run(content_pipeline, now, world.SETTINGS, idea_id=None)
        outside = world.outside(content_pipeline, around)
        for step in content_pipeline.STEPS:
            handed = step(run, outside)
            if handed is False:
                break
            run.handed.update(handed if isinstance(handed, dict) else {})
        if not run.counts["processed"]:
            break
    assert {(row.job_type, row.status) for row in rows.all(JOBS)} == {
        (kind, "completed")
        for kind in (
            "news_scan",
            "email_scan",
            "bloomberg_scan",
            "score_ideas",
            "select_daily",
            "process_pipeline",
        )
    }
    articles = rows.all(tables.CONTENT_CALENDAR)
    assert len(articles) == 6
    assert all(row.html and row.excerpt and row.tags and row.image_prompt for row in articles)
