"""A call of the application for a slot of a schedule: claimed, made under the slot's key, and recorded once.

The ledger `sync_slots` holds a row per job and slot. A slot that has succeeded is not called again, whoever asks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError

from include.alerts import Alerts, RecordedAlerts
from include.arcvest.application import SERVICE, Application, NoAnswer, RecordedApplication
from include.as_of import instant
from include.effects import Effects
from include.errors import AlmanacError, Outage, OutcomeUnknown
from include.run import Run, row_error
from include.statements import statement

PACKAGE = "include.arcvest"
SETTINGS: dict[str, str | None] = {"ADMIN_ALERT_EMAIL": None}

_LONGEST_ANSWER = 20_000


class Outside(NamedTuple):
    """What a call needs of the world."""

    application: Application
    alerts: Alerts

    def in_preview(self, run: Run, effects: Effects) -> Outside:
        """Call nobody, and tell nobody."""
        alerts = RecordedAlerts(self.alerts, effects, run.settings.get("ADMIN_ALERT_EMAIL"))
        return Outside(RecordedApplication(effects), alerts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One endpoint and its schedule: a slot every `every`, counted from `first` hours after midnight UTC.

    With `once` a call whose outcome nobody knows is not repeated: a person decides.
    """

    job: str
    endpoint: str
    every: timedelta
    first: int = 0
    once: bool = False

    def slot(self, as_of: datetime) -> datetime:
        """Return the schedule's latest slot at an instant, in UTC."""
        start = datetime(2026, 1, 1, self.first, tzinfo=UTC)
        return start + (as_of - start) // self.every * self.every

    def key(self, slot: datetime) -> str:
        """Return the idempotency key of a slot; it names the job, since jobs share instants."""
        return f"{self.job}/{slot:%Y-%m-%dT%H:%M:%SZ}"


def claim_slot(run: Run, call: Call) -> Mapping[str, Any] | bool:
    """Claim the run's slot and hand it on; False if it has been done, or its outcome is a person's to find out."""
    slot = call.slot(run.as_of)
    with run.transaction() as tx:
        row = tx.row(statement(PACKAGE, "claim_slot"), job=call.job, slot=slot)
    run.count("processed")
    if row is not None:
        return {"slot": slot.isoformat()}
    _skip(run, call, slot, _standing(run, call, slot))
    return False


def call_application(run: Run, outside: Outside, call: Call) -> None:
    """Call the endpoint under the slot's key, and record what it answers.

    Raises OutcomeUnknown where a call must not be repeated and nobody knows whether it was done.
    """
    slot = instant(run.handed["slot"], "slot")
    # A task that is cleared, or tried again after its success was written, comes without a claim of its own.
    standing = _standing(run, call, slot)
    if standing is not None and (standing.succeeded or standing.outcome_unknown):
        _skip(run, call, slot, standing)
        return
    try:
        answer = outside.application.call(call.endpoint, call.key(slot))
        if answer is None and call.once:
            raise NoAnswer(
                f"application: {call.endpoint}: what came is no answer of its own", service=SERVICE
            )
    except AlmanacError as error:
        unknown = call.once and isinstance(error, NoAnswer)
        with run.transaction() as tx:
            tx.execute(
                statement(PACKAGE, "slot_failed"),
                job=call.job,
                slot=slot,
                error=row_error(error)[:2_000],
                unknown=unknown,
            )
        if unknown:
            raise OutcomeUnknown(f"{call.key(slot)}: {error}; it is not called again by itself") from error
        if isinstance(error, Outage):
            outside.alerts.outage(SERVICE, row_error(error))
        raise
    with run.transaction() as tx:
        recorded = tx.execute(statement(PACKAGE, "slot_succeeded"), job=call.job, slot=slot)
    _keep(run, call, slot, answer)
    outside.alerts.recovered(SERVICE)
    run.count("sent", recorded)
    run.note(f"{call.key(slot)}: done")


def _standing(run: Run, call: Call, slot: datetime) -> Row[Any] | None:
    with run.transaction() as tx:
        return tx.row(statement(PACKAGE, "slot_standing"), job=call.job, slot=slot)


def _skip(run: Run, call: Call, slot: datetime, standing: Row[Any] | None) -> None:
    run.count("skipped")
    if standing is not None and standing.outcome_unknown:
        run.state = "deferred"
        run.note(
            f"{call.key(slot)}: the outcome is unknown; ask the application, then mend the row of sync_slots"
        )
    else:
        run.note(f"{call.key(slot)} has succeeded before")


def _keep(run: Run, call: Call, slot: datetime, answer: Mapping[str, Any] | None) -> None:
    """Keep what was answered, if it can be kept: the slot has succeeded whatever that is."""
    kept = {"job": call.job, "slot": slot, "answer": _kept(answer or {})}
    try:
        with run.transaction() as tx:
            tx.execute(statement(PACKAGE, "slot_answer"), **kept)
    except (DBAPIError, AlmanacError) as error:
        if run.preview:
            raise
        run.log.warning("%s: the answer is not kept: %s", call.key(slot), row_error(error))


def _kept(answer: Mapping[str, Any]) -> str:
    """Return an answer as the ledger keeps it: JSON that Postgres can hold, and no more than a person reads."""
    try:
        text = json.dumps(answer, allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
    except (ValueError, TypeError, RecursionError) as error:
        return json.dumps({"left_out": type(error).__name__})
    if size > _LONGEST_ANSWER or "\\u0000" in text:
        return json.dumps({"left_out": f"{len(text)} characters"})
    return text
