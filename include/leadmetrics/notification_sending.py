"""Notifications go out once: into the application's queue where there is one, else as mail.

Each is claimed in the outbox before anything leaves the database, goes under a key that comes from its claim,
and is recorded after.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from include.alerts import Alerts
from include.errors import Outage
from include.isolation import chunks, each_chunk
from include.leadmetrics.mail_templates import SLUGS, Unrenderable, mail_of
from include.leadmetrics.notifications import NotificationQueue, QueuedJob
from include.leadmetrics.task_types import EARLY, LATE, REMINDERS
from include.mail import Accepted, Deferred, MailProvider, Message, Outcome
from include.mail_sending import Sender, paused, send_open
from include.run import Run, Transaction
from include.statements import statement
from include.stored_message import pack

PACKAGE = "include.leadmetrics"
SENDER = Sender(package=PACKAGE, service="leadmetrics_email", pause="leadmetrics_email")
REDIS = "leadmetrics_redis"
JOBS_TOGETHER = 100

_SLUGS = list(REMINDERS.values())


def cancel_overtaken(run: Run) -> None:
    """Call off reminders that still wait although their registration has gone on, or a later one overtakes them."""
    with run.transaction() as tx:
        found = tx.rows(
            statement(PACKAGE, "reminders_overtaken"), early=REMINDERS[EARLY], late=REMINDERS[LATE]
        )

    def cancel(tx: Transaction, some: Sequence[tuple[uuid.UUID, str]]) -> None:
        ids, reasons = [one for one, _ in some], [reason for _, reason in some]
        for row in tx.rows(statement(PACKAGE, "cancel_reminders"), ids=ids, reasons=reasons):
            run.row_skipped(row.id, row.reason)
            run.count("cancelled")

    each_chunk(run, [(row.id, row.reason) for row in found], cancel)


def to_queue(run: Run, queue: NotificationQueue, alerts: Alerts) -> None:
    """Add what waits to the queue; an outage leaves the rest for a later run."""
    remembered = queue.remembers.total_seconds()
    with run.transaction() as tx:
        lost = [row.id for row in tx.rows(statement(PACKAGE, "queue_lost"), remembered=remembered)]
    forgotten = "begun, never confirmed, and by now the queue may have forgotten it"
    _record(run, [(one, "unknown", forgotten, False) for one in lost])
    with run.transaction() as tx:
        waiting = [row.id for row in tx.rows(statement(PACKAGE, "pending_notifications"), sink="redis")]
    if not waiting:
        return
    try:
        queue.check()
    except Outage as error:
        _outage(run, alerts, str(error))
        return
    for some in chunks(waiting, JOBS_TOGETHER):
        jobs: list[QueuedJob] = []

        def begin(tx: Transaction, ids: Sequence[uuid.UUID], jobs: list[QueuedJob] = jobs) -> None:
            begun = tx.rows(statement(PACKAGE, "begin_queueing"), ids=ids, reminders=_SLUGS)
            jobs.extend(QueuedJob(row.id, row.dedupe_key, row.data) for row in begun)

        each_chunk(run, some, begin)
        outcomes = queue.add(jobs)
        _record(run, [_said(job, outcome) for job, outcome in zip(jobs, outcomes, strict=True)])
        if (outage := next((one for one in outcomes if isinstance(one, Deferred)), None)) is not None:
            _outage(run, alerts, outage.reason)
            return
    alerts.recovered(REDIS)


def _said(job: QueuedJob, outcome: Outcome) -> tuple[uuid.UUID, str, str | None, bool]:
    match outcome:
        case Accepted():
            return job.notification_id, "queued", None, True
        case Deferred():
            return job.notification_id, "pending", outcome.reason, outcome.certain
        case _:
            return job.notification_id, "failed", outcome.reason, True


def _record(run: Run, said: Sequence[tuple[uuid.UUID, str, str | None, bool]]) -> None:
    def change(tx: Transaction, chunk: Sequence[tuple[uuid.UUID, str, str | None, bool]]) -> None:
        rows = tx.rows(
            statement(PACKAGE, "record_queued"),
            ids=[one for one, _, _, _ in chunk],
            statuses=[status for _, status, _, _ in chunk],
            reasons=[reason for _, _, reason, _ in chunk],
            certain=[certain for _, _, _, certain in chunk],
        )
        for row in rows:
            run.count({"queued": "sent", "pending": "deferred"}.get(row.status, row.status))

    each_chunk(run, said, change)


def by_mail(run: Run, mail: MailProvider, alerts: Alerts) -> None:
    """Claim what waits, rendered as it will go out, and send every open claim."""
    if paused(run, SENDER) is None:
        _claim_waiting(run, mail)
    delivered, _ = send_open(run, SENDER, mail, alerts, "open_claims")
    counts = delivered.counts
    run.count("sent", counts["accepted"])
    run.count("failed", counts["rejected"] + counts["unknown"])
    run.count("unknown", counts["unknown"])
    run.count("deferred", counts["deferred"] + counts["unanswered"])


def _claim_waiting(run: Run, mail: MailProvider) -> None:
    with run.transaction() as tx:
        waiting = tx.rows(statement(PACKAGE, "pending_notifications"), sink="email")
    rendered: list[tuple[uuid.UUID, str]] = []
    broken: list[tuple[uuid.UUID, str]] = []
    for row in waiting:
        try:
            rendered.append((row.id, pack(_message(mail, row))))
        except Unrenderable as error:
            run.row_failed(row.id, error)
            broken.append((row.id, str(error)))
    each_chunk(run, broken, _mark_unrenderable)
    # Batches are formed before the claim: a bisected chunk makes them smaller, never different.
    batches = [str(uuid.uuid4()) for _ in range(0, len(rendered), mail.batch_size)]
    claims = [(batches[place // mail.batch_size], *one) for place, one in enumerate(rendered)]
    each_chunk(run, claims, lambda tx, chunk: _claim(run, tx, chunk))


def _message(mail: MailProvider, row: Row[Any]) -> Message:
    if row.template_slug not in SLUGS:
        raise Unrenderable(row.template_slug, f"no such template; there are {', '.join(SLUGS)}")
    made = mail_of(row.template_slug, row.data)
    return Message(
        sender=mail.default_sender or "",
        to=row.recipient,
        subject=made.subject,
        text=made.text,
        html=made.html,
    )


def _mark_unrenderable(tx: Transaction, chunk: Sequence[tuple[uuid.UUID, str]]) -> None:
    tx.execute(
        statement(PACKAGE, "mark_unrenderable"),
        ids=[one for one, _ in chunk],
        reasons=[reason for _, reason in chunk],
    )


def _claim(run: Run, tx: Transaction, chunk: Sequence[tuple[str, uuid.UUID, str]]) -> None:
    tx.execute(
        statement(PACKAGE, "claim_mail"),
        batches=[batch for batch, _, _ in chunk],
        ids=[one for _, one, _ in chunk],
        messages=[message for _, _, message in chunk],
        run_id=run.run_id,
        reminders=_SLUGS,
    )


def _outage(run: Run, alerts: Alerts, reason: str) -> None:
    run.state = "deferred"
    run.note(f"{REDIS} is out of reach: {reason}")
    alerts.outage(REDIS, reason)
