"""Messages that were claimed go out once: begin, send under the claim's key, record what the provider said.

A claim is a committed row per message in `email_attempts`, grouped in batches; the batch's id is the
idempotency key. What is resumed goes out byte for byte as it was claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from sqlalchemy import Row

from include.dates_in_words import instant
from include.errors import Permanent
from include.isolation import CHUNK, chunks, each_chunk
from include.mail import Accepted, Answer, Batch, Deferred, MailProvider, Message, Outcome, Rejected, Unknown
from include.run import Run, Transaction
from include.statements import statement
from include.stored_message import Frame, undamaged, unpack

_KEY_MARGIN = timedelta(hours=1)
# Messages marked as begun in one statement, where the provider's keys make a repeat harmless.
_BEGUN_TOGETHER = 1_000


@dataclass(slots=True)
class Delivered:
    """What became of the open claims: messages per outcome, and the outage that ended the sending, if any.

    `answered` says that the provider gave its answer to at least one message.
    """

    counts: Counter[str] = field(default_factory=Counter)
    outage: Deferred | None = None
    answered: bool = False


@dataclass(frozen=True, slots=True)
class _Claimed:
    batch_id: str
    position: int
    begun_at: datetime | None
    answered: bool


def deliver(run: Run, mail: MailProvider, package: str, claims: str) -> Delivered:
    """Send every open claim that the statement `claims` finds, and record each answer as it comes.

    `package` holds that statement, begin_batches, claimed_messages, message_frames and
    record_outcomes. Messages whose key can no longer be trusted to stop a second delivery are not sent: their
    outcome is unknown.
    """
    delivered = Delivered()
    with run.transaction() as tx:
        found = tx.rows(statement(package, claims))
        now = tx.value(statement("include", "database_now"))
    claimed = [_Claimed(row.batch_id, row.position, row.begun_at, row.answered) for row in found]
    batches = {batch_id: list(rows) for batch_id, rows in groupby(claimed, key=lambda row: row.batch_id)}
    lost = [
        (row.batch_id, row.position, _outcome_lost(rows, mail.key_lifetime, run.zone))
        for rows in batches.values()
        if _may_be_out_already(rows, mail.key_lifetime, now)
        for row in rows
        if not row.answered
    ]
    _record(run, package, lost, delivered)
    for batch_id in {batch_id for batch_id, _, _ in lost}:
        del batches[batch_id]
    said: list[tuple[str, int, Outcome]] = []
    try:
        for answer in mail.send(_begun(run, mail, package, batches, delivered)):
            said += _taken(answer, batches[answer.batch.key], delivered)
            # Answers that come together are recorded together: a commit each would cost more than the mail.
            if not answer.more or len(said) >= CHUNK:
                ready, said = said, []
                _record(run, package, ready, delivered)
    except Exception:
        # What the provider has said is kept, whatever ends the sending.
        _record(run, package, said, delivered)
        raise
    return delivered


def _begun(
    run: Run, mail: MailProvider, package: str, batches: dict[str, list[_Claimed]], delivered: Delivered
) -> Iterator[Batch]:
    """Yield batches after a commit that says that they have begun: from then on they may be out.

    A batch of which a message can't be read is settled without being sent.
    """
    frames: dict[str, Frame] = {}
    together = max(1, _BEGUN_TOGETHER // mail.batch_size) if mail.key_lifetime else 1
    for some in chunks(list(batches.items()), together):
        fresh = [batch_id for batch_id, rows in some if any(row.begun_at is None for row in rows)]
        with run.transaction() as tx:
            if fresh:
                tx.execute(statement(package, "begin_batches"), batches=fresh)
            # Read when their turn comes: a long queue's messages would fill the memory.
            found = tx.rows(
                statement(package, "claimed_messages"), batches=[batch_id for batch_id, _ in some]
            )
            _look_up(tx, package, {row.frame for row in found}, frames)
        stored = {(row.batch_id, row.position): row for row in found}
        for batch_id, rows in some:
            # An application may have deleted a mail since the claims were read, and its claim with it.
            batches[batch_id] = left = [row for row in rows if (batch_id, row.position) in stored]
            if not left:
                continue
            try:
                messages = [_read(stored[batch_id, row.position], frames) for row in left]
            except Permanent as error:
                _record(run, package, _unreadable(run, left, error), delivered)
            else:
                yield Batch(batch_id, tuple(messages))


def _look_up(tx: Transaction, package: str, names: Collection[str | None], frames: dict[str, Frame]) -> None:
    if missing := [name for name in names if name is not None and name not in frames]:
        found = tx.rows(statement(package, "message_frames"), names=missing)
        frames |= undamaged((row.name, row.content) for row in found)


def _read(row: Row[Any], frames: Mapping[str, Frame]) -> Message:
    try:
        return unpack(row.message, row.frame, frames)
    except Permanent as error:
        raise Permanent(f"batch {row.batch_id}, position {row.position}: {error}") from error


def _unreadable(run: Run, rows: Sequence[_Claimed], error: Permanent) -> list[tuple[str, int, Outcome]]:
    run.log.error("mail not sent: %s", error, extra={"job": run.job, "err": str(error)})
    # Never begun, it is surely not out: it counts as a try, and is claimed anew.
    begun = any(row.begun_at is not None for row in rows)
    outcome = Unknown(str(error)) if begun else Rejected(str(error))
    return [(row.batch_id, row.position, outcome) for row in rows if not row.answered]


def _may_be_out_already(rows: Sequence[_Claimed], key_lifetime: timedelta, now: datetime) -> bool:
    begun = [row.begun_at for row in rows if row.begun_at is not None]
    if not begun:
        return False
    return not key_lifetime or now - min(begun) > key_lifetime - _KEY_MARGIN


def _outcome_lost(rows: Sequence[_Claimed], key_lifetime: timedelta, zone: ZoneInfo) -> Unknown:
    why = "its key has expired" if key_lifetime else "the provider has no keys against a second delivery"
    begun = min(row.begun_at for row in rows if row.begun_at is not None)
    # In the business's own time, as the console tells all else of the mail.
    return Unknown(f"begun on {instant(begun, zone)} and never answered; {why}")


def _taken(
    answer: Answer, rows: Sequence[_Claimed], delivered: Delivered
) -> Iterator[tuple[str, int, Outcome]]:
    outcomes = [_storable(outcome) for outcome in answer.outcomes]
    for outcome in outcomes:
        if not isinstance(outcome, Deferred):
            delivered.answered = True
        elif not outcome.in_progress and (delivered.outage is None or outcome.quota):
            delivered.outage = outcome
    # The provider may have taken at an earlier try what it certainly did not take at this one.
    in_doubt = any(row.begun_at is not None for row in rows)
    said = [
        replace(outcome, certain=False) if in_doubt and isinstance(outcome, Deferred) else outcome
        for outcome in outcomes
    ]
    for row, outcome in zip(rows, said, strict=True):
        yield row.batch_id, row.position, outcome


def _storable(outcome: Outcome) -> Outcome:
    """Return the outcome with what a database can't hold taken out of the provider's words."""
    if isinstance(outcome, Accepted):
        provider_id = _storable_text(outcome.provider_id)
        return outcome if provider_id is outcome.provider_id else Accepted(provider_id)
    return replace(outcome, reason=_storable_text(outcome.reason))


def _storable_text(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def _record(
    run: Run, package: str, outcomes: Sequence[tuple[str, int, Outcome]], delivered: Delivered
) -> None:
    recorded: dict[tuple[str, int], str] = {}

    def change(tx: Transaction, chunk: Sequence[tuple[str, int, Outcome]]) -> None:
        rows = tx.rows(
            statement(package, "record_outcomes"),
            # One text, so that the parts of a message's outcome stay together.
            said=msgspec.json.encode(
                [
                    {
                        "batch_id": batch,
                        "position": position,
                        "outcome": _word(outcome),
                        "reason": _reason(outcome),
                        "provider_message_id": _provider_id(outcome),
                    }
                    for batch, position, outcome in chunk
                ]
            ).decode(),
        )
        recorded.update({(row.batch_id, row.position): row.outcome for row in rows})

    each_chunk(run, outcomes, change)
    delivered.counts.update(recorded.values())


def _word(outcome: Outcome) -> str:
    match outcome:
        case Accepted():
            return "accepted"
        case Rejected():
            return "rejected"
        case Unknown():
            return "unknown"
        case Deferred(certain=True):
            return "deferred"
        case Deferred():
            return "unanswered"


def _provider_id(outcome: Outcome) -> str | None:
    return outcome.provider_id if isinstance(outcome, Accepted) else None


def _reason(outcome: Outcome) -> str | None:
    return None if isinstance(outcome, Accepted) else outcome.reason
