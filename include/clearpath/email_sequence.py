"""The five mails that a session's course brings, and when each is due."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta

from include.clearpath import ZONE
from include.errors import BadInput
from include.isolation import CHUNK, chunks
from include.odd_dates import OddDate
from include.run import Transaction
from include.statements import statement

_PACKAGE = "include.clearpath"

DAYS_AFTER_ACTIVATION = {"day_30": 30, "day_60": 60, "day_80": 80, "day_88": 88}
RESULTS_PROMPT = "results_prompt"
RESULTS_PROMPT_AT = time(9)


def due_times(
    activated_at: datetime | OddDate, expected_completion_date: date | OddDate | None
) -> dict[str, datetime]:
    """Return when each mail of a session is due, in UTC, by type.

    The day mails are due at the local time of the activation (aware); an hour that the clocks skip that day
    is read as an hour later, one that they repeat as its first. Without an expected completion date there is
    no `results_prompt`. Raises BadInput for a date so far off that none can follow from it.
    """
    if isinstance(activated_at, OddDate):
        raise BadInput(f"activated_at {activated_at} is no date that mail can follow from")
    if isinstance(expected_completion_date, OddDate):
        raise BadInput(
            f"expected_completion_date {expected_completion_date} is no date that mail can follow from"
        )
    try:
        local = activated_at.astimezone(ZONE)
        # Arithmetic on a local time counts calendar days; the offset is that of the day which comes out.
        due = {
            name: (local + timedelta(days=days)).astimezone(UTC)
            for name, days in DAYS_AFTER_ACTIVATION.items()
        }
    except OverflowError:
        raise BadInput(
            f"activated_at {activated_at.isoformat()} is no date that mail can follow from"
        ) from None
    if expected_completion_date is not None:
        prompt = datetime.combine(expected_completion_date, RESULTS_PROMPT_AT, tzinfo=ZONE)
        due[RESULTS_PROMPT] = prompt.astimezone(UTC)
    return due


def make_sequence(tx: Transaction, sessions: Iterable[uuid.UUID]) -> int:
    """Queue the mails of activated sessions that are not there yet, and return how many were.

    A session has each mail once, whatever became of it: its id follows from the session and the type. What is
    unknown or not activated is passed over; BadInput names a session whose dates can't be.
    """
    return sum(_make(tx, chunk) for chunk in chunks(sorted(set(sessions)), CHUNK))


def _make(tx: Transaction, sessions: Iterable[uuid.UUID]) -> int:
    due: dict[str, list[tuple[uuid.UUID, datetime]]] = {}
    for session in tx.rows(statement(_PACKAGE, "sessions_to_sequence"), ids=list(sessions)):
        try:
            times = due_times(session.activated_at, session.expected_completion_date)
        except BadInput as error:
            raise BadInput(f"test_sessions {session.id}: {error}") from None
        for name, at in times.items():
            due.setdefault(name, []).append((session.id, at))
    return sum(
        tx.execute(
            statement(_PACKAGE, "queue_sequence"),
            email_type=name,
            ids=[uuid.uuid5(session, name) for session, _ in mails],
            sessions=[session for session, _ in mails],
            due=[at for _, at in mails],
        )
        for name, mails in due.items()
    )
