"""What is read of a feed: everything that can be, and nothing that harms."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime

import pytest

from include.errors import BadInput, Refused
from include.feeds import (
    LONG,
    LONGEST_SUMMARY,
    LONGEST_TITLE,
    MOST_ENTRIES,
    FeedAnswer,
    feed_urls,
    read_feed,
)
from include.plain_text import from_html
from stack.fakes.feed_server import atom, rss

URL = "https://news.test/feed"


def answer(body: bytes, content_type: str | None = "application/rss+xml") -> FeedAnswer:
    """Return a feed's answer with a body."""
    return FeedAnswer(URL, body, content_type)


@pytest.mark.parametrize("write", [rss, atom])
def test_both_kinds_give_the_same_entries(write: type[object]) -> None:
    """RSS and Atom name the same things differently."""
    items = [
        {
            "link": "https://news.test/1?utm_source=x&id=1#top",
            "title": "Rates & <b>bonds</b>",
            "summary": "<p>Über &amp; out</p><script>alert(1)</script>",
            "published": "2026-11-25T10:00:00-06:00",
        }
    ]
    (entry,) = read_feed(answer(write("The <i>News</i>", items)))  # type: ignore[call-arg]
    assert entry.url == "https://news.test/1?id=1"
    assert entry.title == "Rates & bonds"
    assert entry.summary == "Über & out"
    assert entry.published_at == datetime(2026, 11, 25, 16, tzinfo=UTC)
    assert entry.source_name == "The News"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_the_encoding_of_the_document_is_kept(encoding: str) -> None:
    """Old feeds are not UTF-8; Ñ must survive."""
    body = rss("Ñ", [{"link": "https://news.test/1", "title": "Año Ñ"}]).decode()
    read = read_feed(
        answer(body.replace('encoding="utf-8"', f'encoding="{encoding}"').encode(encoding), None)
    )
    assert [entry.title for entry in read] == ["Año Ñ"]


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("/relative", "https://news.test/relative"),
        ("https://NEWS.test:443/a", "https://news.test/a"),
        ("https://news.test", "https://news.test/"),
        ("https://ñandú.test/a", "https://xn--and-6ma2c.test/a"),
        ("javascript:alert(1)", None),
        ("data:text/html,x", None),
        ("https://user:pw@news.test/", None),
        ("https://news.test/" + "a" * 2_000, None),
        ("http://[::1", None),
        ("https://news.test:99999/", None),
    ],
)
def test_an_entry_is_known_by_one_web_address(link: str, url: str | None) -> None:
    """The URL is what makes an idea unique, so one page must have one; anything but http(s) is left out."""
    read = read_feed(answer(rss("N", [{"link": link, "title": "T"}])))
    assert [entry.url for entry in read] == ([url] if url else [])


def test_what_has_no_title_or_comes_twice_is_left_out() -> None:
    """An idea without a title is none; a feed that repeats an article has one."""
    items = [{"link": "https://news.test/1", "title": "<b></b>"}, {"link": "https://news.test/2", "title": "B"},
             {"link": "https://news.test/2", "title": "B again"}, {"title": "no link"}]  # fmt: skip
    assert [entry.title for entry in read_feed(answer(rss("N", items)))] == ["B again"]


def test_long_texts_are_cut_and_long_feeds_too() -> None:
    """A row must stay small, whatever a feed sends."""
    items = [
        {"link": f"https://news.test/{n}", "title": "word " * 500, "summary": "x" * 9_000} for n in range(300)
    ]
    read = read_feed(answer(rss("N", items)))
    assert len(read) == MOST_ENTRIES
    assert len(read[0].title) <= LONGEST_TITLE
    assert read[0].title.endswith("word…")
    assert len(read[0].summary) == LONGEST_SUMMARY


def test_null_and_control_characters_are_taken_out() -> None:
    """Postgres refuses a null character, and a terminal obeys an escape."""
    body = rss("N", [{"link": "https://news.test/1", "title": "a\u202eb\x1b[31mc"}]).replace(b"a", b"a\x00")
    (entry,) = read_feed(answer(body))
    assert not set(entry.title) & {"\x00", "\x1b", "\u202e"}


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", "application/rss+xml"),
        (b"<html><body>Log in</body></html>", "text/html"),
        (b'{"items": []}', "application/json"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "image/png"),
        (b"<opml version='1.0'/>", "text/x-opml"),
    ],
)
def test_what_is_no_feed_is_refused(body: bytes, content_type: str) -> None:
    """A login page with status 200 is not "no news"."""
    with pytest.raises(Refused, match="neither RSS nor Atom"):
        read_feed(answer(body, content_type))


def test_an_entry_that_cannot_be_read_is_left_out_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One entry that nobody foresaw must not keep a feed's others back; the log says that there was one."""

    def picky(markup: str, most: int) -> str:
        assert markup != "B"
        return from_html(markup, most)

    monkeypatch.setattr("include.feeds.from_html", picky)
    items = [{"link": f"https://news.test/{title}", "title": title} for title in "ABC"]
    with caplog.at_level(logging.WARNING, "almanac"):
        assert [entry.title for entry in read_feed(answer(rss("N", items)))] == ["A", "C"]
    assert f"entry left out: feed={URL} number=2 err=AssertionError" in caplog.text


def test_malformed_xml_is_read_as_far_as_it_goes() -> None:
    """Half of the world's feeds are not well-formed."""
    body = rss(
        "N", [{"link": "https://news.test/1", "title": "A"}, {"link": "https://news.test/2", "title": "B"}]
    )
    read = read_feed(answer(body.replace(b"</channel></rss>", b"<item><title>C & D</title>")))
    assert [entry.title for entry in read] == ["A", "B"]


LOL = b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10) for n in range(1, 10))
HOSTILE = {
    "entities within entities": b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY l0 "ha">' + LOL + b"]>"
    b"<rss version='2.0'><channel><item><title>x &l9;</title><link>https://a.test/</link></item></channel></rss>",
    "one long entity, many times": b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "' + b"a" * 50_000 + b'">]>'
    b"<rss version='2.0'><channel><item><title>" + b"&a;" * 50_000 + b"</title></item></channel></rss>",
    "a file of this machine": b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    b"<rss version='2.0'><channel><item><title>x &f;</title><link>https://a.test/</link></item></channel></rss>",
    "deep": b"<rss version='2.0'><channel><item><title>"
    + b"<b>" * 200_000
    + b"</title></item></channel></rss>",
    "open tags": b"<rss version='2.0'><channel>" + b"<item " * 300_000,
    "angle brackets": b"<rss version='2.0'><channel><title>" + b"<" * 1_000_000,
    "open comments": b"<rss version='2.0'><channel><title>" + b"<!--" * 300_000,
    "marked sections": b"<rss version='2.0'><channel><title>" + b"<![CDATA[" * 200_000,
    "one attribute": b"<rss version='2.0' a='" + b"x" * 3_000_000 + b"'><channel></channel></rss>",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_documents_end_quickly(body: bytes) -> None:
    """A document that unpacks without end, or takes time that grows with its square, must not stop the worker."""
    began = time.monotonic()
    try:
        read = read_feed(answer(body))
    except Refused:
        read = []
    assert time.monotonic() - began < 10
    assert all(len(entry.title) <= LONGEST_TITLE and "root:" not in entry.title for entry in read)


def test_what_declares_entities_is_read_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a parser does with declarations has no bound in time, so it has a process, and an end, of its own."""
    asked: list[str] = []
    monkeypatch.setattr(
        "include.feeds._parse_in_child", lambda url, *rest: asked.append(url) or {"version": ""}
    )
    declaring = b'<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY a "b">]><rss version="2.0"><channel/></rss>'
    for body in (declaring, b"<rss><unclosed>"):
        with pytest.raises(Refused):
            read_feed(answer(body))
    assert asked == [URL, URL]
    read_feed(answer(rss("N", [])))
    assert asked == [URL, URL]


def test_what_is_long_is_read_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A well-formed document can be long too: what it takes has an end only in a process of its own."""
    asked: list[str] = []
    monkeypatch.setattr(
        "include.feeds._parse_in_child", lambda url, *rest: asked.append(url) or {"version": ""}
    )
    with pytest.raises(Refused):
        read_feed(answer(rss("N", []) + b" " * LONG))
    assert asked == [URL]


def test_a_long_feed_is_read_whole() -> None:
    """Read apart or not, its entries are the same."""
    items = [{"link": f"https://news.test/{n}", "title": "T", "summary": "word " * 400} for n in range(199)]
    body = rss("N", items)
    assert len(body) > LONG
    assert len(read_feed(answer(body))) == 199


def test_the_setting_is_a_list_of_urls() -> None:
    """A slip in a setting is told by its name, before anything is asked."""
    assert feed_urls("v", " https://a.test/x\n,https://b.test/y https://a.test/x") == [
        "https://a.test/x",
        "https://b.test/y",
    ]
    assert feed_urls("v", None) == []
    with pytest.raises(BadInput, match=r"variable v: 'gopher://a\.test' is not an http"):
        feed_urls("v", "gopher://a.test")


@pytest.mark.parametrize(
    "url", ["https://ann:s3cret@a.test/x", "ftp://a.test/x?key=s3cret", "https://a:s3cret,@a.test"]
)
def test_a_slip_in_the_setting_shows_no_secret(url: str) -> None:
    """What is said of it stands in logs, alerts and the queue's row."""
    with pytest.raises(BadInput) as caught:
        feed_urls("v", url)
    assert "s3cret" not in str(caught.value)


def test_what_is_said_of_a_feed_shows_no_secret() -> None:
    """A feed's key is part of its URL; what it is called by is seen by everybody."""
    url = f"{URL}?key=s3cret"
    with pytest.raises(Refused) as caught:
        read_feed(FeedAnswer(url, b"<opml/>"))
    (entry,) = read_feed(FeedAnswer(url, rss("", [{"link": "https://news.test/1", "title": "A"}])))
    assert "s3cret" not in f"{caught.value}{entry.source_name}"
