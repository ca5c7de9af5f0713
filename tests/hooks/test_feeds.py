"""The feeds hook, against a small server on loopback that answers like good and like hostile ones."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from hooks.connections import access
from hooks.feeds import LARGEST_FEED, FeedsHook, HttpFeeds
from include.errors import AlmanacError, BadInput, Outage, Refused
from include.feeds import FeedAnswer, FeedRequest, read_feed
from stack.fakes.feed_server import FeedServer, as_feed, atom, rss
from stack.fakes.http_fake import Sent

ONE = [{"link": "https://news.test/1", "title": "One", "published": "2026-11-25T10:00:00+00:00"}]


@pytest.fixture
def server() -> Iterator[FeedServer]:
    """Run a server with one good feed."""
    with FeedServer() as running:
        running.feeds["/good"] = as_feed(rss("News", ONE))
        yield running


@pytest.fixture
def connect(server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes the hook for the connection, whose extra can be changed."""

    def connected(host: str | None = None, **changed: Any) -> HttpFeeds:
        extra = {"hosts": [server.host], "private_addresses": True} | changed
        parts = {"conn_type": "almanac_feeds", "host": host, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_FEEDS_TEST", json.dumps(parts))
        return HttpFeeds(access("feeds_test"))

    return connected


def one(feeds: HttpFeeds, url: str, seconds: float = 10, **marks: str) -> FeedAnswer:
    """Return the answer of one feed."""
    (answer,) = feeds.fetch([FeedRequest(url, **marks)], seconds)
    return answer


def test_a_feed_is_fetched_once_and_then_only_asked_whether_it_changed(
    connect: Any, server: FeedServer
) -> None:
    """A scan every morning of fifty feeds should cost fifty small answers, not fifty large ones."""
    first = one(connect(), f"{server.url}/good")
    assert first.error is None
    assert [entry.url for entry in read_feed(first)] == ["https://news.test/1"]
    second = one(connect(), f"{server.url}/good", etag=str(first.etag))
    assert (second.body, second.error, second.etag) == (None, None, first.etag)


def test_many_feeds_are_asked_at_once_and_answer_in_order(connect: Any, server: FeedServer) -> None:
    """One slow feed must not take the time of the others."""
    for n in range(8):
        server.feeds[f"/{n}"] = as_feed(atom(f"Feed {n}", ONE), delay=0.4)
    began = time.monotonic()
    answers = connect().fetch([FeedRequest(f"{server.url}/{n}") for n in range(8)], 10)
    assert time.monotonic() - began < 2
    assert [read_feed(answer)[0].source_name for answer in answers] == [f"Feed {n}" for n in range(8)]


BOMB = gzip.compress(b"<rss>" + b" " * (LARGEST_FEED * 8))


@pytest.mark.parametrize(
    ("served", "error", "says"),
    [
        (Sent(status=404), Refused, "HTTP 404"),
        (Sent(status=410), Refused, "HTTP 410"),
        (Sent(status=429, headers={"Retry-After": "60"}), Outage, "HTTP 429"),
        (Sent(status=403), Outage, "HTTP 403"),
        (Sent(status=500), Outage, "HTTP 500"),
        (Sent(body=b"<rss>" + b" " * LARGEST_FEED), Refused, "larger than"),
        (Sent(body=BOMB, headers={"Content-Encoding": "gzip"}), Refused, "larger than"),
        (Sent(body=b"not gzip", headers={"Content-Encoding": "gzip"}), Outage, "no whole answer"),
        (Sent(body=b"<rss>......", cut=4), Outage, "no whole answer"),
        (Sent(body=b"<rss>", delay=30), Outage, "in time"),
        (Sent(body=b"<rss>" + b" " * 200, drip=0.2), Outage, "in time"),
        (Sent(body=b"", headers={"X-Long": "x" * 100_000}), Outage, "no whole answer"),
    ],
)
def test_a_bad_answer_is_an_error_of_that_feed_alone(
    connect: Any, server: FeedServer, served: Sent, error: type[AlmanacError], says: str
) -> None:
    """S3: 404 is final, 500 is tried again; an answer without end in size or time ends ours, not the scan."""
    server.feeds["/bad"] = served
    began = time.monotonic()
    bad, good = connect().fetch([FeedRequest(f"{server.url}/bad"), FeedRequest(f"{server.url}/good")], 5)
    assert time.monotonic() - began < 15
    assert isinstance(bad.error, error)
    assert says in str(bad.error)
    assert good.error is None
    assert good.body


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254 is not among the hosts"),
        ("http://localhost:1/", "localhost:1 is not among the hosts"),
        ("file:///etc/passwd", "is not an http(s) URL"),
        ("//evil.test/feed", "evil.test is not among the hosts"),
        ("http://user@[::1]/", "is not an http(s) URL"),
        ("http://[::1", "is not a URL"),
        ("", "more than 5 redirects"),
    ],
)
def test_a_redirect_leads_to_allowed_hosts_alone(
    connect: Any, server: FeedServer, location: str, says: str
) -> None:
    """S3: a feed must not make this machine ask the cloud's metadata service, or anything inside."""
    server.feeds["/away"] = Sent(status=302, headers={"Location": location})
    answer = one(connect(), f"{server.url}/away")
    assert says in str(answer.error)
    assert server.asked == ["/away"] * (6 if location == "" else 1)


def test_a_redirect_within_the_allowed_hosts_is_followed(connect: Any, server: FeedServer) -> None:
    """Feeds move; a redirect to the same host is no attack."""
    server.feeds["/moved"] = Sent(status=301, headers={"Location": "/good"})
    assert one(connect(), f"{server.url}/moved").body


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/x",
        "http://127.0.0.1:9/x",
        "http://[::1]/x",
        "http://10.0.0.1/x",
        "http://[64:ff9b::a9fe:a9fe]/x",
    ],
)
def test_a_private_address_is_refused_though_its_host_is_allowed(connect: Any, url: str) -> None:
    """S3: an allow-list with a slip in it must not open the inside."""
    hosts = ["169.254.169.254", "127.0.0.1:9", "::1", "10.0.0.1", "64:ff9b::a9fe:a9fe"]
    with pytest.raises(BadInput, match="no public address"):
        connect(hosts=hosts, private_addresses=False).fetch([FeedRequest(url)], 5)


def test_a_public_name_that_leads_inside_is_refused(connect: Any, server: FeedServer) -> None:
    """S3: a name is checked by the address that is connected to, so that a second look-up can't differ."""
    port = server.host.rpartition(":")[2]
    feeds = connect(hosts=[f"localhost:{port}"], private_addresses=False)
    answer = one(feeds, f"http://localhost:{port}/good")
    assert isinstance(answer.error, BadInput)
    assert "not public" in str(answer.error)
    assert server.asked == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b:1::a9fe:a9fe", False),
        ("2002:a9fe:a9fe::1", False),
        ("::7f00:1", False),
        ("::ffff:10.0.0.1", False),
        ("fec0::1", False),
        ("fd00::1", False),
        ("ff0e::1", False),
        ("224.0.0.1", False),
        ("192.88.99.1", False),
        ("240.0.0.1", False),
        ("::", False),
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("64:ff9b::808:808", True),
        ("2002:808:808::1", True),
        ("::ffff:8.8.8.8", True),
    ],
)
def test_which_addresses_are_public(
    connect: Any, monkeypatch: pytest.MonkeyPatch, address: str, *, public: bool
) -> None:
    """S3: what a gateway would turn into an inner IPv4 address is inner too, and nobody has a feed for many."""

    async def resolve(_: object, host: str, port: int = 0, family: int = 0) -> Any:
        return [{"hostname": host, "host": address, "port": port, "family": family, "proto": 0, "flags": 0}]

    async def unreached(*_: object, **__: object) -> Any:
        raise OSError("nobody is asked")

    monkeypatch.setattr("aiohttp.resolver.ThreadedResolver.resolve", resolve)
    monkeypatch.setattr("aiohttp.TCPConnector._wrap_create_connection", unreached)
    answer = one(connect(hosts=["news.test"], private_addresses=False), "http://news.test/x")
    assert ("not public" in str(answer.error)) is not public


@pytest.mark.parametrize(
    "served", [Sent(status=404), Sent(status=302, headers={"Location": "/bad?key=s3cret"})]
)
def test_a_feeds_key_is_not_told(connect: Any, server: FeedServer, served: Sent) -> None:
    """A key stands in a feed's URL, and what is said of the feed in the log, the alert and the table."""
    for path in ("/bad", "/bad?key=s3cret"):
        server.feeds[path] = served
    answer = one(connect(), f"{server.url}/bad?key=s3cret")
    assert answer.error is not None
    assert f"feed {server.url}/bad?***" in str(answer.error)
    with pytest.raises(BadInput) as caught:
        connect().fetch([FeedRequest("http://ann:s3cret@other.test/?key=s3cret")], 5)
    assert "s3cret" not in f"{answer.error}{caught.value}"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://feeds.news.test/x", "no whole answer"),
        ("https://FEEDS.NEWS.TEST./x", "no whole answer"),
        ("https://a.feeds.news.test/x", "not among the hosts"),
        ("https://news.test/x", "not among the hosts"),
        ("https://news.test.evil.test/x", "not among the hosts"),
        ("https://feeds.news.test:8443/x", "not among the hosts"),
        ("ftp://feeds.news.test/x", "not an http"),
        ("https://user:secret@feeds.news.test/x", "not an http"),
    ],
)
def test_the_allow_list(connect: Any, url: str, says: str) -> None:
    """One label for a star, ports as written, no logins: what is not allowed is not even looked up."""
    feeds = connect(hosts="*.news.test, other.test")
    try:
        found = str(one(feeds, url, 5).error)
    except BadInput as error:
        found = str(error)
    assert says in found


def test_the_test_button(connect: Any, server: FeedServer) -> None:
    """Airflow's form has a Test button; it says what came, or what is wrong."""
    connect(f"{server.url}/good")
    ok, says = FeedsHook("feeds_test").test_connection()
    assert ok, says
    connect(f"{server.url}/gone")
    assert FeedsHook("feeds_test").test_connection() == (
        False,
        f"feed {server.url}/gone answered HTTP 404",
    )
    connect()
    assert FeedsHook("feeds_test").test_connection()[0]
    connect(hosts=7)
    assert FeedsHook("feeds_test").test_connection() == (
        False,
        "connection feeds_test: extra 'hosts' must be a list of host names",
    )
