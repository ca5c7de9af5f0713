"""Why a notification was sent or was not, in one sentence that a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from include.dates_in_words import day, days_spelled_out, instant

_SPOKEN = {"EMAIL": "e-mail", "SMS": "SMS", "IN_APP": "notice in the application", "PUSH": "push message"}
_HELD = "waits for the "

NOT_MADE: Mapping[str, str] = {
    "already_told": "already told: the same person, channel and date or window had one",
    "without_phone": "no phone: an SMS was wanted, and the person has no number",
    "without_email": "no e-mail: a mail was wanted, and the person has no address",
    "of_deleted": "of a company or a site that is deleted: nobody is told of it any more",
    "without_recipient": "nobody in the role, nor in the roles it falls to",
}
"""What leaves no row behind, and so has no sentence of its own: a run's count, and what it means."""


@dataclass(frozen=True, slots=True)
class DigestState:
    """The digest that a notification stands in. `claimed_by` is the run whose claim holds it."""

    frequency: str
    period_start: date
    status: str
    sent_at: datetime | None = None
    claimed_by: str | None = None
    outcome_unknown: bool = False


@dataclass(frozen=True, slots=True)
class NotificationState:
    """What is known of one notification; all instants are aware.

    `status_reason` is what delivery wrote. `claimed_by` is the run whose claim holds it, since `claimed_at`.
    `paused_until` and `pause_reason` are its channel's. `copied_from` is the channel of the notification that
    failed, where this one is its copy in the application; `has_copy` says that there is one of this.
    """

    channel: str
    status: str
    scheduled_for: datetime | None = None
    status_reason: str | None = None
    delivery_status: str | None = None
    delivery_error: str | None = None
    delivery_provider: str | None = None
    outcome_unknown: bool = False
    next_attempt_at: datetime | None = None
    sent_at: datetime | None = None
    delivered_at: datetime | None = None
    digest: DigestState | None = None
    claimed_by: str | None = None
    claimed_at: datetime | None = None
    paused_until: datetime | None = None
    pause_reason: str | None = None
    copied_from: str | None = None
    has_copy: bool = False


def reason(state: NotificationState, now: datetime, zone: ZoneInfo) -> str:
    """Return the sentence; its dates are local to `zone`."""
    if state.outcome_unknown and state.status not in ("SENT", "DELIVERED"):
        return f"outcome unknown: {_words(state)}; a person decides{_copied(state)}"
    if state.status in ("PENDING", "QUEUED", "RETRYING"):
        return _open(state, now, zone)
    return _closed(state, zone)


def _closed(state: NotificationState, zone: ZoneInfo) -> str:
    match state.status:
        case "SENT":
            return _sent(state, zone)
        case "DELIVERED":
            return _delivered(state, zone)
        case "CANCELLED":
            return f"not sent: {_words(state, 'cancelled')}"
        case "FAILED":
            return f"{_failed(state)}{_copied(state)}"
        case "SENDING":
            return _sending(state, zone)
        case _:
            return f"in a status that this console does not know: {state.status}"


def _sent(state: NotificationState, zone: ZoneInfo) -> str:
    when = f"sent on {instant(state.sent_at, zone)}" if state.sent_at else "sent; nobody wrote down when"
    by = f", taken by {state.delivery_provider}" if state.delivery_provider else ""
    back = {"BOUNCED": "it came back", "COMPLAINED": "its reader called it spam"}.get(
        state.delivery_status or ""
    )
    return f"{when}{by}" + (f"; then {back}" if back else "")


def _delivered(state: NotificationState, zone: ZoneInfo) -> str:
    if state.digest is not None:
        sent = state.digest.sent_at or state.sent_at
        on = f" on {instant(sent, zone)}" if sent else ""
        return f"in {_named(state.digest)}, sent{on}"
    at = state.delivered_at or state.sent_at
    on = f" on {instant(at, zone)}" if at else "; nobody wrote down when"
    if state.channel == "IN_APP":
        copy = f", as a copy: the {_spoken(state.copied_from)} failed" if state.copied_from else ""
        return f"shown in the application{on}{copy}"
    sent = f", sent on {instant(state.sent_at, zone)}" if state.sent_at and state.sent_at != at else ""
    return f"delivered{on}{sent}"


def _failed(state: NotificationState) -> str:
    words = _words(state)
    return f"given up: {words}" if words.startswith("refused at") else f"not sent: {words}"


def _copied(state: NotificationState) -> str:
    return "; shown in the application instead" if state.has_copy else ""


def _sending(state: NotificationState, zone: ZoneInfo) -> str:
    if state.claimed_at is None:
        return "on its way; no claim of it is kept"
    return f"claimed by run {state.claimed_by or '?'} since {instant(state.claimed_at, zone)}"


def _open(state: NotificationState, now: datetime, zone: ZoneInfo) -> str:
    if state.digest is not None:
        return _in_digest(state, state.digest)
    paused = _paused(state, now)
    if state.status == "RETRYING":
        return _again(state, paused, now, zone)
    if (state.status_reason or "").startswith(_HELD):
        return _words(state)
    if state.scheduled_for is not None and state.scheduled_for > (paused or now):
        return f"waits: due on {instant(state.scheduled_for, zone)}"
    if paused is not None:
        until = instant(paused, zone)
        return f"waits: the provider of {_spoken(state.channel)} is left alone until {until}: {_pause(state)}"
    return _due(state, zone)


def _due(state: NotificationState, zone: ZoneInfo) -> str:
    if state.channel == "IN_APP":
        why = f", as a copy: the {_spoken(state.copied_from)} failed" if state.copied_from else ""
        return f"waits: the next run shows it{why}"
    said = (state.status_reason or "").strip()
    if "digest" in said:
        return f"waits for the next digest: {_words(state)}"
    if said:
        return f"waits: the next run tries again: {_words(state)}"
    since = f"due since {instant(state.scheduled_for, zone)}, " if state.scheduled_for else ""
    return f"waits: {since}the next run takes it"


def _in_digest(state: NotificationState, digest: DigestState) -> str:
    if digest.claimed_by is not None:
        return f"in {_named(digest)}, claimed by run {digest.claimed_by}"
    if digest.outcome_unknown:
        return f"outcome unknown: {_words(state)}; a person decides"
    return f"in {_named(digest)}, which has not gone out yet"


def _again(state: NotificationState, paused: datetime | None, now: datetime, zone: ZoneInfo) -> str:
    due = state.next_attempt_at
    why = _words(state)
    if paused is not None and paused > (due or now):
        return f"next attempt after {instant(paused, zone)} ({_pause(state)}): {why}"
    if due is not None and due > now:
        return f"next attempt at {instant(due, zone)}: {why}"
    return f"next attempt by the next run: {why}"


def _named(digest: DigestState) -> str:
    period = "week of" if digest.frequency == "WEEKLY" else "day of"
    return f"the {digest.frequency.lower()} digest of the {period} {day(digest.period_start)}"


def _paused(state: NotificationState, now: datetime) -> datetime | None:
    return state.paused_until if state.paused_until is not None and state.paused_until > now else None


def _pause(state: NotificationState) -> str:
    return _plain(state.pause_reason, "it asked for that")


def _spoken(channel: str | None) -> str:
    return _SPOKEN.get(channel or "", channel or "?")


def _words(state: NotificationState, otherwise: str = "no reason was given") -> str:
    return _plain(state.status_reason or state.delivery_error, otherwise)


def _plain(text: str | None, otherwise: str) -> str:
    return days_spelled_out(text.strip().rstrip(".")) if text and text.strip() else otherwise
