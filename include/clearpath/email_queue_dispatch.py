"""The mail queue: what is due goes out once, and every row that doesn't says why."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import date, timedelta
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Row

from include.as_of import local_date
from include.clearpath.jobs_state import record_run
from include.clearpath.mail_sender import QUEUE, SENDER
from include.clearpath.mail_templates import (
    SequencedValues,
    Unrenderable,
    queue_stuck_alert,
    sequenced,
    with_gaps,
)
from include.clearpath.tables import SEQUENCED_TYPES
from include.delivery import Delivered
from include.errors import BadInput
from include.isolation import CHUNK, chunks, each_chunk
from include.mail import Message
from include.mail_sending import Outside, paused, send_open
from include.run import Run, Transaction
from include.statements import statement
from include.stored_message import Frame

PACKAGE = "include.clearpath"
NAME = QUEUE
SETTINGS = {"APP_URL": "http://127.0.0.1:3000", "ADMIN_ALERT_EMAIL": None}
QUEUES = ("email_log", "email_batches", "email_attempts", "email_frames", "jobs_state")

ALONE = "clearpath mail queue"
STUCK_AFTER = timedelta(minutes=60)
STUCK_FAILURES = 10


class _Rendered(NamedTuple):
    """A message as it is stored."""

    email: uuid.UUID
    stored: str
    frame: Frame


_Claim = tuple[str, _Rendered]
_Broken = tuple[uuid.UUID, Unrenderable]


def settle_unsendable(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Cancel due mail whose session has ended, and mark what would be a second copy."""
    with run.alone(ALONE):
        for outcome in ("cancelled", "duplicate"):
            with run.transaction() as tx:
                ids = [row.id for row in tx.rows(statement(PACKAGE, f"due_{outcome}"), **_due(run))]
            each_chunk(run, ids, lambda tx, chunk, outcome=outcome: _settle(run, tx, chunk, outcome))


def _settle(run: Run, tx: Transaction, ids: Sequence[uuid.UUID], outcome: str) -> None:
    for row in tx.rows(statement(PACKAGE, f"mark_{outcome}"), ids=ids, **_due(run)):
        run.row_skipped(row.id, row.status_reason)
        run.count(outcome)
        run.count("skipped")
        run.count("processed")


def claim_due(run: Run, outside: Outside) -> None:
    """Render what is due, oldest first, and commit the claim: batch, order and message as it will go out."""
    limit = int(run.params["batch_limit"])
    with run.alone(ALONE):
        if paused(run, SENDER) is not None:
            return
        with run.transaction() as tx:
            outstanding = tx.value(statement(PACKAGE, "outstanding_claims"))
            due = tx.rows(statement(PACKAGE, "due_mail"), limit=max(0, limit - outstanding), **_due(run))
        kept: set[Frame] = set()
        for rendered, broken in _rendered(run, outside, due):
            frames = {one.frame for one in rendered} - kept
            _keep_frames(run, frames)
            kept |= frames
            _claim_chunk(run, outside, rendered, broken)


def _rendered(
    run: Run, outside: Outside, due: Sequence[Row[Any]]
) -> Iterator[tuple[Sequence[_Rendered], Sequence[_Broken]]]:
    """Yield chunks of due rows, each rendered while the database takes the one before it."""
    with ThreadPoolExecutor(max_workers=1) as renderer:
        ahead: Future[tuple[list[_Rendered], list[_Broken]]] | None = None
        for chunk in chunks(due, CHUNK):
            now, ahead = ahead, renderer.submit(_render, run, outside, chunk)
            if now is not None:
                yield now.result()
        if ahead is not None:
            yield ahead.result()


def _render(run: Run, outside: Outside, due: Sequence[Row[Any]]) -> tuple[list[_Rendered], list[_Broken]]:
    """Return the messages of due rows, and the rows of which none can be made; touches nothing else."""
    rendered: list[_Rendered] = []
    broken: list[_Broken] = []
    sender = outside.mail.default_sender or ""
    for row in due:
        try:
            message = _message(run, sender, row)
            frame = _frame(row.email_type)
            rendered.append(_Rendered(row.id, frame.pack(message), frame))
        except Unrenderable as error:
            broken.append((row.id, error))
    return rendered, broken


def _claim_chunk(
    run: Run, outside: Outside, rendered: Sequence[_Rendered], broken: Sequence[_Broken]
) -> None:
    for email, error in broken:
        run.row_failed(email, error)
        run.count("processed")
    each_chunk(run, broken, _mark_broken)
    # Batches are formed before the claim: a bisected chunk makes them smaller, never different.
    size = outside.mail.batch_size
    batches = [str(uuid.uuid4()) for _ in range(0, len(rendered), size)]
    claims = [(batches[place // size], one) for place, one in enumerate(rendered)]
    each_chunk(run, claims, lambda tx, chunk: _claim(run, tx, chunk))


@cache
def _frame(email_type: str) -> Frame:
    common = with_gaps(email_type)
    return Frame.of(common.text, common.html)


def _keep_frames(run: Run, frames: Collection[Frame]) -> None:
    if not frames:
        return
    with run.transaction() as tx:
        tx.execute(
            statement(PACKAGE, "keep_frames"),
            names=[frame.name for frame in frames],
            contents=[frame.content for frame in frames],
        )


def _message(run: Run, sender: str, row: Row[Any]) -> Message:
    if not (row.recipient or "").strip():
        raise Unrenderable(row.email_type, "the user has no e-mail address")
    app_url = (run.settings["APP_URL"] or "").rstrip("/")
    values = SequencedValues(
        full_name=row.full_name,
        address=row.address,
        kit_serial_number=row.kit_serial_number,
        activated_on=_activated_on(run, row),
        expected_completion_date=row.expected_completion_date,
        today=local_date(row.now, run.zone),
        session_url=f"{app_url}/sessions/{row.test_session_id}" if row.test_session_id else None,
        app_url=app_url,
    )
    mail = sequenced(row.email_type, values)
    return Message(sender=sender, to=row.recipient, subject=mail.subject, text=mail.text, html=mail.html)


def _activated_on(run: Run, row: Row[Any]) -> date | None:
    try:
        return local_date(row.activated_at, run.zone) if row.activated_at else None
    except BadInput as error:
        raise Unrenderable(row.email_type, f"activated_at {error}") from None


def _mark_broken(tx: Transaction, chunk: Sequence[_Broken]) -> None:
    tx.execute(
        statement(PACKAGE, "mark_broken"),
        ids=[email for email, _ in chunk],
        reasons=[str(error) for _, error in chunk],
    )


def _claim(run: Run, tx: Transaction, chunk: Sequence[_Claim]) -> None:
    tx.execute(
        statement(PACKAGE, "claim_mail"),
        batches=[batch for batch, _ in chunk],
        ids=[one.email for _, one in chunk],
        messages="\n".join(one.stored for _, one in chunk),
        frames="\n".join(one.frame.name for _, one in chunk),
        provider=SENDER.service,
        run_id=run.run_id,
        **_due(run),
    )


def send_claimed(run: Run, outside: Outside) -> None:
    """Send every open claim and record each answer; an outage leaves the rest for a later run."""
    with run.alone(ALONE):
        delivered, _ = send_open(run, SENDER, outside.mail, outside.alerts, "open_claims")
    _count(run, delivered)


def _count(run: Run, delivered: Delivered) -> None:
    counts = delivered.counts
    answered = counts["accepted"] + counts["rejected"] + counts["abandoned"] + counts["unknown"]
    run.count("processed", answered)
    run.count("sent", counts["accepted"])
    run.count("failed", answered - counts["accepted"])
    run.count("abandoned", counts["abandoned"])
    run.count("unknown", counts["unknown"])
    run.count("deferred", counts["deferred"] + counts["unanswered"])


def check_queue(run: Run, outside: Outside) -> None:
    """Note the run, and tell the operators once a day if the queue is stuck."""
    record_run(run, NAME)
    if outside.alerts.in_outage(SENDER.service):
        return
    with run.transaction() as tx:
        health = tx.row(statement(PACKAGE, "queue_health"), **_due(run))
    if health is None:
        return
    late = health.now - health.oldest_due if health.oldest_due else timedelta(0)
    if late <= STUCK_AFTER and health.failed <= STUCK_FAILURES:
        return
    subject, text = queue_stuck_alert(
        oldest_due=health.oldest_due.astimezone(run.zone) if health.oldest_due else None,
        minutes_late=int(late.total_seconds() // 60),
        failed_in_24_hours=health.failed,
    )
    day = local_date(health.now, run.zone)
    if outside.alerts.tell(f"stuck:{SENDER.service}:{day}", "stuck", subject, text):
        run.count("alerts")


def _due(run: Run) -> dict[str, Any]:
    return {"limit_as_of": run.due_limit, "sequenced": list(SEQUENCED_TYPES)}


STEPS = (settle_unsendable, claim_due, send_claimed, check_queue)
