"""Why a mail of the log stands where it stands, in one sentence that a person reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from include.dates_in_words import days_spelled_out, instant

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_LAST_TRY = 3


@dataclass(frozen=True, slots=True)
class MailState:
    """What is known of one mail; all instants are aware.

    `claimed_by` is the run whose claim holds it, since `claimed_at`. `twin_sent_at` is when the mail went out
    that this one duplicates. `paused_until` and `pause_reason` are the queue's.
    """

    status: str
    scheduled_at: datetime | None
    sent_at: datetime | None = None
    retry_count: int = 0
    permanent: bool = False
    outcome_unknown: bool = False
    next_attempt_at: datetime | None = None
    status_reason: str | None = None
    last_error: str | None = None
    claimed_by: str | None = None
    claimed_at: datetime | None = None
    twin_sent_at: datetime | None = None
    paused_until: datetime | None = None
    pause_reason: str | None = None


def reason(mail: MailState, now: datetime, zone: ZoneInfo) -> str:
    """Return the sentence; its dates are local to `zone`."""
    if mail.status == "sent":
        return f"sent on {instant(mail.sent_at, zone)}" if mail.sent_at else "sent; nobody wrote down when"
    if mail.outcome_unknown:
        return f"outcome unknown: {_words(mail.last_error or mail.status_reason)}; a person decides"
    return _settled(mail, zone) or _open(mail, now, zone)


def _settled(mail: MailState, zone: ZoneInfo) -> str | None:
    match mail.status:
        case "cancelled":
            return f"not sent: {_words(mail.status_reason, 'cancelled')}"
        case "duplicate":
            return _duplicate(mail, zone)
        case "abandoned":
            return f"given up after {_tries(mail.retry_count)}: {_words(mail.last_error)}"
        case "queued" | "failed":
            return None
        case _:
            return f"in a status that this console does not know: {mail.status}"


def _open(mail: MailState, now: datetime, zone: ZoneInfo) -> str:
    if mail.claimed_at is not None:
        return f"claimed by run {mail.claimed_by or '?'} since {instant(mail.claimed_at, zone)}"
    return _failed(mail, now, zone) if mail.status == "failed" else _queued(mail, now, zone)


def _duplicate(mail: MailState, zone: ZoneInfo) -> str:
    if mail.twin_sent_at is not None:
        return f"duplicate of the mail sent on {instant(mail.twin_sent_at, zone)}"
    return f"duplicate: {_words(mail.status_reason, 'another mail of its kind goes out in its place')}"


def _failed(mail: MailState, now: datetime, zone: ZoneInfo) -> str:
    why = _words(mail.last_error or mail.status_reason)
    if mail.permanent:
        return f"not sent, and not tried again: {why}"
    if mail.retry_count >= _LAST_TRY:
        return f"given up after {_tries(mail.retry_count)}: {why}"
    if (until := _paused(mail, now)) is not None and until > (mail.next_attempt_at or now):
        return f"will be tried again after {instant(until, zone)} ({_pause(mail)}): provider said {why}"
    if mail.next_attempt_at is not None and mail.next_attempt_at > now:
        return f"will be tried again after {instant(mail.next_attempt_at, zone)}: provider said {why}"
    return f"will be tried again by the next run: provider said {why}"


def _queued(mail: MailState, now: datetime, zone: ZoneInfo) -> str:
    if mail.scheduled_at is None:
        return "waits: has no date on which it is due, so no run takes it"
    paused = _paused(mail, now)
    if mail.scheduled_at > (paused or now):
        return f"waits: due on {instant(mail.scheduled_at, zone)}"
    if paused is not None:
        return f"waits: {_pause(mail)} until {instant(paused, zone)}"
    if mail.last_error:
        return f"waits: the next run tries again: {_words(mail.last_error)}"
    return f"waits: due since {instant(mail.scheduled_at, zone)}, the next run takes it"


def _paused(mail: MailState, now: datetime) -> datetime | None:
    return mail.paused_until if mail.paused_until is not None and mail.paused_until > now else None


def _pause(mail: MailState) -> str:
    return _words(mail.pause_reason, "the queue is paused")


def _tries(count: int) -> str:
    number = _NUMBERS[count] if 0 <= count < len(_NUMBERS) else str(count)
    return f"{number} {'try' if count == 1 else 'tries'}"


def _words(text: str | None, otherwise: str = "no reason was given") -> str:
    return days_spelled_out(text.strip().rstrip(".")) if text and text.strip() else otherwise
