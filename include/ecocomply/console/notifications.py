"""The log of notifications: each with why it was sent or was not, and the message as it was claimed."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Row

from include.ecocomply import ZONE
from include.ecocomply.channels import Push
from include.ecocomply.console import PACKAGE, PAGE
from include.ecocomply.console.listing import Listed, Place, companies, instant_of, page_of, people
from include.ecocomply.notice_words import kinds
from include.ecocomply.notification_reasons import DigestState, NotificationState, reason
from include.ecocomply.tables.notifications import NOTIFICATION_STATUSES
from include.errors import BadInput
from include.mail import Message
from include.run import Transaction
from include.statements import statement
from include.stored_message import unpack

UNKNOWN = "UNKNOWN"
"""Not a status of its own: what nobody knows the outcome of."""

MOST_ATTEMPTS = 50
_PUSH = "ecocomply_push"


@dataclass(frozen=True, slots=True)
class NotificationFilter:
    """What the log is narrowed to.

    `search` is an id (of a notification, a person, or what it is about) or words of a person's address or name;
    `company` is an id or words of a name; `status` is a status or UNKNOWN.
    """

    search: str = ""
    company: str = ""
    notification_type: str | None = None
    channel: str | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class ListedNotification:
    """One line of the log; `reason` says in words why it stands where it stands."""

    row: Row[Any]
    reason: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One claim of a notification, or of the digest that it stands in; `message` is None if it can't be read."""

    row: Row[Any]
    message: Message | None


@dataclass(frozen=True, slots=True)
class NotificationDetail:
    """One notification with every claim of it, the latest first."""

    row: Row[Any]
    reason: str
    attempts: Sequence[Attempt]


def log(tx: Transaction, wanted: NotificationFilter, now: datetime, after: Place | None = None) -> Listed:
    """Return a page of the log, the latest first. `now` is aware. Raises BadInput for a filter that can't be."""
    person, company = people(tx, wanted.search), companies(tx, wanted.company)
    ids = tx.rows(
        statement(PACKAGE, "notification_ids"),
        some_id=person.some_id,
        user_ids=person.ids,
        company_ids=company.ids if company.some_id is None else [company.some_id],
        notification_type=wanted.notification_type,
        channel=wanted.channel,
        status=wanted.status if wanted.status in NOTIFICATION_STATUSES else None,
        unknown=wanted.status == UNKNOWN,
        after_at=instant_of(after),
        after_id=after.id if after else None,
        limit=PAGE + 1,
    )
    note = " ".join(one.note for one in (person, company) if one.note) or None
    page = page_of(ids, "created_at", note)
    return Listed(explained(tx, [row.id for row in page.rows], now), page.next, note)


def explained(tx: Transaction, ids: Collection[uuid.UUID], now: datetime) -> Sequence[ListedNotification]:
    """Return these notifications with their reasons, the latest first."""
    if not ids:
        return []
    pauses = _pauses(tx, now)
    rows = tx.rows(statement(PACKAGE, "notification_rows"), ids=list(ids))
    return [ListedNotification(row, reason(_state(row, pauses), now, ZONE)) for row in rows]


def types() -> Sequence[str]:
    """Return the types of notifications that the platform makes; an application may have others."""
    return sorted({kind.type for kind in kinds().values()} | {"SYSTEM_ALERT"})


def detail(tx: Transaction, notification_id: uuid.UUID, now: datetime) -> NotificationDetail | None:
    """Return one notification with its attempts, or None if there is none of that id."""
    found = explained(tx, [notification_id], now)
    if not found:
        return None
    attempts = tx.rows(statement(PACKAGE, "notification_attempts"), id=notification_id, limit=MOST_ATTEMPTS)
    return NotificationDetail(found[0].row, found[0].reason, [Attempt(row, _stored(row)) for row in attempts])


def message(
    tx: Transaction, notification_id: uuid.UUID, batch_id: uuid.UUID, position: int
) -> Message | None:
    """Return the message of one attempt as it was stored, or None if there is no such attempt."""
    row = tx.row(
        statement(PACKAGE, "notification_message"), id=notification_id, batch_id=batch_id, position=position
    )
    return _stored(row) if row is not None else None


def _pauses(tx: Transaction, now: datetime) -> Mapping[str, Row[Any]]:
    return {row.service: row for row in tx.rows(statement(PACKAGE, "channel_pauses"), now=now)}


def _stored(row: Row[Any]) -> Message | None:
    try:
        stored = unpack(row.message, None, {})
        return stored if row.provider != _PUSH else _without_keys(stored)
    except (BadInput, msgspec.MsgspecError):
        return None


def _without_keys(stored: Message) -> Message:
    """Return a push message as its reader sees it: the keys of the devices are nobody's to read."""
    push = msgspec.json.decode(stored.text, type=Push)
    text = "\n\n".join(part for part in (push.body, push.url) if part)
    return Message(
        sender=stored.sender, to=f"{len(push.subscriptions)} devices", subject=push.title, text=text
    )


def _state(row: Row[Any], pauses: Mapping[str, Row[Any]]) -> NotificationState:
    pause = pauses.get(f"ecocomply_{row.channel.lower()}")
    digest = None
    if row.digest_frequency is not None:
        digest = DigestState(
            row.digest_frequency,
            row.digest_period_start,
            row.digest_status,
            row.digest_sent_at,
            row.digest_claimed_by if row.digest_status != "sent" else None,
            row.digest_outcome_unknown,
        )
    return NotificationState(
        channel=row.channel,
        status=row.status,
        scheduled_for=row.scheduled_for,
        status_reason=row.status_reason,
        delivery_status=row.delivery_status,
        delivery_error=row.delivery_error,
        delivery_provider=row.delivery_provider,
        outcome_unknown=row.outcome_unknown,
        next_attempt_at=row.next_attempt_at,
        sent_at=row.sent_at,
        delivered_at=row.delivered_at,
        digest=digest,
        claimed_by=row.claimed_by_run,
        claimed_at=row.claimed_at,
        paused_until=pause.paused_until if pause else None,
        pause_reason=pause.pause_reason if pause else None,
        copied_from=row.origin_channel,
        has_copy=row.copy_id is not None,
    )
