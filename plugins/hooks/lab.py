"""The lab partner's API: `GET {base URL}/results?since=…&cursor=…`, bearer token, pages by cursor.

The connection's host is the base URL (its path is kept), its password the token; the extra may hold `verify`,
`cert` and `proxies` as Airflow's HTTP connections do.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from hooks.connections import Access, access
from hooks.retry_after import retry_at
from include.clearpath.lab import LabPage
from include.errors import AlmanacError, BadInput, Outage, Refused

if TYPE_CHECKING:
    from airflow.providers.http.hooks.http import HttpHook
    from requests import PreparedRequest, Response

LARGEST_PAGE = 16 * 1024 * 1024
"""Bytes of one page, unpacked; a longer answer is no page."""

_EXCERPT = 200
_LONGEST_CURSOR = 4_096
_LONGEST_NUMBER = 100
# Deeper than any record that is taken, so that it is seen as nested too deep, and no deeper than can be parsed.
_DEEPEST = 200
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_PASSED_ON = ("verify", "cert", "proxies")
_TRY_LATER = (401, 403, 408, 429)


def lab(conn_id: str) -> HttpLab:
    """Return the lab behind an Airflow connection, without asking it anything."""
    return HttpLab(access(conn_id))


class LabHook(BaseHook):
    """What Airflow's connection form and its Test button know of a lab."""

    conn_name_attr = "lab_conn_id"
    default_conn_name = "almanac_lab"
    conn_type = "almanac_lab"
    hook_name = "Lab (Almanac)"

    def __init__(self, lab_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.lab_conn_id = lab_conn_id

    def get_conn(self) -> HttpLab:
        """Return the lab; see `lab`."""
        return lab(self.lab_conn_id)

    def test_connection(self) -> tuple[bool, str]:
        """Ask for the results of this instant, and say whether a page came."""
        try:
            return self.get_conn().test_connection()
        except AlmanacError as error:
            return False, str(error)


class HttpLab:
    """The lab behind one connection. Times are in seconds; `total` is for one page as a whole."""

    def __init__(self, access: Access, *, connect: float = 5, read: float = 30, total: float = 120) -> None:
        self._access = access
        self._timeout = (connect, read)
        self._total = total

    def results_since(self, since: datetime | None, cursor: str | None = None) -> LabPage:
        """Return one page, as `include.clearpath.lab.Lab` promises.

        NaN and infinite numbers, which JSON doesn't have, come as text, so that a record can be kept as JSON;
        so do whole numbers of more than 100 digits. What is nested hundreds deep is cut short.
        """
        asked: dict[str, str] = {}
        if since is not None:
            if since.tzinfo is None:
                raise BadInput(f"lab: since {since.isoformat()} has no offset")
            asked["since"] = since.astimezone(UTC).isoformat().replace("+00:00", "Z")
        if cursor is not None:
            asked["cursor"] = cursor
        return self._page(self._get("results", asked), cursor)

    def test_connection(self) -> tuple[bool, str]:
        """Ask for the results of this instant, and say whether a page came."""
        try:
            page = self.results_since(datetime.now(UTC))
        except AlmanacError as error:
            return False, str(error)
        return True, f"The lab answered with a page of {len(page.records)} results"

    def _get(self, path: str, asked: Mapping[str, str]) -> bytes:
        began = time.monotonic()
        with self._errors(path):
            response = self._http().run(
                path,
                data=dict(asked),
                headers={"Accept": "application/json"},
                # A redirect is an answer, never a request: the token must not reach another host.
                extra_options={
                    "stream": True,
                    "allow_redirects": False,
                    "check_response": False,
                    "timeout": self._timeout,
                },
            )
            with closing(response):
                if response.status_code != 200:  # noqa: PLR2004 - HTTP's own number
                    raise self._no_page(path, response)
                return self._body(path, response, began)

    def _http(self) -> HttpHook:
        from airflow.providers.http.hooks.http import HttpHook  # noqa: PLC0415 - slow; not at parse time
        from airflow.sdk import Connection  # noqa: PLC0415 - as above

        token = self._access.password or ""
        if not re.fullmatch(r"[!-~]+", token):
            raise self._access.bad("password", "must be the lab's token, in visible ASCII characters")
        extra = {name: self._access.extra[name] for name in _PASSED_ON if name in self._access.extra}
        connection = Connection(
            conn_id=self._access.conn_id,
            conn_type="http",
            host=self._access.base_url(),
            extra=json.dumps(extra) if extra else None,
        )

        def bearer(request: PreparedRequest) -> PreparedRequest:
            request.headers["Authorization"] = f"Bearer {token}"
            return request

        class LabHttp(HttpHook):
            """Airflow's hook, given the connection as read: it would put a port behind the URL's path."""

            @classmethod
            def get_connection(cls, conn_id: str) -> Connection:  # noqa: ARG003 - the one connection
                return connection

        return LabHttp(method="GET", http_conn_id=self._access.conn_id, auth_type=lambda: bearer)

    @contextmanager
    def _errors(self, path: str) -> Generator[None]:
        """Turn what requests and urllib3 raise into ours, without their texts, which can hold a header."""
        from requests import exceptions  # noqa: PLC0415 - slow; not at parse time
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - as above

        try:
            yield
        except (exceptions.InvalidURL, exceptions.MissingSchema, exceptions.InvalidHeader) as error:
            raise self._access.bad("base URL", f"can't be asked: {type(error).__name__}") from None
        except exceptions.ConnectTimeout:
            raise Outage(f"{self._where(path)}: no connection within {self._timeout[0]:g} s") from None
        except exceptions.Timeout:
            raise Outage(f"{self._where(path)}: no answer within {self._timeout[1]:g} s") from None
        except (exceptions.RequestException, HTTPError, OSError) as error:
            raise Outage(f"{self._where(path)}: no whole answer: {_root(error)}") from None

    def _no_page(self, path: str, response: Response) -> AlmanacError:
        status = response.status_code
        says = f"{self._where(path)} answered HTTP {status} {response.reason or ''}".rstrip()
        if 300 <= status < 400:  # noqa: PLR2004 - HTTP's own numbers
            target = self._short(response.headers.get("Location", "nowhere").encode("latin-1", "replace"))
            return Outage(f"{says}: redirects are not followed (to {target})")
        says = f"{says}: {self._excerpt(response)}"
        if status in (401, 403):
            return Outage(f"{says} (is the password of connection {self._access.conn_id} the lab's token?)")
        if status in _TRY_LATER or not 400 <= status < 500:  # noqa: PLR2004 - HTTP's own numbers
            return Outage(says, retry_at=retry_at(response.headers.get("Retry-After"), datetime.now(UTC)))
        return Refused(says)

    def _body(self, path: str, response: Response, began: float) -> bytes:
        body = bytearray()
        while piece := response.raw.read1(65_536, decode_content=True):
            body += piece
            if len(body) > LARGEST_PAGE:
                raise Outage(f"{self._where(path)}: the page is larger than {LARGEST_PAGE:,} bytes")
            if time.monotonic() - began > self._total:
                raise Outage(f"{self._where(path)}: no whole page within {self._total:g} s")
        return bytes(body)

    def _page(self, body: bytes, cursor: str | None) -> LabPage:
        where = self._where("results")
        try:
            page = _parsed(body)
        except ValueError:
            raise Outage(f"{where} answered HTTP 200 without readable JSON: {self._short(body)}") from None
        records = page.get("results") if isinstance(page, dict) else None
        if not isinstance(records, list):
            raise Outage(f"{where} answered HTTP 200 without a list of results: {self._short(body)}")
        following = page.get("next_cursor")
        if following in (None, ""):
            return LabPage(tuple(records), None)
        if not isinstance(following, str) or len(following) > _LONGEST_CURSOR or not _encodable(following):
            raise Outage(f"{where} answered HTTP 200 with an unreadable next_cursor: {self._short(body)}")
        if following == cursor:
            raise Outage(f"{where} gave the page's own cursor as the next one: {following[:_EXCERPT]!r}")
        return LabPage(tuple(records), following)

    def _excerpt(self, response: Response) -> str:
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - slow; not at parse time

        try:
            return self._short(response.raw.read1(8 * _EXCERPT, decode_content=True))
        except (HTTPError, OSError):
            return "(no body)"

    def _short(self, body: bytes) -> str:
        # Secrets go before the cut, which could leave half of one.
        text = self._access.without_secrets(body[: 64 * _EXCERPT].decode("utf-8", "replace"))
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return (text[:_EXCERPT] + "…" if len(text) > _EXCERPT else text) or "(no body)"

    def _where(self, path: str) -> str:
        return f"lab {self._access.conn_id}: GET {self._access.base_url()}/{path}"


def _parsed(body: bytes) -> Any:
    """Return a page as JSON, whatever one of its records holds. Raises ValueError if it is none."""
    text = body.decode(json.detect_encoding(body), "surrogatepass")
    try:
        return _loads(text)
    except RecursionError:
        pass
    try:
        return _loads(_cut_short(text))
    except RecursionError:
        raise ValueError("nested too deep to be read") from None


def _loads(text: str) -> Any:
    return json.loads(text, parse_constant=str, parse_float=_finite, parse_int=_whole)


def _cut_short(text: str) -> str:
    """Return JSON with an ellipsis in place of all that is nested more than _DEEPEST deep."""
    kept, depth, start = [], 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth == _DEEPEST + 1:
                kept.append(text[start : token.start()])
        elif token[0] in "]}":
            if depth == _DEEPEST + 1:
                kept.append('"…"')
                start = token.end()
            depth -= 1
    if depth > _DEEPEST:
        raise ValueError("nested too deep, and never closed")
    return "".join([*kept, text[start:]])


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _whole(number: str) -> int | str:
    return int(number) if len(number) <= _LONGEST_NUMBER else number


def _finite(number: str) -> float | str:
    value = float(number)
    return value if math.isfinite(value) else number


def _root(error: BaseException) -> str:
    """Return the name of what lies at the bottom, such as ConnectionRefusedError or IncompleteRead."""
    seen: set[int] = set()
    inner: Any = error
    while inner is not None and id(inner) not in seen:
        seen.add(id(inner))
        error = inner
        causes = [inner.__cause__, getattr(inner, "reason", None), *inner.args, inner.__context__]
        inner = next((c for c in causes if isinstance(c, BaseException)), None)
    return type(error).__name__
