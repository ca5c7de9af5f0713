"""The link by which a person, without a login, wants no more mails of a type: signed, for one purpose, for a year."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import NamedTuple
from uuid import UUID

import msgspec
from itsdangerous import BadData, URLSafeSerializer

from include.ecocomply.tables.notifications import CHANNELS
from include.errors import BadInput
from include.run import Transaction
from include.statements import statement

LINK_DAYS = 365
_SHORTEST_KEY = 32
_PURPOSE = "almanac: ecocomply unsubscribe"


class LinkExpired(BadInput):
    """The link is one of ours, and too old."""


class Unsubscription(NamedTuple):
    """Who wants no more of what, by which channel; the link holds up to and including `until`."""

    user_id: UUID
    notification_type: str
    channel: str
    until: date


@dataclass(frozen=True, slots=True)
class UnsubscribeLinks:
    """Makes links under PUBLIC_URL and reads their tokens. Raises BadInput for a key of fewer than 32 bytes."""

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.key) < _SHORTEST_KEY:
            raise BadInput(f"EcoComply: the key that signs links has {len(self.key)} bytes, fewer than 32")

    def url(self, public_url: str, user_id: UUID, notification_type: str, today: date) -> str:
        """Return the link of a mail that goes out today."""
        said = Unsubscription(user_id, notification_type, "EMAIL", today + timedelta(days=LINK_DAYS))
        token = self._signer().dumps(msgspec.to_builtins(said))
        return f"{public_url.rstrip('/')}/unsubscribe/{token}"

    def read(self, token: str, today: date) -> Unsubscription:
        """Return what a token says. Raises LinkExpired if it is too old, BadInput if it is not ours."""
        try:
            said = self._signer().loads(token)
        except BadData:
            raise BadInput("the link is not one of ours") from None
        found = msgspec.convert(said, Unsubscription)
        if found.channel not in CHANNELS:
            raise BadInput("the link is not one of ours")
        if found.until < today:
            raise LinkExpired("the link has expired")
        return found

    def _signer(self) -> URLSafeSerializer:
        return URLSafeSerializer(
            self.key,
            salt=_PURPOSE,
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )


def unsubscribe(tx: Transaction, what: Unsubscription) -> bool:
    """Let a person have no more of a type by a channel, in the service's role; say whether there is such a user."""
    return bool(
        tx.execute(
            statement("include.ecocomply", "unsubscribe"),
            user_id=what.user_id,
            notification_type=what.notification_type,
            channel=what.channel,
        )
    )
