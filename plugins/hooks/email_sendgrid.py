"""Mail over SendGrid's v3 HTTP API. It knows no idempotency keys, so each message is sent at most once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import getaddresses
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from hooks.connections import Access
from hooks.email_http import Ask, HttpMail, put_off
from hooks.email_resend_api import Reply, request
from hooks.retry_after import LONGEST, retry_at
from include.addresses import bare_address
from include.mail import Accepted, Deferred, Message, Outcome, Rejected

if TYPE_CHECKING:
    import aiohttp

_SHORT_WAIT = timedelta(seconds=10)


class SendGridMail(HttpMail):
    """A mail provider that speaks SendGrid's `mail/send`, or that of a service which speaks the same.

    Without `in_flight` there are 20 requests at a time. Each message carries its batch's key as the custom
    argument `almanac_key`, by which a person finds one whose outcome is unknown in SendGrid's activity.
    """

    key_lifetime = timedelta(0)
    most_together = 1
    api = "https://api.sendgrid.com"

    def __init__(self, access: Access) -> None:
        # A process that dies leaves in doubt what was in flight, so that is less than with keys.
        super().__init__(access, batch_size=1, in_flight=20)

    def payload(self, message: Message, sender: str) -> dict[str, Any]:
        content = [{"type": "text/plain", "value": message.text}]
        if message.html is not None:
            content.append({"type": "text/html", "value": message.html})
        fields: dict[str, Any] = {
            "personalizations": [{"to": [_mailbox(message.to)]}],
            "from": _mailbox(sender),
            "subject": message.subject,
            "content": content,
            # Ours is in the message; SendGrid's would take its place.
            "tracking_settings": {"subscription_tracking": {"enable": False}},
        }
        if message.headers:
            fields["headers"] = dict(sorted(message.headers.items()))
        return fields

    def ask(self, key: str, payloads: Sequence[Mapping[str, Any]]) -> Ask:
        (fields,) = payloads
        body = msgspec.json.encode({**fields, "custom_args": {"almanac_key": key}})
        return Ask("/v3/mail/send", body, {})

    def outcomes(self, reply: Reply, number: int) -> Sequence[Outcome]:
        return [self._outcome(reply)] * number

    def again_at(self, reply: Reply, now: datetime) -> datetime:
        told = retry_at(reply.headers.get("retry-after"), now)
        return told or _reset(reply.headers.get("x-ratelimit-reset"), now) or now + _SHORT_WAIT

    async def check(self, over: aiohttp.ClientSession) -> str:
        reply = await request(over, "GET", f"{self.base_url}/v3/scopes")
        scopes = reply.body.get("scopes") if isinstance(reply.body, dict) else None
        if reply.status != HTTPStatus.OK or not isinstance(scopes, list):
            raise self.failure(_told(reply))
        if "mail.send" not in scopes:
            raise self.failure(
                Reply(reply.status, "scopes", "the key may not send mail: mail.send is missing")
            )
        return f"{self.base_url} accepts the key"

    def _outcome(self, reply: Reply) -> Outcome:
        said = _told(reply)
        if reply.status == HTTPStatus.ACCEPTED:
            message_id = reply.headers.get("x-message-id")
            return (
                Accepted(message_id) if message_id else Deferred("202 without an X-Message-Id", certain=False)
            )
        if reply.status == 0 and reply.failure:
            return reply.failure
        if reply.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE):
            # The sender is our setting.
            ours = any(error["field"].startswith("from") for error in _errors(reply))
            return Deferred(said.said, certain=True) if ours else Rejected(said.said)
        if HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
            return Deferred(f"{reply.status}, which is not SendGrid's yes", certain=False)
        return put_off(reply, said.said, own_words=bool(_errors(reply)))


def _mailbox(value: str) -> dict[str, str]:
    name = getaddresses([value])[0][0] if value else ""
    return {"email": bare_address(value), **({"name": name} if name else {})}


def _errors(reply: Reply) -> list[dict[str, str]]:
    found = reply.body.get("errors") if isinstance(reply.body, dict) else None
    if not isinstance(found, list):
        return []
    return [
        {"field": str(one.get("field") or ""), "message": str(one.get("message") or "no reason given")}
        for one in found
        if isinstance(one, dict)
    ]


def _told(reply: Reply) -> Reply:
    """Return the reply with SendGrid's reasons as its message."""
    words = "; ".join(
        f"{error['field']}: {error['message']}" if error["field"] else error["message"]
        for error in _errors(reply)
    )
    return Reply(reply.status, message=words or reply.message) if reply.status else reply


def _reset(header: str | None, now: datetime) -> datetime | None:
    """Read the epoch second at which the limit is lifted."""
    if not header or not header.isascii() or not header.isdigit() or len(header) > 11:  # noqa: PLR2004 - till 5138
        return None
    return min(max(datetime.fromtimestamp(int(header), UTC), now), now + LONGEST)
