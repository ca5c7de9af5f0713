"""Each user's digest goes out once the chosen local hour has passed: one mail with all that is new."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import Row

from include.alerts import Alerts
from include.as_of import local_date
from include.errors import AlmanacError, BadInput, Busy, Outage
from include.isolation import CHUNK, chunks, each_chunk
from include.mail import MailProvider
from include.mail_sending import Outside, Sender, paused, send_open
from include.nifya.digest_mail import MOST_ENTRIES, Digest, digest_message
from include.nifya.job_types import SendDigestEmails
from include.nifya.schedules import next_after, parse
from include.run import Run, Transaction
from include.statements import statement
from include.stored_message import pack

PACKAGE = "include.nifya"
NAME = "send-digest-emails"
SENDER = Sender(package=PACKAGE, service="nifya_email", pause="nifya_email")
SETTINGS: dict[str, str | None] = {
    "ADMIN_ALERT_EMAIL": None,
    "nifya_app_url": "http://127.0.0.1:3001/notifications",
    "nifya_links_url": "http://127.0.0.1:8080/almanac/nifya",
}
QUEUES: tuple[str, ...] = ()

ALONE = "nifya digests"
LINK_DAYS = 365
"""How long the link in a digest stops the digests."""

_RENDERED_TOGETHER = 50
# Longer than any day, those that a country skips included.
_LOOK_BACK = timedelta(days=3)


class _Crossed(NamedTuple):
    """An hour that users of a zone have chosen, when it was crossed last, and which local day that was."""

    zone: str
    hour: int
    at: datetime
    day: date


class _Rendered(NamedTuple):
    """A digest as it will go out, if it still is the one of that instant when it is claimed."""

    digest: uuid.UUID
    due_at: datetime
    message: str


class _Unsendable(NamedTuple):
    """A digest of which no mail is made, if it still is the one of that instant."""

    digest: uuid.UUID
    due_at: datetime
    status: str
    reason: str


def make_digests(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Settle the hour of every user whose hour was crossed since the latest digest; make one of what is new."""
    given = run.params.get("hour_of_day")
    _make(run, None if given is None else int(given))


def claim_digests(run: Run, outside: Outside) -> None:
    """Render what waits and commit the claim: batch, order and message as it will go out."""
    with run.alone(ALONE):
        if paused(run, SENDER) is None:
            _claim_waiting(run, outside.mail)


def send_digests(run: Run, outside: Outside) -> None:
    """Send every open claim and record each answer. Raises Outage if the provider is not to be had."""
    with run.alone(ALONE):
        waiting = _send(run, outside.mail, outside.alerts)
    if waiting is not None and not run.preview:
        raise waiting


def handle(run: Run, datas: Sequence[SendDigestEmails]) -> Sequence[AlmanacError | None]:
    """Make the digests of scheduled jobs; `send_waiting` sends them, in this run or a later one."""
    for hour in {data.hour for data in datas}:
        _make(run, hour)
    return [None] * len(datas)


def send_waiting(run: Run, mail: MailProvider, alerts: Alerts) -> None:
    """Claim and send what waits, as far as the provider takes it now; the rest waits for a later run."""
    with run.transaction() as tx:
        waits = bool(_unclaimed(run, tx)) or bool(tx.rows(statement(PACKAGE, "open_digest_claims")))
    if not waits:
        return
    try:
        with run.alone(ALONE):
            # A pause is told of, and ends the sending before it begins.
            if paused(run, SENDER) is None:
                _claim_waiting(run, mail)
            _send(run, mail, alerts)
    except Busy as error:
        run.note(str(error))


def latest_crossing(timezone: str, hour: int, as_of: datetime) -> datetime:
    """Return the latest instant, up to `as_of`, at which a local hour began in a zone.

    Where clocks skip the hour, it is the first instant after the gap; where they repeat it, its first time.
    Raises BadInput for an unknown zone or an hour that no day has.
    """
    daily = parse({"type": "daily", "hourOfDay": hour, "timezone": timezone})
    at = as_of - _LOOK_BACK
    found = at
    while (at := next_after(daily, at, at)) <= as_of:
        found = at
    return found


def _make(run: Run, hour: int | None) -> None:
    with run.transaction() as tx:
        chosen = tx.rows(statement(PACKAGE, "digest_hours"), hour=hour)
    crossed: list[_Crossed] = []
    for row in chosen:
        try:
            at = latest_crossing(row.timezone, row.digest_hour, run.as_of)
        except BadInput as error:
            run.row_failed(f"users in {row.timezone[:60]!r}", error)
        else:
            day = local_date(at, ZoneInfo(row.timezone))
            crossed.append(_Crossed(row.timezone, row.digest_hour, at, day))
    with run.transaction() as tx:
        due = tx.rows(
            statement(PACKAGE, "users_due"),
            zones=[one.zone for one in crossed],
            hours=[one.hour for one in crossed],
            crossed=[one.at for one in crossed],
            days=[one.day for one in crossed],
        )
        later = tx.value(statement(PACKAGE, "users_settled_later"), as_of=run.as_of, hour=hour)
    if later:
        run.note(f"{later} users were settled as of a later instant; this run is too old for them")
    by_user = {row.id: row for row in due}
    each_chunk(run, list(by_user), lambda tx, users: _settle(run, tx, users, by_user))


def _settle(run: Run, tx: Transaction, users: Sequence[str], due: Mapping[str, Row[Any]]) -> None:
    settled = tx.rows(
        statement(PACKAGE, "make_digests"),
        users=list(users),
        due=[due[user].due_at for user in users],
        days=[due[user].due_on for user in users],
        as_of=run.as_of,
    )
    made = sum(row.is_made for row in settled)
    run.count("digests", made)
    # Nothing was new, or the world moved between the look and the change.
    run.count("skipped", len(users) - made)
    run.count("processed", len(users))


def _unclaimed(run: Run, tx: Transaction) -> list[uuid.UUID]:
    return [row.id for row in tx.rows(statement(PACKAGE, "digests_unclaimed"), not_after=run.due_limit)]


def _claim_waiting(run: Run, mail: MailProvider) -> None:
    with run.transaction() as tx:
        waiting = _unclaimed(run, tx)
    for some in chunks(waiting, _RENDERED_TOGETHER):
        with run.transaction() as tx:
            rows = tx.rows(statement(PACKAGE, "digest_contents"), ids=list(some), most=MOST_ENTRIES)
        _claim_rendered(run, mail, rows)


def _claim_rendered(run: Run, mail: MailProvider, rows: Sequence[Row[Any]]) -> None:
    rendered: list[_Rendered] = []
    unsendable: list[_Unsendable] = []
    for row in rows:
        if (needless := _needless(row)) is not None:
            run.row_skipped(row.id, needless)
            run.count("skipped")
            unsendable.append(_Unsendable(row.id, row.due_at, "abandoned", needless))
        elif not (row.email or "").strip():
            reason = "the user has no e-mail address"
            run.row_failed(row.id, reason)
            unsendable.append(_Unsendable(row.id, row.due_at, "failed", reason))
        else:
            rendered.append(_Rendered(row.id, row.due_at, pack(_message(run, mail, row))))
    each_chunk(run, unsendable, _mark_unsendable)
    # Batches are formed before the claim: a bisected chunk makes them smaller, never different.
    batches = [str(uuid.uuid4()) for _ in range(0, len(rendered), mail.batch_size)]
    claims = [(batches[n // mail.batch_size], one) for n, one in enumerate(rendered)]
    each_chunk(run, claims, lambda tx, chunk: _claim(run, tx, chunk), CHUNK)


def _needless(row: Row[Any]) -> str | None:
    if row.is_stopped:
        return "the user wants no more digests"
    return None if row.unread else "all of it was read meanwhile"


def _message(run: Run, mail: MailProvider, row: Row[Any]) -> Any:
    links = (run.settings["nifya_links_url"] or "").rstrip("/")
    digest = Digest(
        name=row.name,
        unread=row.unread,
        entries=row.entries,
        app_url=run.settings["nifya_app_url"] or "",
        unsubscribe_url=f"{links}/unsubscribe/{row.unsubscribe_token}",
    )
    return digest_message(digest, sender=mail.default_sender or "", to=row.email)


def _mark_unsendable(tx: Transaction, chunk: Sequence[_Unsendable]) -> None:
    tx.execute(
        statement(PACKAGE, "mark_digests_unsendable"),
        ids=[one.digest for one in chunk],
        due=[one.due_at for one in chunk],
        statuses=[one.status for one in chunk],
        reasons=[one.reason for one in chunk],
    )


def _claim(run: Run, tx: Transaction, chunk: Sequence[tuple[str, _Rendered]]) -> None:
    tx.execute(
        statement(PACKAGE, "claim_digests"),
        batches=[batch for batch, _ in chunk],
        ids=[one.digest for _, one in chunk],
        due=[one.due_at for _, one in chunk],
        messages=[one.message for _, one in chunk],
        provider=SENDER.service,
        run_id=run.run_id,
    )


def _send(run: Run, mail: MailProvider, alerts: Alerts) -> Outage | None:
    delivered, waiting = send_open(run, SENDER, mail, alerts, "open_digest_claims")
    counts = delivered.counts
    run.count("sent", counts["accepted"])
    run.count("failed", counts["rejected"] + counts["abandoned"] + counts["unknown"])
    run.count("deferred", counts["deferred"] + counts["unanswered"])
    return waiting


STEPS = (make_digests, claim_digests, send_digests)
