"""Mail over Resend's HTTP API, each request under an idempotency key."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from hooks.connections import Access
from hooks.email_http import Ask, HttpMail
from hooks.email_resend_api import Reply, again_at, outcomes, payload, request
from include.mail import Message, Outcome

if TYPE_CHECKING:
    import aiohttp

MOST_PER_BATCH = 100
"""The most messages that one request may carry."""

_LONGEST_KEY = 256


class ResendMail(HttpMail):
    """A mail provider that speaks Resend's API, or that of a service which speaks the same.

    Its own extra: `batch_size` (1 to 100). Without `in_flight` there are 10 requests at a time, or 100 when
    `batch_size` is 1.
    """

    key_lifetime = timedelta(hours=24)
    most_together = MOST_PER_BATCH
    api = "https://api.resend.com"

    def __init__(self, access: Access) -> None:
        size = int(access.number("batch_size", MOST_PER_BATCH, 1, MOST_PER_BATCH))
        super().__init__(access, batch_size=size, in_flight=100 if size == 1 else 10)

    def payload(self, message: Message, sender: str) -> dict[str, Any]:
        return payload(message, sender)

    def ask(self, key: str, payloads: Sequence[Mapping[str, Any]]) -> Ask:
        headers = {"Idempotency-Key": _header_value(key)}
        if len(payloads) == 1:
            return Ask("/emails", msgspec.json.encode(payloads[0]), headers)
        headers["x-batch-validation"] = "permissive"
        return Ask("/emails/batch", msgspec.json.encode(payloads), headers)

    def outcomes(self, reply: Reply, number: int) -> Sequence[Outcome] | None:
        return outcomes(reply, number)

    def again_at(self, reply: Reply, now: datetime) -> datetime:
        return again_at(reply, now)

    async def check(self, over: aiohttp.ClientSession) -> str:
        reply = await request(over, "GET", f"{self.base_url}/domains")
        if reply.status == HTTPStatus.OK:
            return f"{self.base_url} accepts the key"
        if reply.name == "restricted_api_key":
            return f"{self.base_url} accepts the key; it may only send"
        raise self.failure(reply)


def _header_value(key: str) -> str:
    """Return `key` if it can be an Idempotency-Key, else one that stands for it alone."""
    if 0 < len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable() and " " not in key:
        return key
    return "sha256:" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
