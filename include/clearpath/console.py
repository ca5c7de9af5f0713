"""What the console shows of ClearPath: the mail log, certificates, and lab records that are set aside."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Row

from include.as_of import local_midnight
from include.clearpath import ZONE
from include.clearpath.mail_reasons import MailState, reason
from include.dates_in_words import instant
from include.errors import BadInput
from include.mail import Message
from include.odd_dates import OddDate
from include.run import Transaction
from include.statements import statement
from include.stored_message import undamaged, unpack

PACKAGE = "include.clearpath"
QUEUE = "emailQueue"

MAIL_STATUSES = ("queued", "sent", "failed", "cancelled", "duplicate", "abandoned")
UNKNOWN = "unknown"
MAIL_TYPES = ("day_30", "day_60", "day_80", "day_88", "results_prompt")
CERTIFICATE_FILTERS = ("valid", "expired", "without_pdf", "failed")

PAGE = 50
MOST_PEOPLE = 500
"""How many people a search looks at; more than that is too vague to be of use."""
_MOST_ATTEMPTS = 50
_LONGEST_SEARCH = 200


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ends: what the list is sorted by there (ISO; empty for no date), and the row's id."""

    value: str
    id: uuid.UUID


@dataclass(frozen=True, slots=True)
class MailFilter:
    """What the mail log is narrowed to.

    `search` is an id (of a mail, a session or a user) or words of an address or a name. `status` is one of
    MAIL_STATUSES or UNKNOWN. `due_from` and `due_until` are local days, both included.
    """

    search: str = ""
    status: str | None = None
    email_type: str | None = None
    due_from: date | None = None
    due_until: date | None = None


@dataclass(frozen=True, slots=True)
class ListedMail:
    """One line of the mail log; `reason` says in words why it stands where it stands."""

    row: Row[Any]
    reason: str


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of a list; `next` is None on the last one, `note` says what a reader should know of it."""

    rows: Sequence[Any]
    next: Place | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One claim of a mail; `message` is None if what was stored can't be read any more."""

    row: Row[Any]
    message: Message | None


@dataclass(frozen=True, slots=True)
class MailDetail:
    """One mail with every claim of it, the latest first."""

    row: Row[Any]
    reason: str
    attempts: Sequence[Attempt] = field(default_factory=tuple)


def mail_log(tx: Transaction, wanted: MailFilter, now: datetime, after: Place | None = None) -> Listed:
    """Return a page of the mail log, the latest due first, each mail with its reason.

    `now` is aware: what is due or paused is told as of then. Raises BadInput for a filter that can't be.
    """
    people = _searched(tx, wanted.search)
    rows = tx.rows(
        statement(PACKAGE, "console_mail_list"),
        by_status=wanted.status in MAIL_STATUSES,
        status=wanted.status if wanted.status in MAIL_STATUSES else "queued",
        unknown=wanted.status == UNKNOWN,
        by_type=wanted.email_type is not None,
        email_type=wanted.email_type or MAIL_TYPES[0],
        due_from=local_midnight(wanted.due_from, ZONE) if wanted.due_from else None,
        due_before=_end_of(wanted.due_until),
        some_id=people.some_id,
        user_ids=people.user_ids,
        after_at=_instant_of(after),
        after_id=after.id if after else None,
        limit=PAGE + 1,
    )
    pause = tx.row(statement(PACKAGE, "console_queue"), job=QUEUE, now=now)
    listed = [ListedMail(row, reason(_state(row, pause), now, ZONE)) for row in rows[:PAGE]]
    return Listed(listed, _next(rows, "scheduled_at"), people.note)


def mail_detail(tx: Transaction, mail_id: uuid.UUID, now: datetime) -> MailDetail | None:
    """Return one mail with its attempts, or None if there is none of that id."""
    row = tx.row(statement(PACKAGE, "console_mail_detail"), mail_id=mail_id)
    if row is None:
        return None
    pause = tx.row(statement(PACKAGE, "console_queue"), job=QUEUE, now=now)
    attempts = tx.rows(statement(PACKAGE, "console_mail_attempts"), mail_id=mail_id, limit=_MOST_ATTEMPTS)
    read = [Attempt(attempt, _stored(attempt)) for attempt in attempts]
    return MailDetail(row, reason(_state(row, pause), now, ZONE), read)


def mail_message(tx: Transaction, mail_id: uuid.UUID, batch_id: uuid.UUID, position: int) -> Message | None:
    """Return the message of one attempt as it was stored, or None if there is no such attempt."""
    row = tx.row(
        statement(PACKAGE, "console_mail_message"), mail_id=mail_id, batch_id=batch_id, position=position
    )
    return _stored(row) if row is not None else None


def certificates(tx: Transaction, search: str, shown: str | None, after: Place | None = None) -> Listed:
    """Return a page of certificates, the latest issued first.

    `search` is a certificate's number, an id, or words of its holder's address or name; `shown` is one of
    CERTIFICATE_FILTERS.
    """
    number = search.strip() if _is_number(tx, search.strip()) else None
    people = _searched(tx, "" if number else search)
    rows = tx.rows(
        statement(PACKAGE, "console_certificate_list"),
        by_status=shown in ("valid", "expired"),
        status=shown if shown in ("valid", "expired") else "valid",
        without_pdf=shown == "without_pdf",
        failed=shown == "failed",
        number=number,
        some_id=people.some_id,
        user_ids=people.user_ids,
        after_on=_day_of(after),
        after_id=after.id if after else None,
        limit=PAGE + 1,
    )
    return Listed(rows[:PAGE], _next(rows, "issued_on"), people.note)


def certificate(tx: Transaction, certificate_id: uuid.UUID) -> Row[Any] | None:
    """Return which files one certificate has, or None if there is none of that id."""
    return tx.row(statement(PACKAGE, "console_certificate_file"), certificate_id=certificate_id)


def pdf_state(row: Row[Any], zone: ZoneInfo = ZONE) -> str:
    """Return in words how it stands with a certificate's PDF."""
    failed = ""
    if row.render_failed_at is not None:
        why = row.render_error or "no reason was given"
        failed = f"; the last try failed on {instant(row.render_failed_at, zone)}: {why}"
    if row.pdf_path is None:
        if row.past_at_adoption:
            return f"none here: issued before this platform came{failed}"
        return f"none yet: the next rendering makes it{failed}"
    if row.pdf_needs_regeneration:
        return f"ready, not yet marked EXPIRED: the next download adds the mark{failed}"
    marked = ", marked EXPIRED" if row.status == "expired" and row.current_pdf_path is not None else ""
    made = f" since {instant(row.rendered_at, zone)}" if row.rendered_at else ""
    return f"ready{made}{marked}{failed}"


def lab_records(tx: Transaction, reason_code: str | None, after: Place | None = None) -> Listed:
    """Return a page of the lab records that are set aside and unresolved, the oldest first."""
    rows = tx.rows(
        statement(PACKAGE, "console_lab_open"),
        reason_code=reason_code,
        after_at=_instant_of(after),
        after_id=after.id if after else None,
        limit=PAGE + 1,
    )
    return Listed(rows[:PAGE], _next(rows, "first_seen_at"))


def lab_reasons(tx: Transaction) -> Sequence[Row[Any]]:
    """Return the reasons for which records are set aside, with how many there are of each."""
    return tx.rows(statement(PACKAGE, "console_lab_reasons"))


@dataclass(frozen=True, slots=True)
class _Searched:
    some_id: uuid.UUID | None = None
    user_ids: list[uuid.UUID] | None = None
    note: str | None = None


def _searched(tx: Transaction, search: str) -> _Searched:
    words = search.strip()
    if not words:
        return _Searched()
    if len(words) > _LONGEST_SEARCH:
        raise BadInput(f"search: {len(words)} characters are too many, {_LONGEST_SEARCH} is the most")
    try:
        return _Searched(some_id=uuid.UUID(words))
    except ValueError:
        pass
    people = tx.rows(statement(PACKAGE, "console_people"), words=words.lower(), limit=MOST_PEOPLE + 1)
    note = None
    if len(people) > MOST_PEOPLE:
        note = (
            f"More than {MOST_PEOPLE} people match; these are the first {MOST_PEOPLE} by address. "
            "Search for more of it."
        )
    return _Searched(user_ids=[row.id for row in people[:MOST_PEOPLE]], note=note)


def _is_number(tx: Transaction, text: str) -> bool:
    if not text or len(text) > _LONGEST_SEARCH:
        return False
    return tx.value(statement(PACKAGE, "console_certificate_number"), number=text) is not None


def _stored(row: Row[Any]) -> Message | None:
    frames = undamaged([(row.frame, row.content)] if row.content is not None else [])
    try:
        return unpack(row.message, row.frame, frames)
    except BadInput:
        return None


def _state(row: Row[Any], pause: Row[Any] | None) -> MailState:
    return MailState(
        status=row.status,
        scheduled_at=row.scheduled_at,
        sent_at=row.sent_at,
        retry_count=row.retry_count,
        permanent=row.permanent,
        outcome_unknown=row.outcome_unknown,
        next_attempt_at=row.next_attempt_at,
        status_reason=row.status_reason,
        last_error=row.last_error,
        claimed_by=row.claimed_by,
        claimed_at=row.claimed_at,
        twin_sent_at=row.twin_sent_at,
        paused_until=pause.paused_until if pause else None,
        pause_reason=pause.pause_reason if pause else None,
    )


def _next(rows: Sequence[Row[Any]], column: str) -> Place | None:
    if len(rows) <= PAGE:
        return None
    last = rows[PAGE - 1]
    value = getattr(last, column)
    return Place("" if value is None else value.isoformat(), last.id)


def _instant_of(place: Place | None) -> datetime | OddDate | None:
    if place is None or not place.value:
        return None
    if odd := OddDate.read(place.value):
        return odd
    try:
        value = datetime.fromisoformat(place.value)
    except ValueError:
        raise BadInput(f"page: {place.value!r} is no place in this list") from None
    if value.tzinfo is None:
        raise BadInput(f"page: {place.value!r} is no place in this list")
    return value


def _day_of(place: Place | None) -> date | OddDate | None:
    if place is None or not place.value:
        return None
    if odd := OddDate.read(place.value):
        return odd
    try:
        return date.fromisoformat(place.value)
    except ValueError:
        raise BadInput(f"page: {place.value!r} is no place in this list") from None


def _end_of(day: date | None) -> datetime | None:
    if day is None:
        return None
    if day == date.max:
        raise BadInput(f"due until: {day} has no day after it")
    return local_midnight(day + timedelta(days=1), ZONE)
