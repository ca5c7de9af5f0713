"""The scans: what is new becomes an idea once, and what can't be read is tried again or told."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from include.arcvest import bloomberg_scan, email_scan, feed_scan, news_scan, queue_worker, tables
from include.arcvest.jobs import QUEUE
from include.arcvest.sources import Sources
from include.errors import AlmanacError, BadInput, Outage, Refused, Transient
from include.feeds import SECONDS as LONGEST_READING
from include.feeds import FeedAnswer
from include.mailbox import Letter, MailboxAnswer
from include.queues.engine import Claim
from include.run import Run
from stack.fakes.feed_server import rss
from tests.arcvest.rows import Rows
from tests.arcvest.worker_world import FakeFeeds, FakeMailbox

A, B = "https://a.test/feed", "https://b.test/feed"
IDEAS = tables.IDEA_QUEUE
NOW = datetime.now(UTC)


def feed(*links: str) -> bytes:
    """Return a feed of these links."""
    return rss("Feed", [{"link": link, "title": f"Title of {link}"} for link in links])


def claimed(rows: Rows, job_type: str, **values: Any) -> Claim:
    """Return a claim of a job of that type."""
    rows.job(job_type, **values)
    with rows.db.transaction() as tx:
        (claim,) = QUEUE.claim(tx, "worker", 1, kinds=[job_type])
    return claim


def scan(rows: Rows, module: Any, feeds: Any = None, mailbox: Any = None, **values: Any) -> Run:
    """Let a scan's handler do one job."""
    settings = {"arcvest_news_feeds": f"{A} {B}", "arcvest_bloomberg_feeds": A}
    run = rows.run(queue_worker, NOW, settings)
    sources = Sources(feeds or FakeFeeds({}), mailbox or FakeMailbox([]))
    module.handle(run, claimed(rows, module.JOB_TYPE, **values), sources)
    return run


def urls(rows: Rows) -> list[str]:
    """Return the URLs of all ideas."""
    return sorted(row.url for row in rows.all(IDEAS))


@pytest.mark.parametrize(("module", "source"), [(news_scan, "news"), (bloomberg_scan, "bloomberg")])
def test_entries_become_ideas_once(rows: Rows, module: Any, source: str) -> None:
    """An article that two feeds have, or that a second scan finds again, is one idea."""
    feeds = FakeFeeds({A: feed("https://x.test/1", "https://x.test/2"), B: feed("https://x.test/2")})
    first, second = scan(rows, module, feeds), scan(rows, module, feeds)
    assert urls(rows) == ["https://x.test/1", "https://x.test/2"]
    assert {(row.source, row.status, row.source_name) for row in rows.all(IDEAS)} == {(source, "new", "Feed")}
    assert (first.counts["added"], second.counts["added"]) == (2, 0)


@pytest.mark.parametrize(
    ("error", "raised", "says"),
    [
        (Outage("feed b: HTTP 503"), Transient, "1 of 2 feeds could not be read: feed b: HTTP 503"),
        (Refused("feed b: HTTP 404"), None, None),
        (BadInput("feed b: not among the hosts"), None, None),
    ],
)
def test_a_feed_that_fails_holds_up_no_other(
    rows: Rows, error: AlmanacError, raised: type[Exception] | None, says: str | None
) -> None:
    """S3: 404 is told and passed over, 503 is tried again; what the others brought is kept either way."""
    feeds = FakeFeeds({A: feed("https://x.test/1"), B: error})
    if raised is None:
        assert scan(rows, news_scan, feeds).counts["feeds_failed"] == 1
    else:
        with pytest.raises(raised, match=says):
            scan(rows, news_scan, feeds)
    assert urls(rows) == ["https://x.test/1"]
    states = {row.source: row for row in rows.all(tables.SCAN_STATE)}
    assert states[A].last_error is None
    assert states[A].read_at is not None
    assert (states[B].last_error, states[B].read_at) == (str(error), None)


def test_a_feed_that_nobody_foresaw_holds_up_no_other(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3: as a broken letter does, a feed that breaks the reading stands alone, whatever is raised."""
    read_feed = feed_scan.read_feed

    def breaking(answer: FeedAnswer) -> Any:
        assert answer.url != A
        return read_feed(answer)

    monkeypatch.setattr(feed_scan, "read_feed", breaking)
    feeds = FakeFeeds({A: feed("https://x.test/1"), B: feed("https://x.test/2")})
    assert scan(rows, news_scan, feeds).counts["feeds_failed"] == 1
    assert urls(rows) == ["https://x.test/2"]
    states = {row.source: row for row in rows.all(tables.SCAN_STATE)}
    assert (states[A].last_error, states[A].read_at) == (f"feed {A}: can't be read: AssertionError", None)


def test_odd_markup_stops_no_scan(rows: Rows) -> None:
    """S3: sections that HTML doesn't have, and tags without end, are read as browsers do, and in no time."""
    odd = [
        {"link": f"https://x.test/{n}", "title": f"T{n}", "summary": f"Hello <![foo[x]>you {'<a ' * 6_000}"}
        for n in range(10)
    ]
    began = time.monotonic()
    scan(rows, news_scan, FakeFeeds({A: rss("Feed", odd), B: feed("https://x.test/b")}))
    assert time.monotonic() - began < 5
    assert len(urls(rows)) == 11
    assert {row.summary for row in rows.all(IDEAS)} == {"Hello you", None}


def test_all_feeds_wrong_for_good_is_final(rows: Rows) -> None:
    """A list of feeds that are gone is a slip for a person, not something to try five times."""
    with pytest.raises(Refused, match="none of 2 feeds"):
        scan(rows, news_scan, FakeFeeds({A: Refused("404"), B: Refused("410")}))


def test_a_repeat_asks_only_what_was_not_read(rows: Rows) -> None:
    """A job that is tried again pays for no feed twice; the next job asks all of them, and names what it knows."""
    requests: list[Any] = []

    class Noting(FakeFeeds):
        def fetch(self, asked: Any, seconds: float) -> Any:
            requests.extend(asked)
            return super().fetch(asked, seconds)

    feeds = Noting({A: feed("https://x.test/1"), B: Outage("down")})
    made = datetime.now(UTC)
    for _ in range(2):
        with pytest.raises(Transient):
            scan(rows, news_scan, feeds, created_at=made)
    assert [one.url for one in requests] == [A, B, B]
    with pytest.raises(Transient):
        scan(rows, news_scan, feeds, created_at=datetime.now(UTC) + timedelta(seconds=5))
    assert [(one.url, one.etag is not None) for one in requests[3:]] == [(A, True), (B, False)]


def test_reading_ends_before_the_scan_has_to(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan may take 60 s: what others' long documents left no time for is read by the next attempt."""
    monkeypatch.setattr(feed_scan, "READ_SECONDS", 0.1)
    read_feed = feed_scan.read_feed

    def slow(answer: FeedAnswer) -> Any:
        time.sleep(0.2)
        return read_feed(answer)

    monkeypatch.setattr(feed_scan, "read_feed", slow)
    feeds = FakeFeeds({A: feed("https://x.test/1"), B: feed("https://x.test/2")})
    made = datetime.now(UTC)
    with pytest.raises(Transient, match=r"1 of 2 feeds could not be read.*was not read in time"):
        scan(rows, news_scan, feeds, created_at=made)
    assert urls(rows) == ["https://x.test/1"]
    assert scan(rows, news_scan, feeds, created_at=made).counts["feeds"] == 1
    assert urls(rows) == ["https://x.test/1", "https://x.test/2"]


def test_a_scan_fits_into_its_time() -> None:
    """What the feeds have to answer, what reading begins in, and the longest that is begun then."""
    assert feed_scan.SECONDS + feed_scan.READ_SECONDS + LONGEST_READING < news_scan.SECONDS - 5


def test_not_modified_is_read(rows: Rows) -> None:
    """A feed that has nothing new keeps its mark and counts as read."""
    scan(rows, bloomberg_scan, FakeFeeds({A: feed("https://x.test/1")}))

    class Same:
        def fetch(self, asked: Any, seconds: float) -> Any:
            return [FeedAnswer(one.url, etag=one.etag) for one in asked]

    (before,) = rows.all(tables.SCAN_STATE)
    assert scan(rows, bloomberg_scan, Same(), created_at=NOW + timedelta(hours=1)).counts["feeds"] == 1
    (after,) = rows.all(tables.SCAN_STATE)
    assert after.etag == before.etag
    assert after.read_at > before.read_at


def letter(
    key: str, sender: str = "ana@letters.test", subject: str = "Subject", text: str = "Text"
) -> Letter:
    """Return a letter."""
    return Letter(key, sender, "Ana", subject, text, NOW)


def test_letters_become_ideas_once(rows: Rows) -> None:
    """S1: every letter once, however the server counts: the URL names it, the position moves on."""
    box = FakeMailbox([letter("1@n"), letter("2@n"), letter("1@n"), letter("a b/c?@n")])
    scan(rows, email_scan, mailbox=box)
    scan(rows, email_scan, mailbox=box)
    assert urls(rows) == ["mid:1@n", "mid:2@n", "mid:a%20b%2Fc%3F@n"]
    (state,) = rows.all(tables.SCAN_STATE)
    assert (state.source, state.position) == (box.name, "4")


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        ("all", {"1", "2", "3", "4"}),
        (["letters.test"], {"1", "2"}),
        (["@letters.test"], {"1", "2"}),
        (["ANA@letters.test "], {"1"}),
        (["mail.letters.test", "else.test"], {"2", "3"}),
    ],
)
def test_which_senders(rows: Rows, sources: Any, found: set[str]) -> None:
    """A list names addresses and domains; a domain has its subdomains, and no name that only ends like it."""
    box = FakeMailbox([
        letter("1", "ana@letters.test"),
        letter("2", "cy@mail.letters.test"),
        letter("3", "bo@else.test"),
        letter("4", "eve@evil-letters.test"),
    ])  # fmt: skip
    scan(rows, email_scan, mailbox=box, payload={"sources": sources})
    assert {url.removeprefix("mid:") for url in urls(rows)} == found


def test_other_senders_have_a_position_of_their_own(rows: Rows) -> None:
    """A scan for one sender must not make the scan for all pass over the rest."""
    box = FakeMailbox([letter("1", "ana@letters.test"), letter("2", "bo@else.test")])
    scan(rows, email_scan, mailbox=box, payload={"sources": ["letters.test"]})
    scan(rows, email_scan, mailbox=box, payload=None)
    assert urls(rows) == ["mid:1", "mid:2"]


@pytest.mark.parametrize("sources", [7, [], ["", "a"], [1], {"a": 1}, "some", None])
def test_a_payload_that_says_nothing(rows: Rows, sources: Any) -> None:
    """A slip in a payload is final, and told with its value."""
    with pytest.raises(BadInput, match="sources"):
        scan(rows, email_scan, payload={"sources": sources})


@pytest.mark.parametrize("payload", [["sources"], "sources", 7, True])
def test_a_payload_that_is_no_object(rows: Rows, payload: Any) -> None:
    """Any JSON may stand there: a slip is final, not an error of ours that is tried five times."""
    with pytest.raises(BadInput, match="payload"):
        scan(rows, email_scan, payload=payload)


def test_what_is_left_out_is_told_and_a_flood_is_stopped(rows: Rows) -> None:
    """Ruling 6: a letter that can't be read is counted and named; a full mailbox takes several scans."""

    class Flood(FakeMailbox):
        def letters_since(self, position: str | None, day: Any, seconds: float) -> MailboxAnswer:
            n = int(position or 0) + 1
            return MailboxAnswer([letter(str(n))], str(n), [f"message {n} has 9 bytes"], more=True)

    run = scan(rows, email_scan, mailbox=Flood([]))
    assert len(urls(rows)) == email_scan.MOST_READS
    assert run.notes[0] == "arcvest_mailbox/INBOX: message 1 has 9 bytes"
    assert run.notes[-1] == "arcvest_mailbox/INBOX: more letters wait; the next scan goes on"


def test_without_feeds_or_a_mailbox_there_is_nothing_to_do(rows: Rows) -> None:
    """A platform that is not set up yet is no failure every morning; the summary says what is missing."""
    run = rows.run(queue_worker, NOW, {"arcvest_news_feeds": None})
    sources = Sources(FakeFeeds({}), FakeMailbox([], is_set=False))
    news_scan.handle(run, claimed(rows, "news_scan"), sources)
    email_scan.handle(run, claimed(rows, "email_scan"), sources)
    assert run.notes == [
        "no feed to scan: the variable arcvest_news_feeds is empty",
        "no mailbox to scan: the connection names no host",
    ]


def test_a_row_that_the_database_refuses(rows: Rows) -> None:
    """Ruling 6: one bad entry stops no other."""
    with rows.db.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE idea_queue ADD CHECK (title <> 'Title of https://x.test/2')")
    run = scan(rows, bloomberg_scan, FakeFeeds({A: feed(*(f"https://x.test/{n}" for n in range(5)))}))
    assert len(urls(rows)) == 4
    assert run.counts["failed"] == 1
