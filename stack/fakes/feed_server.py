"""RSS and Atom feeds on loopback, with the faults and the malice that real servers have.

`GET /<path>` answers what `feeds` holds under that path, with an ETag, and 304 to whoever names it. A data file
is JSON: path → {"title", "kind": "rss" or "atom", "items": [{"link", "title", "summary", "published"}]}, with
`published` as an instant, read anew for every request.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from email.utils import format_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from stack.fakes.http_fake import HttpFake, Request, Sent, command_line

_RSS = "application/rss+xml; charset=utf-8"
_ATOM = "application/atom+xml; charset=utf-8"


def as_feed(document: bytes, content_type: str = _RSS, **said: Any) -> Sent:
    """Return a document as an answer."""
    return Sent(body=document, content_type=content_type, **said)


def rss(title: str, items: Sequence[Mapping[str, str]]) -> bytes:
    """Return an RSS 2.0 document of items with link, title, summary and published (an instant), all optional."""
    written = "".join(
        f"<item>{_tag('title', item.get('title'))}{_tag('link', item.get('link'))}"
        f"{_tag('description', item.get('summary'))}{_tag('pubDate', _mail_date(item.get('published')))}</item>"
        for item in items
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel>{_tag("title", title)}'
        f"{written}</channel></rss>"
    ).encode()


def atom(title: str, items: Sequence[Mapping[str, str]]) -> bytes:
    """Return an Atom document of the same items."""
    written = "".join(
        f"<entry>{_tag('title', item.get('title'))}<link href={_quoted(item.get('link', ''))}/>"
        f"{_tag('summary', item.get('summary'))}{_tag('updated', item.get('published'))}</entry>"
        for item in items
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom">'
        f"{_tag('title', title)}{written}</feed>"
    ).encode()


def _tag(name: str, value: str | None) -> str:
    return "" if value is None else f"<{name}>{escape(value)}</{name}>"


def _mail_date(instant: str | None) -> str | None:
    return None if instant is None else format_datetime(datetime.fromisoformat(instant))


def _quoted(value: str) -> str:
    return '"' + escape(value, {'"': "&quot;"}) + '"'


class FeedServer(HttpFake):
    """The feeds. `asked` holds every path in order."""

    def __init__(self, *, data: Path | None = None, port: int = 0) -> None:
        super().__init__(port=port)
        self.feeds: dict[str, Sent] = {}
        self.asked: list[str] = []
        self._data = data

    def answer(self, request: Request) -> Sent:
        if request.method != "GET":
            return Sent(HTTPStatus.NOT_IMPLEMENTED)
        served = self.served(request.path)
        etag = f'"{hashlib.sha256(served.body).hexdigest()[:16]}"'
        headers = {"ETag": etag, **served.headers}
        if served.status == HTTPStatus.OK and request.headers.get("If-None-Match") == etag:
            return replace(served, status=HTTPStatus.NOT_MODIFIED, body=b"", headers=headers)
        return replace(served, headers=headers)

    def served(self, path: str) -> Sent:
        """Return what a path holds."""
        self.asked.append(path)
        if path in self.feeds:
            return self.feeds[path]
        known: dict[str, Any] = {}
        if self._data is not None and self._data.exists():
            known = json.loads(self._data.read_text(encoding="utf-8"))
        if path not in known:
            return Sent(404, b"no such feed", content_type="text/plain")
        feed = known[path]
        if feed.get("kind") == "atom":
            return as_feed(atom(feed["title"], feed["items"]), _ATOM)
        return as_feed(rss(feed["title"], feed["items"]))


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a JSON file of feeds, and say on the first line of standard output where."""
    parser = command_line("feed_server", main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="JSON file; read anew for every request")
    given = parser.parse_args(arguments)
    FeedServer(data=given.data, port=given.port).serve("feeds")


if __name__ == "__main__":
    main()
