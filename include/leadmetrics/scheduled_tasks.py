"""The scheduler: tasks that are due become notifications, each once, and notifications go out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from include.alerts import Alerts, RecordedAlerts
from include.effects import Effects
from include.errors import BadInput
from include.leadmetrics import configuration, notification_sending
from include.leadmetrics.configuration import Configuration
from include.leadmetrics.notifications import Notification, NotificationQueue, RecordedQueue
from include.leadmetrics.tables import TASKS
from include.leadmetrics.task_types import (
    EARLY,
    FINISHED_STAGES,
    OVERTAKEN_AFTER,
    AlertPayload,
    Payload,
    ReminderPayload,
    alert,
    payload_of,
    reminder,
)
from include.mail import MailProvider, RecordedMail
from include.odd_dates import OddDate
from include.queues.claiming import take_back_lost
from include.queues.drain import Done, Limits, Outcome, drain
from include.queues.engine import Claim, Failure
from include.run import Run, Transaction, row_error
from include.statements import statement

PACKAGE = "include.leadmetrics"
NAME = "scheduledTasks"
SETTINGS: dict[str, str | None] = {**configuration.SETTINGS, "ADMIN_ALERT_EMAIL": None}
QUEUES = (
    "scheduled_task",
    "notification_outbox",
    "notification_attempts",
    "notification_pause",
)

ALONE = "leadmetrics notifications"
MAX_TASKS = 50
"""Tasks claimed at a time unless a run is told otherwise."""
SECONDS = 420.0
"""What a run may spend on tasks; the rest of an attempt is for what they made, and the next run goes on."""
HISTORY = timedelta(days=1)
"""What was due longer than that when the platform came is history: nobody is reminded of it."""


class Outside(NamedTuple):
    """The application's queue where it has one, the mail provider where it has none, the operators' ledger."""

    queue: NotificationQueue | None
    mail: MailProvider | None
    alerts: Alerts

    def in_preview(self, run: Run, effects: Effects) -> Outside:
        return Outside(
            RecordedQueue(self.queue, effects) if self.queue else None,
            RecordedMail(self.mail, effects) if self.mail else None,
            RecordedAlerts(self.alerts, effects, run.settings["ADMIN_ALERT_EMAIL"]),
        )


@dataclass(frozen=True, slots=True)
class _Skipped:
    reason: str


def run_due_tasks(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Claim what is due, chunk by chunk; a task and the notification that it asks for are one transaction."""
    settings = configuration.configuration(run.settings)
    with run.transaction() as tx:
        adopted_at = tx.value(statement(PACKAGE, "adopted_at"))
    take_back_lost(run, TASKS)

    def work(run: Run, claims: Sequence[Claim]) -> Sequence[Outcome]:
        return _work(run, claims, settings, adopted_at)

    def write(tx: Transaction, outcomes: Sequence[Outcome]) -> None:
        _write(run, tx, outcomes)

    limits = Limits(chunk=int(run.params["max_tasks"] or MAX_TASKS), seconds=SECONDS)
    run.count("processed", drain(run, TASKS, work, write, limits))


def _work(
    run: Run, claims: Sequence[Claim], settings: Configuration, adopted_at: datetime | None
) -> Sequence[Outcome]:
    payloads: dict[str, Payload] = {}
    faults: dict[str, BadInput] = {}
    for claim in claims:
        try:
            payloads[claim.key] = payload_of(claim.row.taskType, claim.row.payload)
        except BadInput as error:
            faults[claim.key] = error
    sessions = _sessions(run, [p.session_id for p in payloads.values() if isinstance(p, ReminderPayload)])

    def outcome(claim: Claim) -> Outcome:
        if claim.key in faults:
            return _refused(run, claim, faults[claim.key])
        try:
            return Done(claim, _result(claim, payloads[claim.key], sessions, settings, adopted_at))
        except BadInput as error:
            return _refused(run, claim, error)
        except Exception as error:
            # A slip of ours costs its own row alone, and the log has the trace.
            run.log.exception("task failed: job=%s recordId=%s", NAME, claim.key)
            return Failure(claim, f"{type(error).__name__}: {row_error(error)}")

    return [outcome(claim) for claim in claims]


def _refused(run: Run, claim: Claim, error: BadInput) -> Failure:
    run.log.warning(
        "task failed: job=%s recordId=%s err=%s",
        NAME,
        claim.key,
        error,
        extra={"job": NAME, "recordId": claim.key, "err": str(error)},
    )
    return Failure(claim, str(error), permanent=True)


def _sessions(run: Run, ids: Sequence[str]) -> dict[str, Any]:
    if not ids:
        return {}
    with run.transaction() as tx:
        return {row.id: row for row in tx.rows(statement(PACKAGE, "sessions"), ids=sorted(set(ids)))}


def _result(
    claim: Claim,
    payload: Payload,
    sessions: dict[str, Any],
    settings: Configuration,
    adopted_at: datetime | None,
) -> Notification | _Skipped:
    if adopted_at is not None and claim.row.scheduledAt < adopted_at - HISTORY:
        return _Skipped("was past when the platform came")
    if isinstance(payload, AlertPayload):
        return alert(payload, settings)
    if claim.row.taskType == EARLY and _is_overtaken(claim):
        return _Skipped("so late that the late reminder takes its place")
    session = sessions.get(payload.session_id)
    if session is None:
        return _Skipped("the registration is gone: it was completed")
    if session.stage in FINISHED_STAGES:
        return _Skipped(f"the registration is at {session.stage}")
    return reminder(claim.row.taskType, payload, session.email, settings)


def _is_overtaken(claim: Claim) -> bool:
    planned = claim.row.scheduledAt
    # When it was claimed is now, by the database's clock.
    return isinstance(planned, OddDate) or claim.row.heartbeat_at - planned >= OVERTAKEN_AFTER


def _write(run: Run, tx: Transaction, outcomes: Sequence[Outcome]) -> None:
    done = [one for one in outcomes if isinstance(one, Done)]
    if not done:
        return
    tx.execute(statement(PACKAGE, "stamp_completed"), ids=[one.claim.key for one in done])
    asked = [(one.claim, one.result) for one in done if isinstance(one.result, Notification)]
    added = _add(tx, asked) if asked else set()
    run.count("enqueued", len(added))
    run.count("skipped", len(done) - len(added))
    for one in done:
        if isinstance(one.result, _Skipped):
            run.row_skipped(one.claim.key, one.result.reason)
        elif one.result.dedupe_key not in added:
            run.row_skipped(one.claim.key, "notified before, or the registration has just gone on")


def _add(tx: Transaction, asked: Sequence[tuple[Claim, Notification]]) -> set[str]:
    rows = [
        {
            "dedupe_key": one.dedupe_key,
            "tenant_id": one.tenant_id,
            "template_slug": one.template_slug,
            "recipient": one.recipient,
            "data": one.job_data(),
            "task_id": claim.key,
            "due_at": claim.row.scheduledAt.isoformat(),
            "reminder": one.reminder,
        }
        for claim, one in asked
    ]
    added = tx.rows(statement(PACKAGE, "add_notifications"), notifications=json.dumps(rows))
    return {row.dedupe_key for row in added}


def send_notifications(run: Run, outside: Outside) -> None:
    """Call off reminders that were overtaken, and hand what waits to the queue, or else to the mail provider."""
    with run.alone(ALONE):
        notification_sending.cancel_overtaken(run)
        if outside.queue is not None:
            notification_sending.to_queue(run, outside.queue, outside.alerts)
        elif outside.mail is not None:
            notification_sending.by_mail(run, outside.mail, outside.alerts)


def report_queue(run: Run, outside: Outside) -> None:
    """Say what of the queue and the outbox wants a person's look."""
    with run.transaction() as tx:
        tasks = tx.rows(statement(PACKAGE, "failed_lately"))
        outbox = tx.rows(statement(PACKAGE, "outbox_standing"))
    for row in tasks:
        run.note(f"failed in the last 24 hours, of the type {row.task_type}: {row.tasks}")
    sink = "redis" if outside.queue is not None else "email"
    for row in outbox:
        if row.status == "unknown":
            run.note(f"notifications of which nobody knows whether they went out: {row.notifications}")
        elif row.sink not in (None, sink):
            run.note(f"notifications that wait for {row.sink}, which may have them: {row.notifications}")
        else:
            run.note(f"notifications that wait for the next run: {row.notifications}")


STEPS = (run_due_tasks, send_notifications, report_queue)
