"""RSS and Atom feeds over HTTP: allowed hosts alone, public addresses alone, bounded in size and time.

The connection's extra `hosts` lists the hosts that may be asked, redirects included: `feeds.example.com`,
`*.example.com`, or with a port `127.0.0.1:8000`. `private_addresses` (default false) lets those hosts stand in
a private network or on this machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook

from hooks.allowed_hosts import AllowedHosts, body_of, private_cause
from hooks.connections import Access, access
from hooks.retry_after import retry_at
from include.errors import AlmanacError, BadInput, Outage, Refused
from include.feeds import FeedAnswer, FeedRequest
from include.plain_text import shown_url

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

LARGEST_FEED = 4 * 1024 * 1024
"""Bytes of one answer, unpacked."""

_AT_ONCE = 8
_ONE_FEED_SECONDS = 30.0
_TEST_SECONDS = 15.0
_TRY_LATER = (401, 403, 408, 425, 429)
_LONGEST_MARK = 500
_ACCEPT = "application/rss+xml, application/atom+xml, application/xml, text/xml;q=0.9, */*;q=0.1"


def feeds(conn_id: str) -> HttpFeeds:
    """Return the feeds behind an Airflow connection, without asking one."""
    return HttpFeeds(access(conn_id))


class FeedsHook(BaseHook):
    """What Airflow's connection form and its Test button know of feeds."""

    conn_name_attr = "feeds_conn_id"
    default_conn_name = "almanac_feeds"
    conn_type = "almanac_feeds"
    hook_name = "Feeds (Almanac)"

    def __init__(self, feeds_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.feeds_conn_id = feeds_conn_id

    def get_conn(self) -> HttpFeeds:
        """Return the feeds; see `feeds`."""
        return feeds(self.feeds_conn_id)

    def test_connection(self) -> tuple[bool, str]:
        """Ask the feed that the connection's host names, if any, and say what came."""
        try:
            return self.get_conn().test_connection()
        except AlmanacError as error:
            return False, str(error)


class HttpFeeds:
    """The feeds that one connection allows."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def fetch(self, asked: Sequence[FeedRequest], seconds: float) -> Sequence[FeedAnswer]:
        """Ask all at once, as `include.feeds.Feeds` promises."""
        allowed = self._allowed()
        for request in asked:
            allowed.check(request.url)
        return asyncio.run(self._fetch_all(asked, allowed, seconds))

    def test_connection(self) -> tuple[bool, str]:
        """Ask the feed that the connection's host names; without one, read the list of hosts."""
        allowed = self._allowed()
        if not self._access.host:
            return True, f"{len(allowed.names)} hosts are allowed; a feed's URL as the host would be asked"
        (answer,) = self.fetch([FeedRequest(self._access.base_url())], _TEST_SECONDS)
        if answer.error is not None:
            return False, str(answer.error)
        return True, f"The feed answered with {len(answer.body or b''):,} bytes"

    async def _fetch_all(
        self, asked: Sequence[FeedRequest], allowed: AllowedHosts, seconds: float
    ) -> Sequence[FeedAnswer]:
        until = time.monotonic() + seconds
        async with allowed.session(_ACCEPT, at_once=_AT_ONCE) as session:
            gate = asyncio.Semaphore(_AT_ONCE)
            return await asyncio.gather(*(self._one(session, gate, one, allowed, until) for one in asked))

    async def _one(
        self,
        session: ClientSession,
        gate: asyncio.Semaphore,
        asked: FeedRequest,
        allowed: AllowedHosts,
        until: float,
    ) -> FeedAnswer:
        import aiohttp  # noqa: PLC0415 - slow; not at parse time

        try:
            async with gate:
                left = min(_ONE_FEED_SECONDS, until - time.monotonic())
                async with asyncio.timeout(max(left, 0)):
                    return await self._follow(session, asked, allowed)
        except AlmanacError as error:
            return FeedAnswer(asked.url, error=error)
        except TimeoutError:
            return FeedAnswer(
                asked.url, error=Outage(f"feed {shown_url(asked.url)}: no whole answer in time")
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            private = private_cause(error)
            if private is not None:
                return FeedAnswer(asked.url, error=BadInput(f"feed {shown_url(asked.url)}: {private}"))
            return FeedAnswer(
                asked.url,
                error=Outage(f"feed {shown_url(asked.url)}: no whole answer: {type(error).__name__}"),
            )

    async def _follow(self, session: ClientSession, asked: FeedRequest, allowed: AllowedHosts) -> FeedAnswer:
        marks = {"If-None-Match": asked.etag, "If-Modified-Since": asked.last_modified}
        headers = {name: value for name, value in marks.items() if value and _header_safe(value)}
        async with allowed.get(session, asked.url, headers) as response:
            return await self._answer(asked, response)

    async def _answer(self, asked: FeedRequest, response: ClientResponse) -> FeedAnswer:
        where, status = f"feed {shown_url(asked.url)}", response.status
        if status == 304:  # noqa: PLR2004 - HTTP's own number
            return FeedAnswer(asked.url, etag=asked.etag, last_modified=asked.last_modified)
        if status != 200:  # noqa: PLR2004 - HTTP's own number
            says = f"{where} answered HTTP {status}"
            if status in _TRY_LATER or not 400 <= status < 500:  # noqa: PLR2004 - HTTP's own numbers
                raise Outage(says, retry_at=retry_at(response.headers.get("Retry-After"), datetime.now(UTC)))
            raise Refused(says)
        return FeedAnswer(
            asked.url,
            await body_of(response, LARGEST_FEED, where),
            response.headers.get("Content-Type", "")[:_LONGEST_MARK] or None,
            _mark(response.headers.get("ETag")),
            _mark(response.headers.get("Last-Modified")),
        )

    def _allowed(self) -> AllowedHosts:
        return AllowedHosts(self._access, "feed")


def _header_safe(value: str) -> bool:
    return value.isascii() and value.isprintable() and len(value) <= _LONGEST_MARK


def _mark(value: str | None) -> str | None:
    return value if value and _header_safe(value) else None
