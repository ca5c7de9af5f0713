"""A person's digest, daily or weekly: one mail of what waits for it; what it can't tell stays undelivered."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from sqlalchemy import Row

from include.ecocomply.digest_mail import MOST_ENTRIES, Digest, digest_message
from include.ecocomply.notification_delivery import MAIL_SENDER, PACKAGE
from include.isolation import chunks, each_chunk
from include.mail import MailProvider, Message
from include.mail_sending import Outside, paused, send_open
from include.run import Run, Transaction
from include.statements import statement
from include.stored_message import pack

SETTINGS: dict[str, str | None] = {
    "ADMIN_ALERT_EMAIL": None,
    "APP_URL": "http://127.0.0.1:3000",
    "PUBLIC_URL": "http://127.0.0.1:8080/almanac/ecocomply",
}
QUEUES: tuple[str, ...] = ()

ALONE = "ecocomply digests"
LINK_DAYS = 365
"""How long the link in a digest stops the digests."""

_RENDERED_TOGETHER = 50


def period_start(frequency: str, day: date) -> date:
    """Return the first day of the period that a digest of that day is of."""
    return day if frequency == "DAILY" else day - timedelta(days=day.weekday())


def make_digests(run: Run, frequency: str) -> None:
    """Make the period's digest of everybody for whom something waits; one that was refused is made anew."""
    period = {"frequency": frequency, "period_start": period_start(frequency, run.today)}
    with run.transaction() as tx:
        users = [
            row.user_id for row in tx.rows(statement(PACKAGE, "users_for_digest"), as_of=run.as_of, **period)
        ]
        later = tx.value(statement(PACKAGE, "digests_later"), **period)
    if later:
        run.note(f"{later} digests are of later periods; this run is too old for those people")

    def make(tx: Transaction, some: Sequence[uuid.UUID]) -> None:
        made = tx.rows(statement(PACKAGE, "make_digests"), users=list(some), as_of=run.as_of, **period)
        run.count("digests", len(made))
        run.count("notifications", sum(row.entries for row in made))
        run.count("skipped", len(some) - len(made))

    with run.alone(ALONE):
        each_chunk(run, users, make)


def claim_digests(run: Run, frequency: str, mail: MailProvider) -> None:
    """Render what waits and commit the claim: batch, order and message as it will go out."""
    with run.alone(ALONE):
        if paused(run, MAIL_SENDER) is not None:
            return
        with run.transaction() as tx:
            waiting = [
                row.id for row in tx.rows(statement(PACKAGE, "digests_unclaimed"), frequency=frequency)
            ]
        for some in chunks(waiting, _RENDERED_TOGETHER):
            with run.transaction() as tx:
                # Since the digest was made, a consultant may have lost a client.
                run.count("cancelled", tx.execute(statement(PACKAGE, "cancel_in_digests"), ids=list(some)))
                rows = tx.rows(statement(PACKAGE, "digest_contents"), ids=list(some), most=MOST_ENTRIES)
            _claim_rendered(run, mail, rows)


def send_digests(run: Run, outside: Outside) -> None:
    """Send every open claim and record each answer. Raises Outage if the provider is not to be had."""
    with run.alone(ALONE):
        delivered, waiting = send_open(run, MAIL_SENDER, outside.mail, outside.alerts, "open_digest_claims")
    counts = delivered.counts
    run.count("processed", sum(counts.values()) - counts["deferred"] - counts["unanswered"])
    run.count("sent", counts["accepted"])
    run.count("failed", counts["rejected"] + counts["abandoned"] + counts["unknown"])
    run.count("deferred", counts["deferred"] + counts["unanswered"])
    if waiting is not None and not run.preview:
        raise waiting


def digest_link(tx: Transaction, token: uuid.UUID) -> Row[Any] | None:
    """Return the `frequency` of the digest that a link is of, and whether it `is_live`; None for a link of none."""
    return tx.row(statement(PACKAGE, "digest_link"), token=str(token), days=LINK_DAYS)


def stop_digests(tx: Transaction, token: uuid.UUID) -> bool:
    """Let a person have no more of the types in a digest by mail; say whether the link still stands for one."""
    return bool(tx.execute(statement(PACKAGE, "stop_digests"), token=str(token), days=LINK_DAYS))


def _claim_rendered(run: Run, mail: MailProvider, rows: Sequence[Row[Any]]) -> None:
    rendered: list[tuple[uuid.UUID, str]] = []
    unsendable: list[tuple[uuid.UUID, str, str]] = []
    for row in rows:
        if (reason := _reason_against(row)) is not None:
            run.row_skipped(row.id, reason)
            run.count("skipped")
            unsendable.append((row.id, "abandoned", reason))
        else:
            rendered.append((row.id, pack(_message(run, mail, row))))
    each_chunk(run, unsendable, _mark_unsendable)
    # Batches are formed before the claim: a bisected chunk makes them smaller, never different.
    batches = [str(uuid.uuid4()) for _ in range(0, len(rendered), mail.batch_size)]
    claims = [(batches[place // mail.batch_size], *one) for place, one in enumerate(rendered)]
    each_chunk(run, claims, lambda tx, chunk: _claim(run, tx, chunk))


def _reason_against(row: Row[Any]) -> str | None:
    if not row.is_active:
        return "the user is not active any more"
    if not row.counts:
        return "all of it was called off meanwhile"
    return None if row.email else "the user has no e-mail address"


def _message(run: Run, mail: MailProvider, row: Row[Any]) -> Message:
    digest = Digest(
        frequency=row.frequency,
        name=row.name,
        counts=row.counts,
        entries=row.entries,
        all_url=f"{(run.settings['APP_URL'] or '').rstrip('/')}/notifications",
        unsubscribe_url=f"{(run.settings['PUBLIC_URL'] or '').rstrip('/')}/digests/{row.unsubscribe_token}",
    )
    return digest_message(digest, sender=mail.default_sender or "", to=row.email)


def _mark_unsendable(tx: Transaction, chunk: Sequence[tuple[uuid.UUID, str, str]]) -> None:
    tx.execute(
        statement(PACKAGE, "mark_digests_unsendable"),
        ids=[digest for digest, _, _ in chunk],
        reasons=[reason for _, _, reason in chunk],
    )


def _claim(run: Run, tx: Transaction, chunk: Sequence[tuple[str, uuid.UUID, str]]) -> None:
    tx.execute(
        statement(PACKAGE, "claim_digests"),
        batches=[batch for batch, _, _ in chunk],
        ids=[digest for _, digest, _ in chunk],
        messages=[message for _, _, message in chunk],
        provider=MAIL_SENDER.service,
        run_id=run.run_id,
    )
