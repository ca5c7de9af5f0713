"""Push messages to browsers: encrypted for the one device (RFC 8291), signed with our own key (VAPID, RFC 8292).

An endpoint is what a browser told an application, so it is asked for only at the services that the connection
allows, at public addresses, without following redirects.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from hooks.allowed_hosts import AllowedHosts, private_cause
from hooks.connections import Access
from hooks.pace import PER_SECOND, cap_of, in_time
from hooks.retry_after import retry_at
from include.ecocomply.channels import Push, Pushed, Subscription
from include.errors import AlmanacError, BadInput
from include.mail import Accepted, Batch, Deferred, Outcome, Rejected, Unknown

if TYPE_CHECKING:
    import aiohttp

SERVICES = (
    "fcm.googleapis.com", "updates.push.services.mozilla.com", "*.push.apple.com", "*.notify.windows.com",
)  # fmt: skip
"""The push services of Chrome, Firefox, Safari and Edge."""

LARGEST = 4_096
"""Bytes of an encrypted message that every service takes (RFC 8030, 7.2)."""

_HEADER = 86  # salt, record size, the key's length and the key
_PADDING = 17  # the delimiter and the tag
_SIGNED_HOURS = 12
_SIGNED_ANEW = timedelta(hours=1)
_LONGEST_ANSWER = 10_000
_SUBJECT = re.compile(r"(mailto:[^@\s]+@[^@\s]+|https://[^\s]+)")
_KEY_BYTES = 32
_POINT_BYTES = 65
_AUTH_BYTES = 16


class WebPush:
    """Sends to the browsers' push services, which know no idempotency keys: each message at most once.

    Of the connection: the password is the private VAPID key, 32 bytes in URL-safe base64 as `npx web-push
    generate-vapid-keys` and `vapid` print it. Extras: `subject` (whom a push service may write to, mailto: or
    https:), `ttl` (seconds that a service keeps a message for a device that is off: a day), `hosts` (services
    instead of SERVICES), `private_addresses` (true lets them stand in a private network, without TLS), `in_flight`
    (messages at a time: 20), `per_second` (50), `timeout` (seconds for one answer: 30).

    A device that a service knows no more (404, 410) is gone. 401 and 403 say that our key is wrong, unless the same
    service has taken another message under it: then the device was subscribed under another key.
    """

    key_lifetime = timedelta(0)

    def __init__(self, access: Access, seconds: float | None = None) -> None:
        self.access = access
        self.in_flight = int(access.number("in_flight", 20, 1, 100))
        self._per_second = cap_of(access, PER_SECOND)
        self._seconds = seconds
        self._timeout = access.number("timeout", 30, 0.1, 600)
        self._ttl = int(access.number("ttl", 86_400, 0, 28 * 86_400))
        self._private = access.flag("private_addresses", default=False)
        self._hosts = AllowedHosts(access, "push service", SERVICES)
        self._subject = access.text("subject") or ""
        if not _SUBJECT.fullmatch(self._subject):
            raise access.bad("extra 'subject'", "must be a mailto: or https: address")
        if len(_bytes(access.password or "") or b"") != _KEY_BYTES:
            raise access.bad("password", "must be a private VAPID key: 32 bytes in URL-safe base64")
        self._lock = threading.Lock()
        self._signatures: dict[str, tuple[datetime, str]] = {}
        self._trusting: set[str] = set()

    def in_time(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        return in_time(batches, self._per_second, self._seconds)

    def send(self, key: str, push: Push) -> Pushed:
        """Send one message to every device; see PushMessages."""
        shown = msgspec.json.encode({"title": push.title, "body": push.body, "url": push.url})
        if len(shown) > LARGEST - _HEADER - _PADDING:
            return Pushed(Rejected(f"the message is too large for a push service: {len(shown):,} bytes"))
        outcomes = asyncio.run(self._send_all(key, shown, push.subscriptions))
        gone = [
            one.endpoint for one, found in zip(push.subscriptions, outcomes, strict=True) if found is None
        ]
        return Pushed(_of_all([found for found in outcomes if found is not None]), gone)

    def test(self) -> str:
        """Sign with the key; return its public part, which applications subscribe with. Raises BadInput."""
        authorization = self._authorization("https://push.invalid")
        return f"messages are signed; the public key is {authorization.rpartition('k=')[2]}"

    async def _send_all(
        self, key: str, shown: bytes, subscriptions: Sequence[Subscription]
    ) -> list[Outcome | None]:
        async with self._hosts.session("*/*", at_once=max(1, len(subscriptions))) as session:
            return await asyncio.gather(*(self._send_one(session, key, shown, one) for one in subscriptions))

    async def _send_one(
        self, session: aiohttp.ClientSession, key: str, shown: bytes, device: Subscription
    ) -> Outcome | None:
        """Send to one device; None if there is none any more."""
        import aiohttp  # noqa: PLC0415 - slow; not at parse time

        try:
            self._hosts.check(device.endpoint)
            if not self._private and urlsplit(device.endpoint).scheme != "https":
                raise BadInput("push service: not over https")
            body = encrypted(shown, device)
            headers = self._headers(key, device.endpoint)
        except AlmanacError as error:
            return Rejected(self.access.for_log(str(error)))
        certain = False
        try:
            async with (
                asyncio.timeout(self._timeout),
                session.post(device.endpoint, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                said = (await answer.content.read(_LONGEST_ANSWER)).decode("utf-8", "replace")
                return self._outcome(device, answer.status, answer.headers, said)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            # Not one byte of the message has left.
            certain, reason = True, private_cause(error) or type(error).__name__
            if private_cause(error):
                return Rejected(f"push service: {reason}")
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            reason = type(error).__name__
        said = f"no answer from {_origin(device.endpoint)}: {reason}"
        return Deferred(said, certain=True) if certain else Unknown(said)

    def _headers(self, key: str, endpoint: str) -> Mapping[str, str]:
        # Of two messages of a topic that wait for a device, it is shown the later one alone.
        topic = base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()[:24]).decode()
        return {
            "Authorization": self._authorization(_origin(endpoint)),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(self._ttl),
            "Topic": topic,
        }

    def _authorization(self, origin: str) -> str:
        """Return the VAPID header for a push service; one signature serves an hour of messages."""
        from py_vapid import Vapid02, VapidException  # noqa: PLC0415 - slow; not at parse time

        now = datetime.now(UTC)
        with self._lock:
            until, header = self._signatures.get(origin, (now, ""))
            if until > now:
                return header
            claims = {
                "aud": origin,
                "sub": self._subject,
                "exp": int(time.time()) + _SIGNED_HOURS * 3_600,
            }
            try:
                signer = Vapid02.from_raw((self.access.password or "").encode())
                header = str(signer.sign(claims)["Authorization"])
            except (VapidException, ValueError, binascii.Error) as error:
                raise self.access.bad(
                    "password", f"is no private VAPID key ({type(error).__name__})"
                ) from None
            self._signatures[origin] = now + _SIGNED_ANEW, header
            return header

    def _outcome(
        self, device: Subscription, status: int, headers: Mapping[str, str], body: str
    ) -> Outcome | None:
        origin = _origin(device.endpoint)
        said = self._said(device, f"{status} of {origin}: {body or '(no body)'}")
        if status in (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED):
            self._trusting.add(origin)
            return Accepted(self._said(device, headers.get("Location") or "")[:200] or f"taken by {origin}")
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            return None
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return Rejected(said) if origin in self._trusting else Deferred(said, certain=True)
        later = retry_at(headers.get("Retry-After"), datetime.now(UTC))
        if status in (HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT):
            return Unknown(said)
        if status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS) or status >= 500:  # noqa: PLR2004 - HTTP's own
            return Deferred(said, certain=True, retry_at=later)
        return Rejected(said)

    def _said(self, device: Subscription, text: str) -> str:
        # Who knows the endpoint and the secret can send to the device; a service may quote both.
        path = urlsplit(device.endpoint).path.strip("/")
        for secret in (path, path.rpartition("/")[2], device.auth, device.p256dh):
            if secret:
                text = text.replace(secret, "***")
        return self.access.for_log(text)[:300]


def encrypted(shown: bytes, device: Subscription) -> bytes:
    """Return the message as only that device can read it. Raises BadInput for keys that are none."""
    import http_ece  # noqa: PLC0415 - slow; not at parse time
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - as above

    point, auth = _bytes(device.p256dh), _bytes(device.auth)
    if point is None or len(point) != _POINT_BYTES or auth is None or len(auth) != _AUTH_BYTES:
        raise BadInput("push service: the device's keys are none")
    try:
        return http_ece.encrypt(
            shown,
            private_key=ec.generate_private_key(ec.SECP256R1()),
            dh=point,
            auth_secret=auth,
            version="aes128gcm",
            rs=LARGEST,
        )
    except (http_ece.ECEException, ValueError) as error:
        raise BadInput(f"push service: the device's keys are none ({type(error).__name__})") from None


def _of_all(found: Sequence[Outcome]) -> Outcome:
    """Return what became of a message by what became of it at each device: one that took it is enough."""
    for kind in (Accepted, Unknown, Deferred):
        if of_kind := [one for one in found if isinstance(one, kind)]:
            return of_kind[0]
    reasons = [one.reason for one in found if isinstance(one, Rejected)]
    return Rejected(
        "; ".join(dict.fromkeys(reasons))[:500] or "no device of the user takes push messages any more"
    )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _bytes(text: str) -> bytes | None:
    if not re.fullmatch(r"[A-Za-z0-9_-]+=*", text):
        return None
    try:
        return base64.urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))
    except (ValueError, binascii.Error):
        return None
