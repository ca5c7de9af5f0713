"""SMS over Twilio's HTTP API. It knows no idempotency keys, so each message is sent at most once."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from hooks.connections import Access
from hooks.email_http import Ask, HttpMail, put_off
from hooks.email_resend_api import Reply, request, session
from hooks.retry_after import retry_at
from include.mail import Accepted, Deferred, Message, Outcome, Rejected

if TYPE_CHECKING:
    import aiohttp

_LONGEST_TEXT = 1_600
_SHORT_WAIT = timedelta(seconds=1)
_ACCOUNT = re.compile(r"AC[0-9a-zA-Z]{32}")
_SERVICE = re.compile(r"MG[0-9a-zA-Z]{32}")
_SENDER = re.compile(r"\+?[0-9]{3,15}|[A-Za-z0-9 ]{1,11}")
# Twilio's codes for what is our own setting: the sender, the messaging service, permissions of the account.
_OURS = frozenset([20003, 20008, 21212, 21603, 21606, 21607, 21659, 21660, 21661, 21701, 21703, 21704, 21705])


class TwilioTexts(HttpMail):
    """A provider of SMS that speaks Twilio's API, or that of a service which speaks the same.

    Of the connection: the login is the account's SID and the password its token, or login and password are an API
    key and the extra `account_sid` is the account. The extra `from` is the number, the sender's name, or the SID of
    the messaging service (MG…) that messages come from. Otherwise as mail: `base_url`, `in_flight` (20), `timeout`,
    `longest_wait`.
    """

    key_lifetime = timedelta(0)
    most_together = 1
    api = "https://api.twilio.com"

    def __init__(self, access: Access) -> None:
        super().__init__(access, batch_size=1, in_flight=20)
        self._login = access.login or ""
        self._account = access.text("account_sid") or self._login
        if not _ACCOUNT.fullmatch(self._account):
            raise access.bad("login", "must be the account's SID, AC and 32 characters, or an API key of one")
        if not self._login.isascii() or not self._login.isalnum():
            raise access.bad("login", "must be the account's SID or an API key's")
        if self.default_sender is None:
            raise access.bad("extra 'from'", "is missing: a number, a name or a messaging service")
        self._path = f"/2010-04-01/Accounts/{quote(self._account, safe='')}"

    def sender(self, access: Access) -> str | None:
        given = access.text("from")
        if given is not None and not (_SENDER.fullmatch(given) or _SERVICE.fullmatch(given)):
            raise access.bad("extra 'from'", f"is no number, name or messaging service: {given[:40]!r}")
        return given

    def fault(self, message: Message, sender: str) -> str | None:  # noqa: ARG002 - the provider's form
        if not message.text.strip():
            return "the text is empty"
        if len(message.text) > _LONGEST_TEXT:
            return f"the text is too long: {len(message.text)} characters"
        number = _number(message.to)
        return None if re.fullmatch(r"\+?[0-9]{3,15}", number) else "this is no phone number"

    def for_log(self, text: str) -> str:
        # A service may quote what it was sent.
        return super().for_log(text.replace(self._basic, "***"))

    def payload(self, message: Message, sender: str) -> dict[str, Any]:
        by = "MessagingServiceSid" if _SERVICE.fullmatch(sender) else "From"
        return {"To": _number(message.to), by: sender, "Body": message.text}

    def ask(self, key: str, payloads: Sequence[Mapping[str, Any]]) -> Ask:  # noqa: ARG002 - there are no keys
        (fields,) = payloads
        return Ask(f"{self._path}/Messages.json", urlencode(fields).encode(), {})

    def outcomes(self, reply: Reply, number: int) -> Sequence[Outcome]:
        return [self._outcome(reply)] * number

    def again_at(self, reply: Reply, now: datetime) -> datetime:
        return retry_at(reply.headers.get("retry-after"), now) or now + _SHORT_WAIT

    def session(self) -> aiohttp.ClientSession:
        form = "application/x-www-form-urlencoded"
        return session(f"Basic {self._basic}", self.in_flight, self.timeout, form)

    async def check(self, over: aiohttp.ClientSession) -> str:
        reply = await request(over, "GET", f"{self.base_url}{self._path}.json")
        body = reply.body if isinstance(reply.body, dict) else {}
        if reply.status != HTTPStatus.OK or "status" not in body:
            raise self.failure(reply)
        if body["status"] != "active":
            raise self.failure(Reply(reply.status, "account", f"is {str(body['status'])[:40]}, not active"))
        return f"{self.base_url} accepts the key"

    @property
    def _basic(self) -> str:
        return base64.b64encode(f"{self._login}:{self.access.password}".encode()).decode()

    def _outcome(self, reply: Reply) -> Outcome:
        body = reply.body if isinstance(reply.body, dict) else {}
        if reply.status == HTTPStatus.CREATED:
            sid = body.get("sid")
            if isinstance(sid, str) and sid:
                return Accepted(sid)
            return Deferred("201 without a message's SID", certain=False)
        if reply.status == 0 and reply.failure:
            return reply.failure
        if HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
            return Deferred(f"{reply.status}, which is not Twilio's yes", certain=False)
        code = body.get("code")
        known = isinstance(code, int) and not isinstance(code, bool)
        said = f"{reply.status} {code}: {reply.message}" if known else reply.said
        if reply.status == HTTPStatus.BAD_REQUEST and known and code not in _OURS:
            return Rejected(said)
        return put_off(reply, said, own_words=known)


def _number(text: str) -> str:
    """Return a number as people write it without what is there to be read: blanks, dots, dashes, brackets."""
    return re.sub(r"[\s.()/-]", "", text.replace("(0)", ""))
