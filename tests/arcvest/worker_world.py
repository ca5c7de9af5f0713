"""What the worker's jobs work on: rows of its queue, ideas, feeds and a mailbox."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert

from include.arcvest import tables
from include.errors import AlmanacError, Outage
from include.feeds import FeedAnswer, FeedRequest
from include.mailbox import Letter, MailboxAnswer
from stack.fakes.feed_server import atom, rss
from tests.fakes.world import Tick, no_tick

SETTINGS: dict[str, str | None] = {
    "arcvest_news_feeds": "https://news.test/feed https://other.test/feed",
    "arcvest_bloomberg_feeds": "https://bloomberg.test/feed https://down.test/feed",
}


def name(kind: str, number: int) -> uuid.UUID:
    """Return a stable id, so that two seeded databases hold the same rows."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"arcvest/{kind}/{number}")


def insert_rows(connection: Connection, table: Any, rows: list[dict[str, Any]]) -> None:
    """Insert rows that need not have the same columns; what one leaves out gets its default."""
    for row in rows:
        connection.execute(insert(table), [row])


def add_jobs(connection: Connection, now: datetime) -> None:
    """Insert a job for every way that one can stand, and every type."""
    ended = {"started_at": now - timedelta(hours=3), "completed_at": now - timedelta(hours=2)}
    due = {"created_at": now - timedelta(minutes=10), "next_run_at": now - timedelta(minutes=5)}
    batch = due | {"correlation_id": name("batch", 1)}
    held = {"status": "processing", "attempts": 1}
    silent = {"claimed_by": "gone", "heartbeat_at": now - timedelta(minutes=20)}
    jobs: list[dict[str, Any]] = [
        {"job_type": "news_scan", "status": "completed", "attempts": 1, **ended},
        {"job_type": "email_scan", "status": "failed", "attempts": 5, **ended},
        {"job_type": "score_ideas", "status": "cancelled"},
        {"job_type": "news_scan", "priority": 10, **batch},
        {"job_type": "score_ideas", "priority": 8, **batch},
        {"job_type": "select_daily", "priority": 7, "payload": {"count": 2}, **batch},
        {"job_type": "bloomberg_scan", "priority": 9, **due},
        {"job_type": "email_scan", "payload": {"sources": ["letters.test"]}, **due},
        {"job_type": "email_scan", "payload": None, **due},
        {"job_type": "select_daily", "payload": {"count": 0}, **due},
        {"job_type": "an application's own", "priority": 99, **due},
        {"job_type": "score_ideas", "next_run_at": now + timedelta(hours=1)},
        {"job_type": "news_scan", "started_at": now - timedelta(minutes=20), **held, **silent},
        {"job_type": "email_scan", **held, **silent, "attempts": 5},
        {"job_type": "news_scan", **held, "claimed_by": "alive", "heartbeat_at": now + timedelta(hours=1)},
        {"job_type": "news_scan", **held, "claimed_by": "node", "started_at": now - timedelta(minutes=2)},
    ]
    insert_rows(
        connection, tables.JOB_QUEUE, [{"id": name("job", n), **job} for n, job in enumerate(jobs, start=1)]
    )


def add_ideas(connection: Connection, now: datetime) -> None:
    """Insert an idea for every way that one can stand."""
    day = timedelta(days=1)
    long_ago, lately = {"updated_at": now - day}, {"updated_at": now - timedelta(minutes=2)}
    ideas: list[dict[str, Any]] = [
        {"status": "completed", "pipeline_step": "completed"},
        {"status": "new", "title": "Roth IRA: taxes in retirement", "summary": "Bonds. " * 70},
        {"status": "new", "title": "Interest rates and the Fed", "published_at": now - 2 * day},
        {"status": "new", "source": "blog", "title": "Cats", "published_at": now - 9 * day},
        {"status": "scored", "score": 99, "published_at": now - 15 * day},
        {"status": "scored", "score": 98.5, "published_at": now - 2 * day},
        {"status": "scored", "score": 98, "published_at": now - 3 * day},
        {"status": "scored", "score": 97, "published_at": now - day},
        {"status": "processing", **long_ago},
        {"status": "processing", **long_ago},
        {"status": "processing", **lately},
        {"status": "selected", **long_ago},
    ]
    insert_rows(
        connection,
        tables.IDEA_QUEUE,
        [
            {
                "id": name("idea", n),
                "source": "news",
                "url": f"https://news.test/{n}",
                "title": f"Idea {n}",
                "created_at": now - 2 * day,
                "updated_at": now - day,
                **idea,
            }
            for n, idea in enumerate(ideas, start=1)
        ],
    )


HOSTILE = '<a href="https://evil.test">Reset</a> & Co'


def feed_answers(now: datetime) -> dict[str, bytes | AlmanacError]:
    """Return what each feed answers: one is down, and one has a page that another has too."""

    def entry(n: int, title: str) -> dict[str, str]:
        published = (now - timedelta(hours=n)).isoformat()
        return {"link": f"https://found.test/{n}", "title": title, "published": published}

    return {
        "https://news.test/feed": rss("News", [entry(1, "Inflation and bonds"), entry(2, HOSTILE)]),
        "https://other.test/feed": atom("Other", [entry(1, "The same page again"), entry(3, "Cats & dogs")]),
        "https://bloomberg.test/feed": rss("Bloomberg", [entry(4, "Stocks fall")]),
        "https://down.test/feed": Outage("feed https://down.test/feed answered HTTP 503"),
    }


def letters(now: datetime) -> list[Letter]:
    """Return the mailbox's letters: of two senders, one of them without a word."""
    return [
        Letter("1@letters.test", "ana@letters.test", "Ana", HOSTILE, "Pensions", now - timedelta(hours=4)),
        Letter("2@else.test", "bo@else.test", "Bo", "Estate planning", "Trusts", None),
        Letter("3@letters.test", "cy@mail.letters.test", "Cy", "", "", None),
        Letter("4@letters.test", "cy@mail.letters.test", "Cy", "", "Words alone", None),
    ]


@dataclass
class FakeFeeds:
    """Feeds that answer at once, with a body or an error."""

    answers: dict[str, bytes | AlmanacError]
    tick: Tick = no_tick

    def fetch(self, asked: Sequence[FeedRequest], seconds: float) -> Sequence[FeedAnswer]:
        self.tick("feeds before")
        found = [self._answer(one.url) for one in asked]
        self.tick("feeds after")
        return found

    def _answer(self, url: str) -> FeedAnswer:
        answer = self.answers[url]
        if isinstance(answer, AlmanacError):
            return FeedAnswer(url, error=answer)
        return FeedAnswer(url, answer, "application/xml", etag=f'"{len(answer)}"')


@dataclass
class FakeMailbox:
    """A mailbox that gives its letters two at a time."""

    letters: list[Letter]
    tick: Tick = no_tick
    name: str = "arcvest_mailbox/INBOX"
    is_set: bool = True

    def letters_since(self, position: str | None, day: date, seconds: float) -> MailboxAnswer:
        self.tick("mailbox before")
        first = int(position or 0)
        taken = self.letters[first : first + 2]
        self.tick("mailbox after")
        return MailboxAnswer(taken, str(first + len(taken)), (), first + 2 < len(self.letters))
