"""The demo data: each job has something to do on it, and putting it in again changes nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from include.arcvest import content_pipeline, demo, evening_batch, morning_batch, queue_worker, tables
from include.arcvest.queue_worker import Outside, SilentBell
from include.as_of import instant
from include.feeds import FeedAnswer, read_feed
from include.job import NothingOutside
from stack.fakes.feed_server import FeedServer
from stack.fakes.imap_server import ImapServer
from tests.arcvest import world
from tests.arcvest.rows import Rows
from tests.arcvest.worker_world import FakeFeeds, FakeMailbox

MOMENTS = ["2027-03-14T07:30:00Z", "2028-02-29T23:59:00Z", "2026-11-01T06:30:00Z"]


def seed(rows: Rows, now: datetime) -> None:
    """Put the demo data in."""
    with rows.db.engine.begin() as connection:
        demo.seed(connection, now)


def counts(rows: Rows) -> dict[str, int]:
    """Return how many rows each table has."""
    with rows.db.engine.begin() as connection:
        return {
            name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in tables.METADATA.tables.items()
        }


@pytest.mark.parametrize("moment", MOMENTS)
def test_it_goes_in_twice_as_once(rows: Rows, moment: str) -> None:
    """A second `make demo` starts from the same rows, also where jobs have been done meanwhile."""
    seed(rows, instant(moment))
    before = counts(rows)
    assert all(before[name] for name in ("job_queue", "idea_queue", "content_calendar", "activity_log"))
    seed(rows, instant(moment))
    assert counts(rows) == before


def test_each_job_has_something_to_do(rows: Rows) -> None:
    """`make demo` shows every DAG at work: its main count is above zero."""
    now = datetime.now(UTC)
    seed(rows, now)
    for job in (morning_batch, evening_batch):
        assert rows.perform(job, NothingOutside(), now).counts["queued"] > 0
    run = rows.run(queue_worker, now, {}, slots=3)
    outside = Outside(FakeFeeds({}), FakeMailbox([]), SilentBell())
    for step in queue_worker.STEPS:
        step(run, outside)
    assert run.counts["processed"] > 5
    assert run.counts["taken_back"] == 1
    assert run.counts["released"] == 1
    assert run.counts["scored"] + run.counts["selected"] > 0
    run = rows.run(content_pipeline, now, world.SETTINGS, idea_id=None)
    assert content_pipeline.claim_job(run, world.outside(content_pipeline, world.world(now)))
    assert run.counts["processed"] == 1


def test_what_the_scans_find(tmp_path: Path) -> None:
    """The servers on loopback serve the demo's files as feeds and letters that the hooks can read."""
    now = datetime.now(UTC)
    feeds, letters = tmp_path / "feeds.json", tmp_path / "letters.json"
    feeds.write_text(json.dumps(demo.feeds(now)))
    letters.write_text(json.dumps(demo.letters(now)))
    server = FeedServer(data=feeds)
    found: dict[str, Any] = {}
    for path in demo.feeds(now):
        served = server.served(path)
        found[path] = read_feed(FeedAnswer(f"https://x.test{path}", served.body, served.content_type))
    assert {path: len(entries) for path, entries in found.items()} == {
        "/arcvest/news": 8,
        "/arcvest/bloomberg": 4,
    }
    assert demo.HOSTILE_TITLE not in [entry.title for entry in found["/arcvest/news"]]
    assert len(ImapServer(data=letters).stored()) == 3
