"""What a scan asks of RSS and Atom feeds, and what it reads from their answers."""

from __future__ import annotations

import calendar
import contextlib
import io
import json
import logging
import resource
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from xml.parsers import expat

from include.errors import AlmanacError, BadInput, Refused
from include.plain_text import LONGEST_SOURCE, from_html, shown_url, web_address

MOST_ENTRIES = 200
"""Entries read of one feed, the first ones; feeds put the newest first."""

LONGEST_TITLE = 300
LONGEST_SUMMARY = 2_000
LONGEST_NAME = 120

SECONDS = 5
"""What reading one document may take that is malformed, or long."""

LONG = 256 * 1024
"""Bytes of a document that is not read in this process any more, however well-formed."""

_LOG = logging.getLogger("almanac")
_YEARS = range(1990, 2200)
_CHILD_BYTES = 1024 * 1024 * 1024
_ROOT = Path(__file__).resolve().parents[1]


class FeedRequest(NamedTuple):
    """One feed to ask, with what its server said last time, so that it can answer "not modified"."""

    url: str
    etag: str | None = None
    last_modified: str | None = None


class FeedAnswer(NamedTuple):
    """What came of one request: a body, "not modified" (no body, no error), or an error."""

    url: str
    body: bytes | None = None
    content_type: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    error: AlmanacError | None = None


class Feeds(Protocol):
    """Feeds over HTTP, from allowed hosts alone, redirects included."""

    def fetch(self, asked: Sequence[FeedRequest], seconds: float) -> Sequence[FeedAnswer]:
        """Ask all of them at once and return an answer each, in their order, within `seconds`.

        An error of one feed stands in its answer. Raises BadInput for a URL that is not allowed.
        """
        ...


class Entry(NamedTuple):
    """One article of a feed. `published_at` is aware, in UTC; None if the feed doesn't say."""

    url: str
    title: str
    summary: str
    published_at: datetime | None
    source_name: str


def feed_urls(name: str, given: str | None) -> list[str]:
    """Read the Variable `name`: URLs parted by spaces, lines or commas, each once."""
    found = list(dict.fromkeys((given or "").replace(",", " ").split()))
    if bad := [url for url in found if web_address(url) is None]:
        raise BadInput(f"variable {name}: {shown_url(bad[0])[:200]!r} is not an http(s) URL")
    return found


def read_feed(answer: FeedAnswer) -> list[Entry]:
    """Return the entries of a feed's body that have a link and a title.

    Raises Refused if it is no feed at all, or can't be read within SECONDS. What is malformed is read as far as
    it can be, in a process of its own: what a parser does for broken documents has no bound in time. What is long
    is read there too, since nothing ends a parser in this process. An entry that can't be read is left out alone.
    """
    if answer.body is None:
        return []
    kind = answer.content_type or "application/xml"
    plain = len(answer.body) <= LONG and _is_plain_xml(answer.body)
    found = _parse(answer.body, kind) if plain else _parse_in_child(answer.url, answer.body, kind)
    if not found["version"]:
        raise Refused(
            f"feed {shown_url(answer.url)}: is neither RSS nor Atom (content type {answer.content_type!r:.80})"
        )
    name = from_html(found["title"], LONGEST_NAME) or shown_url(answer.url)[:LONGEST_NAME]
    entries: dict[str, Entry] = {}
    for number, item in enumerate(found["items"], 1):
        try:
            entry = _entry(item, answer.url, name)
        except Exception as error:  # noqa: BLE001 - an entry can be broken in any way; the others go on
            _LOG.warning(
                "entry left out: feed=%s number=%s err=%s",
                shown_url(answer.url),
                number,
                type(error).__name__,
            )
            continue
        if entry is not None:
            entries[entry.url] = entry
    return list(entries.values())


def _is_plain_xml(body: bytes) -> bool:
    """Say whether a document is well-formed and declares no entities: then reading it takes time by its length."""
    declared = False

    def doctype(*_: Any) -> None:
        nonlocal declared
        declared = True

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(body, True)  # noqa: FBT003 - expat takes no names
    except (expat.ExpatError, ValueError, LookupError):
        return False
    return not declared


def _parse(body: bytes, content_type: str) -> dict[str, Any]:
    import feedparser  # noqa: PLC0415 - heavy, and no DAG file needs it to be parsed

    # Entities of a document type are not expanded; markup is taken out further down, scripts with it.
    parsed: Any = feedparser.parse(
        io.BytesIO(body if _is_wide(body) else body.replace(b"\x00", b"")),
        response_headers={"content-type": content_type},
        sanitize_html=False,
        resolve_relative_uris=False,
    )
    return {
        "version": parsed.get("version") or "",
        "title": _text(parsed.feed, "title"),
        "items": [
            [_text(item, "link"), _text(item, "title"), _text(item, "summary"), _published(item)]
            for item in parsed.entries[:MOST_ENTRIES]
        ],
    }


def _parse_in_child(url: str, body: bytes, content_type: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "include.feeds", content_type]
    try:
        child = subprocess.run(  # noqa: S603 - this module, with the document as its input
            command, input=body, capture_output=True, timeout=SECONDS, cwd=_ROOT, check=True
        )
        found: dict[str, Any] = json.loads(child.stdout)
    except subprocess.TimeoutExpired:
        raise Refused(
            f"feed {shown_url(url)}: is malformed or too long, and could not be read within {SECONDS} s"
        ) from None
    except (subprocess.CalledProcessError, ValueError):
        raise Refused(f"feed {shown_url(url)}: is malformed or too long, and could not be read") from None
    return found


def _is_wide(body: bytes) -> bool:
    # UTF-16 and UTF-32 have null bytes that mean something.
    return body[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in body[:4]


def _entry(item: Sequence[Any], base: str, name: str) -> Entry | None:
    link, title, summary, published = item
    url = web_address(link, base) if link else None
    words = from_html(title, LONGEST_TITLE)
    if url is None or not words:
        return None
    moment = datetime.fromtimestamp(published, UTC) if published is not None else None
    return Entry(url, words, from_html(summary, LONGEST_SUMMARY), moment, name)


def _text(item: Any, name: str) -> str:
    value = item.get(name)
    return value[:LONGEST_SOURCE] if isinstance(value, str) else ""


def _published(item: Any) -> int | None:
    moment = item.get("published_parsed") or item.get("updated_parsed")
    if moment is None or moment.tm_year not in _YEARS:
        return None
    try:
        return calendar.timegm(moment)
    except (ValueError, OverflowError):
        return None


def main() -> None:
    """Read a document from standard input and write what it holds to standard output, within bounds."""
    limits = {resource.RLIMIT_AS: _CHILD_BYTES, resource.RLIMIT_CPU: SECONDS + 1}
    for what, most in limits.items():
        # Where a system has no such limit, the parent's time limit holds.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))
    found = _parse(sys.stdin.buffer.read(), sys.argv[1])
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
