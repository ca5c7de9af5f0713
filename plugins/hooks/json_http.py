"""One HTTP request with a JSON answer: bounded in size and time, made once, redirects not followed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hooks.connections import Access
from hooks.retry_after import retry_at

if TYPE_CHECKING:
    import httpx

_EXCERPT = 200
_CONNECT_SECONDS = 5.0
_LAST_PORT = 65_535


class Unreached(Exception):
    """The request was not sent."""


class Unanswered(Exception):
    """The request went out, at least in part, and no whole answer came: nobody knows what became of it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`silence` is how long nothing may come, `total` how long all of it may take, in seconds; `largest` in bytes."""

    silence: float = 30
    total: float = 120
    largest: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; `retry_at` is what it says of another try."""

    status: int
    reason: str
    body: bytes
    retry_at: datetime | None = None
    location: str | None = None

    def json(self) -> Any:
        """Return the body as JSON, or None if it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def says(self, access: Access) -> str:
        """Return status and the body's beginning in one line, without the connection's secrets."""
        # Secrets go before the cut, which could leave half of one.
        text = access.for_log(self.body[: 64 * _EXCERPT].decode("utf-8", "replace"))
        head = f"HTTP {self.status} {self.reason}".rstrip()
        if self.location is not None:
            return f"{head}: redirects are not followed (to {access.for_log(self.location)[:_EXCERPT]})"
        return f"{head}: {text[:_EXCERPT] + '…' if len(text) > _EXCERPT else text or '(no body)'}"


def request(
    method: str, url: str, headers: Mapping[str, str], content: Any = None, limits: Limits | None = None
) -> Answer:
    """Make one request; `content` goes as JSON. Raises Unreached or Unanswered, with texts that hold no header."""
    limits = limits or Limits()
    body = None if content is None else json.dumps(content, ensure_ascii=False).encode()
    # Unpacked, a small answer could be a huge one.
    sent = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
    if body is not None:
        sent["Content-Type"] = "application/json"
    return asyncio.run(_answer(method, url, sent, body, limits))


async def _answer(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None, limits: Limits
) -> Answer:
    import httpx  # noqa: PLC0415 - slow; not at parse time

    timeout = httpx.Timeout(limits.silence, connect=_CONNECT_SECONDS)
    with _errors(limits):
        if (httpx.URL(url).port or 0) > _LAST_PORT:
            raise Unreached("can't be asked: there is no such port")
        # Around all of it: headers can drip as a body can.
        async with (
            asyncio.timeout(limits.total),
            httpx.AsyncClient(timeout=timeout, follow_redirects=False) as client,
            client.stream(method, url, headers=headers, content=body) as response,
        ):
            return Answer(
                status=response.status_code,
                reason=response.reason_phrase,
                body=await _body(response, limits),
                retry_at=retry_at(response.headers.get("Retry-After"), datetime.now(UTC)),
                location=response.headers.get("Location") if response.is_redirect else None,
            )


async def _body(response: httpx.Response, limits: Limits) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > limits.largest:
            raise Unanswered(f"the answer is larger than {limits.largest:,} bytes")
    return bytes(body)


@contextmanager
def _errors(limits: Limits) -> Generator[None]:
    import httpx  # noqa: PLC0415 - slow; not at parse time

    try:
        yield
    except httpx.ConnectTimeout:
        raise Unreached(f"no connection within {_CONNECT_SECONDS:g} s") from None
    except (httpx.ConnectError, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.ProxyError) as error:
        raise Unreached(f"no connection: {type(error).__name__}") from None
    except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeEncodeError) as error:
        raise Unreached(f"can't be asked: {type(error).__name__}") from None
    except httpx.TimeoutException:
        raise Unanswered(f"no answer within {limits.silence:g} s") from None
    except TimeoutError:
        raise Unanswered(f"no whole answer within {limits.total:g} s") from None
    except httpx.HTTPError as error:
        raise Unanswered(f"no whole answer: {type(error).__name__}") from None
