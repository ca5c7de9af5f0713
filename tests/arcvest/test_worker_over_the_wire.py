"""The worker with its real hooks: feeds over HTTP, letters over IMAP, and the database's own bell."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime

import pytest

from hooks.bell import PostgresBell
from hooks.feeds import feeds
from hooks.mailbox import mailbox
from include.arcvest import morning_batch, queue_worker, tables
from include.arcvest.jobs import CHANNEL
from include.arcvest.queue_worker import Outside
from include.job import NothingOutside
from stack.fakes.feed_server import FeedServer, as_feed, atom, rss
from stack.fakes.imap_server import ImapServer, letter
from tests.arcvest.rows import Rows

JOBS = tables.JOB_QUEUE


def test_a_morning_is_heard_and_worked_through(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way, as the DAG puts it together: a batch that comes in while the worker waits is done by it."""
    now = datetime.now(UTC)
    item = {"link": "https://news.test/1", "title": "Roth IRA and taxes", "published": now.isoformat()}
    with FeedServer() as server, ImapServer() as account:
        server.feeds["/news"] = as_feed(rss("News", [item]))
        server.feeds["/markets"] = as_feed(
            atom("Markets", [item | {"link": "https://markets.test/1"}]), "application/atom+xml"
        )
        account.add(letter(message_id="1@n.test", sender="Ana <ana@n.test>", subject="Bonds", sent_at=now))
        url = rows.db.engine.url
        said = {
            "ARCVEST_DB": {
                "conn_type": "postgres", "host": url.query["host"], "port": int(str(url.query["port"])),
                "login": url.username, "schema": url.database,
            },
            "ARCVEST_FEEDS": {
                "conn_type": "almanac_feeds", "extra": {"hosts": server.host, "private_addresses": "true"},
            },
            "ARCVEST_MAILBOX": {
                "conn_type": "almanac_mailbox", "host": "127.0.0.1", "port": account.port, "login": account.login,
                "password": account.password, "extra": {"security": "none"},
            },
        }  # fmt: skip
        for name, parts in said.items():
            monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps(parts))
        settings: dict[str, str | None] = {
            "arcvest_news_feeds": f"{server.url}/news",
            "arcvest_bloomberg_feeds": f"{server.url}/markets",
            "arcvest_worker_seconds": "15",
        }
        run = rows.run(queue_worker, now, settings, slots=3)
        bell = PostgresBell("arcvest_db", CHANNEL)
        outside = Outside(feeds("arcvest_feeds"), mailbox("arcvest_mailbox"), bell)
        worker = threading.Thread(target=queue_worker.work_jobs, args=(run, outside))
        worker.start()
        time.sleep(1)
        rows.perform(morning_batch, NothingOutside(), now)
        worker.join(60)
    assert not worker.is_alive()
    assert {row.job_type for row in rows.all(JOBS) if row.status == "completed"} == {
        "news_scan",
        "bloomberg_scan",
        "email_scan",
        "score_ideas",
        "select_daily",
    }
    assert {(row.source, row.status) for row in rows.all(tables.IDEA_QUEUE)} == {
        ("news", "selected"),
        ("bloomberg", "selected"),
        ("email", "selected"),
    }
