"""Resend's HTTP API as it is spoken: one request, one reply, and what the reply says of each message."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from hooks.retry_after import retry_at
from include.mail import Accepted, Deferred, Message, Outcome, Rejected, Unknown

if TYPE_CHECKING:
    import aiohttp

_LONGEST_ANSWER = 4 * 1024 * 1024
_LONGEST_CONNECT = 10
# What Resend counts in, where a 429 comes without a header that can be read.
_RATE_WINDOW = timedelta(seconds=1)
_QUOTA_WINDOW = timedelta(hours=24)
# How Resend begins when it won't have the sender; what follows may quote what a customer wrote.
_ABOUT_SENDER = re.compile(r"(invalid|missing) (the )?[`'\"]?from\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back of one request.

    `failure` is set where the answer says nothing of the messages: there was none, or the service failed.
    `status` is 0 if there was no answer. `name` and `message` are the API's own of an error.
    """

    status: int
    name: str = ""
    message: str = ""
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    failure: Deferred | None = None

    @property
    def said(self) -> str:
        """The status and the service's own words."""
        return f"{self.status} {self.name}: {self.message}" if self.name else f"{self.status} {self.message}"

    @property
    def wants_a_wait(self) -> bool:
        """Say whether the request came too early or beyond a quota; nothing was taken."""
        return self.status == HTTPStatus.TOO_MANY_REQUESTS

    @property
    def about_quota(self) -> bool:
        return "quota" in self.name


def session(
    authorization: str, connections: int, timeout: float, content_type: str = "application/json"
) -> aiohttp.ClientSession:
    """Return a session for one event loop. `timeout` is in seconds, for a whole answer."""
    import aiohttp  # noqa: PLC0415 - 0.3 s that the parsing of a DAG need not pay

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=5),
        timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, _LONGEST_CONNECT)),
        headers={
            "Authorization": authorization,
            "Content-Type": content_type,
            "User-Agent": "almanac",
        },
        cookie_jar=aiohttp.DummyCookieJar(),
    )


async def request(
    over: aiohttp.ClientSession,
    method: str,
    url: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Make one request and return what came of it; never raises for what the network does."""
    import aiohttp  # noqa: PLC0415 - as above

    certain = False
    try:
        async with over.request(method, url, data=body, headers=headers, allow_redirects=False) as response:
            return _read(response.status, response.headers, await _content(response))
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        # No connection, so not one byte of the message has left.
        certain, reason = True, _kind(error)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        reason = _kind(error)
    return Reply(0, failure=Deferred(f"no answer from {url}: {reason}", certain=certain))


def payload(message: Message, sender: str) -> dict[str, Any]:
    """Return a message as the API takes it; the same message gives the same JSON."""
    fields: dict[str, Any] = {
        "from": sender,
        "to": [message.to],
        "subject": message.subject,
        "text": message.text,
    }
    if message.html is not None:
        fields["html"] = message.html
    if message.headers:
        fields["headers"] = dict(sorted(message.headers.items()))
    return fields


def outcomes(reply: Reply, number: int) -> Sequence[Outcome] | None:
    """Return what a reply says of `number` messages sent together, in their order.

    None if a fault of one message kept all of them from being taken. A 429 is no outcome yet: see
    `Reply.wants_a_wait`.
    """
    if reply.failure:
        return [reply.failure] * number
    if HTTPStatus(200) <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
        return (
            _accepted(reply.body, number)
            or [
                Deferred(
                    f"{reply.status} with an answer that does not account for each message", certain=False
                )
            ]
            * number
        )
    if reply.status == HTTPStatus.CONFLICT:
        changed = reply.name == "invalid_idempotent_request"
        still = Deferred(reply.said, certain=False, in_progress=True)
        return [Unknown(reply.said) if changed else still] * number
    if not _about_message(reply):
        return [Deferred(reply.said, certain=True)] * number
    return [Rejected(reply.said)] if number == 1 else None


def again_at(reply: Reply, now: datetime) -> datetime:
    """Return the earliest instant at which a request that got a 429 may be made again."""
    told = retry_at(reply.headers.get("retry-after"), now)
    if told is not None:
        return told
    if not reply.about_quota:
        return retry_at(reply.headers.get("ratelimit-reset"), now) or now + _RATE_WINDOW
    if reply.name.startswith("monthly"):
        this_month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        return (this_month + timedelta(days=32)).replace(day=1)
    return now + _QUOTA_WINDOW


def _read(status: int, headers: Mapping[str, str], content: bytes | None) -> Reply:
    try:
        body = json.loads(content) if content is not None else None
    except (ValueError, RecursionError):
        body = None
    fields = body if isinstance(body, dict) else {}
    name, message = fields.get("name"), fields.get("message")
    reply = Reply(
        status=status,
        name=name if isinstance(name, str) else "",
        message=message if isinstance(message, str) else "no reason given",
        body=body,
        headers=headers,
    )
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT:
        later = retry_at(headers.get("retry-after"), datetime.now(UTC))
        return replace(reply, failure=Deferred(reply.said, certain=False, retry_at=later))
    return reply


async def _content(response: aiohttp.ClientResponse) -> bytes | None:
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > _LONGEST_ANSWER:
            return None
    return bytes(content)


def _accepted(body: Any, number: int) -> Sequence[Outcome] | None:
    if not isinstance(body, dict):
        return None
    if number == 1 and _is_id(body):
        return [Accepted(body["id"])]
    taken, errors = body.get("data"), body.get("errors") or []
    if not isinstance(taken, list) or not all(map(_is_id, taken)) or not isinstance(errors, list):
        return None
    refused: dict[int, Outcome] = {}
    for error in errors:
        position = error.get("index") if isinstance(error, dict) else None
        if not isinstance(position, int) or not 0 <= position < number:
            return None
        said = str(error.get("message") or "no reason given")
        refused[position] = Deferred(said, certain=True) if _ABOUT_SENDER.match(said) else Rejected(said)
    if len(refused) + len(taken) != number:
        return None
    ids = iter(taken)
    return [refused.get(position) or Accepted(next(ids)["id"]) for position in range(number)]


def _is_id(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("id"), str) and bool(item["id"])


def _about_message(reply: Reply) -> bool:
    """Say whether an error is the message's fault, not that of our key, our settings or the service."""
    if reply.status not in (
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.UNAVAILABLE_FOR_LEGAL_REASONS,
    ):
        return False
    # The sender is our setting.
    if reply.name == "invalid_from_address" or _ABOUT_SENDER.match(reply.message):
        return False
    # Resend answers 400 "API key is invalid" too, under the name that it gives to faults of a message.
    return reply.name != "invalid_idempotency_key" and "api key" not in reply.message.lower()


def _kind(error: BaseException) -> str:
    # The kind and the system's own words: an exception's text may quote the request, and with it the key.
    cause = getattr(error, "os_error", None) or error
    words = ""
    if isinstance(cause, ConnectionError) and cause.errno:
        words = os.strerror(cause.errno)
    elif isinstance(cause, OSError):
        words = cause.strerror or ""
    return f"{type(error).__name__} ({words})" if words else type(error).__name__
