"""The gazettes' parsers: HTTP services behind one hook, one connection each, `nifya_boe` and `nifya_doga`.

The extra `kind` chooses. `open_data`, the default, is the BOE's own open data: the connection's host is the API's
address, https://www.boe.es/datosabiertos/api/boe if there is none, and what a prompt asks for is found here.
`service` is a parser that finds it itself: `POST {host}/new-content` with `{"prompts", "since", "until"}` answers
`{"content": [{"title", "summary", "url", "metadata"}]}`; the password, if any, is its bearer token.

The extra `hosts` lists the hosts that may be asked, redirects included; without it the host itself, and for open
data boe.es. `private_addresses` (default false) lets them stand in a private network or on this machine.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.sdk import BaseHook

from hooks.allowed_hosts import AllowedHosts, body_of, private_cause
from hooks.connections import Access, access
from hooks.retry_after import retry_at
from include.errors import AlmanacError, BadInput, Outage, Refused
from include.nifya.gazettes import Content, Entry, as_content, read_content, read_json, read_summary
from include.nifya.matching import matching
from include.plain_text import shown_url

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

OPEN_DATA_URL = "https://www.boe.es/datosabiertos/api/boe"
OPEN_DATA_HOSTS = ("www.boe.es", "boe.es")
LARGEST_ANSWER = 16 * 1024 * 1024
"""Bytes of one answer, unpacked; the BOE's largest summaries have 2 MB."""

MOST_DAYS = 400
"""Editions read for one question."""

_AT_ONCE = 4
_ONE_ANSWER_SECONDS = 30.0
_ALL_SECONDS = 120.0
_TRY_LATER = (401, 403, 408, 425, 429)
_DAY = timedelta(days=1)


def gazettes(prefix: str = "nifya") -> HttpGazettes:
    """Return the parsers behind the connections `<prefix>_<parser>`, without asking one."""
    return HttpGazettes(prefix)


def gazette(conn_id: str) -> OpenData | ParserService:
    """Return the parser behind an Airflow connection. Raises BadInput for a kind that there is not."""
    said = access(conn_id)
    kind = said.text("kind", "open_data")
    if kind == "open_data":
        return OpenData(said)
    if kind == "service":
        return ParserService(said)
    raise said.bad("extra 'kind'", f"must be open_data or service: {kind!r:.60}")


class GazetteHook(BaseHook):
    """What Airflow's connection form and its Test button know of a gazette's parser."""

    conn_name_attr = "gazette_conn_id"
    default_conn_name = "almanac_gazette"
    conn_type = "almanac_gazette"
    hook_name = "Gazette (Almanac)"

    def __init__(self, gazette_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.gazette_conn_id = gazette_conn_id

    def get_conn(self) -> OpenData | ParserService:
        """Return the parser; see `gazette`."""
        return gazette(self.gazette_conn_id)

    def test_connection(self) -> tuple[bool, str]:
        """Ask for today, and say what came."""
        try:
            return self.get_conn().test_connection()
        except AlmanacError as error:
            return False, str(error)


class HttpGazettes:
    """The parsers by name; each is looked up once, when it is first asked."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._known: dict[str, OpenData | ParserService] = {}

    def new_content(self, parser: str, prompts: Sequence[str], since: date, until: date) -> Sequence[Content]:
        """Ask the parser, as `include.nifya.gazettes.Gazettes` promises."""
        if parser not in self._known:
            self._known[parser] = gazette(f"{self._prefix}_{parser}")
        return self._known[parser].new_content(prompts, since, until)


class OpenData:
    """The BOE's daily summaries.

    An edition that was read is kept: many subscriptions cost one request, and a question that failed half-way
    asks only for the rest when it comes again.
    """

    def __init__(
        self, access: Access, *, one: float = _ONE_ANSWER_SECONDS, together: float = _ALL_SECONDS
    ) -> None:
        self._base = access.base_url(OPEN_DATA_URL)
        self._allowed = AllowedHosts(
            access, "gazette", OPEN_DATA_HOSTS if self._base == OPEN_DATA_URL else [_host(self._base)]
        )
        self._one, self._together = one, together
        self._read: dict[date, Sequence[Entry]] = {}

    def new_content(self, prompts: Sequence[str], since: date, until: date) -> Sequence[Content]:
        """Return what the prompts ask for; a day for which there is no edition (404) brings nothing."""
        days = _days(since, until)
        missing = [day for day in days if day not in self._read]
        for day in missing:
            self._allowed.check(self._url(day))
        if missing:
            asyncio.run(self._read_editions(missing))
        entries = [entry for day in days for entry in self._read[day]]
        return [as_content(entry, asked) for entry, asked in matching(entries, prompts)]

    def test_connection(self) -> tuple[bool, str]:
        """Ask for today's summary, and say how many entries it has."""
        today = datetime.now(UTC).date()
        try:
            self.new_content((), today, today)
        except AlmanacError as error:
            return False, str(error)
        return True, f"Today's edition has {len(self._read[today])} entries so far"

    async def _read_editions(self, days: Sequence[date]) -> None:
        until = time.monotonic() + self._together
        gate = asyncio.Semaphore(_AT_ONCE)
        async with self._allowed.session("application/json", at_once=_AT_ONCE) as session:
            asking = [asyncio.create_task(self._edition(session, gate, day, until)) for day in days]
            try:
                await asyncio.gather(*asking)
            finally:
                # One that failed ends the others: they are asked again later.
                for task in asking:
                    task.cancel()

    async def _edition(
        self, session: ClientSession, gate: asyncio.Semaphore, day: date, until: float
    ) -> None:
        url = self._url(day)
        where = f"gazette {shown_url(url)}"
        with _errors(where):
            async with (
                gate,
                asyncio.timeout(max(0.0, min(self._one, until - time.monotonic()))),
                self._allowed.get(session, url, {}) as response,
            ):
                if response.status == 404:  # noqa: PLR2004 - HTTP's own number
                    self._read[day] = ()
                    return
                _check_status(response, where)
                body = await body_of(response, LARGEST_ANSWER, where)
        self._read[day] = read_summary(read_json(body, where), day, where)

    def _url(self, day: date) -> str:
        return f"{self._base}/sumario/{day:%Y%m%d}"


class ParserService:
    """A parser that finds by itself what the prompts ask for."""

    def __init__(self, access: Access, *, one: float = _ONE_ANSWER_SECONDS) -> None:
        self._base = access.base_url()
        self._allowed = AllowedHosts(access, "parser", [_host(self._base)])
        self._one = one
        self._token = access.password or ""
        if self._token and not re.fullmatch(r"[!-~]+", self._token):
            raise access.bad("password", "must be the parser's token, in visible ASCII characters")

    def new_content(self, prompts: Sequence[str], since: date, until: date) -> Sequence[Content]:
        """Return what the service found for the prompts."""
        if not prompts or since > until:
            return ()
        return self._ask(prompts, since, until)

    def test_connection(self) -> tuple[bool, str]:
        """Ask for nothing in particular of today, and say whether the service answers as a parser does."""
        today = datetime.now(UTC).date()
        try:
            found = self._ask((), today, today)
        except AlmanacError as error:
            return False, str(error)
        return True, f"The parser answered with {len(found)} entries"

    def _ask(self, prompts: Sequence[str], since: date, until: date) -> Sequence[Content]:
        url = f"{self._base}/new-content"
        self._allowed.check(url)
        asked = {"prompts": list(prompts), "since": since.isoformat(), "until": until.isoformat()}
        where = f"parser {shown_url(url)}"
        return read_content(read_json(asyncio.run(self._post(url, where, asked)), where), where)

    async def _post(self, url: str, where: str, asked: Any) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        with _errors(where):
            async with (
                asyncio.timeout(self._one),
                self._allowed.session("application/json", at_once=1) as session,
                # A redirect is an answer, never a request: the token must not reach another host.
                session.post(url, data=json.dumps(asked), headers=headers, allow_redirects=False) as response,
            ):
                _check_status(response, where)
                return await body_of(response, LARGEST_ANSWER, where)


def _days(since: date, until: date) -> list[date]:
    number = (until - since).days + 1
    if number > MOST_DAYS:
        raise BadInput(f"gazette: {number} days from {since} to {until} are more than {MOST_DAYS}")
    return [since + n * _DAY for n in range(number)]


def _host(url: str) -> str:
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    host = (parts.hostname or "").rstrip(".")
    return host if parts.port in (None, usual) else f"{host}:{parts.port}"


def _check_status(response: ClientResponse, where: str) -> None:
    status = response.status
    if status == 200:  # noqa: PLR2004 - HTTP's own number
        return
    says = f"{where} answered HTTP {status}"
    if status in _TRY_LATER or not 400 <= status < 500:  # noqa: PLR2004 - HTTP's own numbers
        raise Outage(says, retry_at=retry_at(response.headers.get("Retry-After"), datetime.now(UTC)))
    raise Refused(says)


@contextmanager
def _errors(where: str) -> Generator[None]:
    import aiohttp  # noqa: PLC0415 - slow; not at parse time

    try:
        yield
    except TimeoutError:
        raise Outage(f"{where}: no whole answer in time") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        private = private_cause(error)
        if private is not None:
            raise BadInput(f"{where}: {private}") from None
        raise Outage(f"{where}: no whole answer: {type(error).__name__}") from None
