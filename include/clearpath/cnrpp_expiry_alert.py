"""Operators hear once a month of a C-NRPP certification that ends soon; one that has ended is inactive."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Row

from include.addresses import set_address
from include.as_of import local_midnight
from include.clearpath.jobs_state import record_run
from include.clearpath.mail_sender import SENDER
from include.clearpath.mail_templates import Unrenderable, cnrpp_alert
from include.isolation import each_chunk
from include.mail import MailProvider, Message
from include.mail_sending import Outside, paused, send_open
from include.run import Run, Transaction
from include.statements import statement
from include.stored_message import pack

PACKAGE = "include.clearpath"
NAME = "cnrpp"
SETTINGS = {"ADMIN_ALERT_EMAIL": None}
QUEUES: tuple[str, ...] = ()
ALONE = "clearpath cnrpp alerts"


def settle_contractors(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Put this month's alerts on the ledger and deactivate who has expired, in one transaction."""
    window = {
        "today": run.today,
        "month": run.today.replace(day=1),
        "last_day": run.today + timedelta(days=int(run.params["window_days"])),
        "month_start": local_midnight(run.today.replace(day=1), run.zone),
    }
    with run.transaction() as tx:
        ids = [row.id for row in tx.rows(statement(PACKAGE, "contractors_expiring"), **window)]
    each_chunk(run, ids, lambda tx, chunk: _settle(run, tx, chunk, window))


def _settle(run: Run, tx: Transaction, ids: Sequence[uuid.UUID], window: dict[str, Any]) -> None:
    for row in tx.rows(statement(PACKAGE, "settle_contractors"), ids=ids, as_of=run.as_of, **window):
        run.count("processed")
        if row.deactivated:
            run.count("deactivated")
            run.log.info("contractor deactivated: job=%s recordId=%s", NAME, row.id)
        if not row.alerted and not row.deactivated:
            run.row_skipped(row.id, "already alerted this month")
            run.count("skipped")


def claim_alerts(run: Run, outside: Outside) -> None:
    """Render the alerts that nobody was sent yet, of any month, and commit the claim."""
    to = run.settings["ADMIN_ALERT_EMAIL"]
    with run.alone(ALONE):
        if paused(run, SENDER) is not None:
            return
        with run.transaction() as tx:
            waiting = tx.rows(statement(PACKAGE, "cnrpp_alerts_unsent"))
        if waiting and not to:
            run.log.warning("ADMIN_ALERT_EMAIL is not set: job=%s alerts waiting=%d", NAME, len(waiting))
            run.note(f"ADMIN_ALERT_EMAIL is not set: {len(waiting)} alerts wait")
            return
        if waiting and to:
            _claim_rendered(run, outside.mail, set_address("ADMIN_ALERT_EMAIL", to), waiting)


def _claim_rendered(run: Run, mail: MailProvider, to: str, waiting: Sequence[Row[Any]]) -> None:
    rendered: list[tuple[uuid.UUID, str]] = []
    broken: list[tuple[uuid.UUID, str]] = []
    for row in waiting:
        try:
            rendered.append((row.id, pack(_message(run, mail.default_sender or "", to, row))))
        except Unrenderable as error:
            run.row_failed(row.contractor_id, error)
            broken.append((row.id, str(error)))
    each_chunk(run, broken, _note_broken)
    # Batches are formed before the claim: a bisected chunk makes them smaller, never different.
    batches = [str(uuid.uuid4()) for _ in range(0, len(rendered), mail.batch_size)]
    claims = [(batches[n // mail.batch_size], alert, message) for n, (alert, message) in enumerate(rendered)]
    each_chunk(run, claims, lambda tx, chunk: _claim(run, tx, chunk))


def _message(run: Run, sender: str, to: str, row: Row[Any]) -> Message:
    subject, text = cnrpp_alert(
        contractor_name=row.name, cnrpp_id=row.cnrpp_id, expiry_date=row.expiry_date, today=run.today
    )
    return Message(sender=sender, to=to, subject=subject, text=text)


def _note_broken(tx: Transaction, chunk: Sequence[tuple[uuid.UUID, str]]) -> None:
    tx.execute(
        statement(PACKAGE, "note_broken_alerts"),
        ids=[alert for alert, _ in chunk],
        reasons=[reason for _, reason in chunk],
    )


def _claim(run: Run, tx: Transaction, chunk: Sequence[tuple[str, uuid.UUID, str]]) -> None:
    tx.execute(
        statement(PACKAGE, "claim_cnrpp_alerts"),
        batches=[batch for batch, _, _ in chunk],
        ids=[alert for _, alert, _ in chunk],
        messages=[message for _, _, message in chunk],
        provider=SENDER.service,
        run_id=run.run_id,
    )


def send_alerts(run: Run, outside: Outside) -> None:
    """Send every open claim; what was accepted moves last_cnrpp_alert_sent_at forward."""
    with run.alone(ALONE):
        delivered, _ = send_open(run, SENDER, outside.mail, outside.alerts, "open_alert_claims")
    counts = delivered.counts
    run.count("sent", counts["accepted"])
    run.count("failed", counts["rejected"] + counts["unknown"])
    run.count("deferred", counts["deferred"] + counts["unanswered"])


def note_run(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Note that the job has run."""
    record_run(run, NAME)


STEPS = (settle_contractors, claim_alerts, send_alerts, note_run)
