"""Notifications go out by their channel, most urgent first, once; every row says why it did, or did not."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Row

from include.alerts import Alerts, RecordedAlerts
from include.ecocomply import notification_mail
from include.ecocomply.channels import PushesAsMail, PushMessages, RecordedPushes
from include.ecocomply.unsubscribe_links import UnsubscribeLinks
from include.effects import Effects
from include.isolation import CHUNK, each_chunk
from include.mail import MailProvider, Message, RecordedMail
from include.mail_sending import Sender, paused, send_open
from include.run import Run, Transaction
from include.statements import statement
from include.stored_message import pack

PACKAGE = "include.ecocomply"
NAME = "notification-delivery-job"
SETTINGS: dict[str, str | None] = {
    "ADMIN_ALERT_EMAIL": None,
    "PUBLIC_URL": "http://127.0.0.1:8080/almanac/ecocomply",
}
QUEUES: tuple[str, ...] = ("notifications", "email_batches", "email_attempts", "delivery_pauses")

CHANNEL = "ecocomply_notifications"
"""What the database notifies when notifications were added."""

ALONE = "ecocomply notifications"


class Outside(NamedTuple):
    """The three providers (an SMS is addressed to a number), what signs links, and the operators' ledger."""

    mail: MailProvider
    texts: MailProvider
    pushes: PushMessages
    links: UnsubscribeLinks
    alerts: Alerts

    def in_preview(self, run: Run, effects: Effects) -> Outside:
        return Outside(
            RecordedMail(self.mail, effects),
            RecordedMail(self.texts, effects),
            RecordedPushes(self.pushes, effects),
            self.links,
            RecordedAlerts(self.alerts, effects, run.settings["ADMIN_ALERT_EMAIL"]),
        )


@dataclass(frozen=True, slots=True)
class _Channel:
    """A channel with a provider: `claims` finds its open claims, `message` is how it carries a row."""

    name: str
    sender: Sender
    claims: str
    message: Callable[[Run, Outside, Row[Any]], Message]


def _mail_of(run: Run, outside: Outside, row: Row[Any]) -> Message:
    link = outside.links.url(run.settings["PUBLIC_URL"] or "", row.user_id, row.notification_type, row.today)
    return notification_mail.mail(row, outside.mail.default_sender or "", link)


def _sender(channel: str) -> Sender:
    service = f"ecocomply_{channel}"
    return Sender(package=PACKAGE, service=service, pause=service)


MAIL_SENDER = _sender("email")
"""Whom digests go by as well."""

_CHANNELS = (
    _Channel("EMAIL", MAIL_SENDER, "open_email_claims", _mail_of),
    _Channel(
        "SMS", _sender("sms"), "open_sms_claims", lambda _run, _outside, row: notification_mail.sms(row)
    ),
    _Channel(
        "PUSH", _sender("push"), "open_push_claims", lambda _run, _outside, row: notification_mail.push(row)
    ),
)


def settle_without_provider(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Cancel what the user does not want, fail what has no address, leave to a digest, show in the application."""
    with run.alone(ALONE):
        _settle(run)


def claim_due(run: Run, outside: Outside) -> None:
    """Claim what is due, channel by channel, most urgent first, as the message that will go out."""
    with run.alone(ALONE):
        for channel in _CHANNELS:
            if paused(run, channel.sender) is None:
                _claim_all(run, outside, channel)


def send_claimed(run: Run, outside: Outside) -> None:
    """Send every open claim and record each answer; an outage of one channel leaves it to a later run, alone."""
    with run.alone(ALONE):
        pushes = PushesAsMail(outside.pushes, lambda endpoints: _forget_subscriptions(run, endpoints))
        providers: tuple[MailProvider, ...] = (outside.mail, outside.texts, pushes)
        for channel, provider in zip(_CHANNELS, providers, strict=True):
            _send(run, channel, provider, outside.alerts)


def show_failed(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Show in the application what reached nobody: the database made a copy of it when it failed."""
    with run.alone(ALONE):
        _settle(run)


def _settle(run: Run) -> None:
    with run.transaction() as tx:
        found = tx.rows(statement(PACKAGE, "notifications_to_settle"), **_narrowed(run))
    each_chunk(
        run, [(row.id, row.what, row.reason) for row in found], lambda tx, some: _settled(run, tx, some)
    )


def _settled(run: Run, tx: Transaction, some: Sequence[tuple[uuid.UUID, str, str]]) -> None:
    for row in tx.rows(
        statement(PACKAGE, "settle_notifications"),
        ids=[one for one, _, _ in some],
        whats=[what for _, what, _ in some],
        reasons=[reason for _, _, reason in some],
    ):
        run.count(row.what.lower())
        if row.what != "DELIVERED":
            run.row_skipped(row.id, row.reason)


def _claim_all(run: Run, outside: Outside, channel: _Channel) -> None:
    left_aside: set[uuid.UUID] = set()
    while True:
        with run.transaction() as tx:
            due = tx.rows(
                statement(PACKAGE, "due_notifications"),
                channel=channel.name,
                limit=CHUNK + len(left_aside),
                **_narrowed(run),
            )
        fresh = [row for row in due if row.id not in left_aside]
        if not fresh:
            return
        # What can't be claimed, since somebody changed it or the database refuses it, is not asked for again.
        left_aside |= {row.id for row in fresh} - _claim_rendered(run, outside, channel, fresh)


def _claim_rendered(run: Run, outside: Outside, channel: _Channel, due: Sequence[Row[Any]]) -> set[uuid.UUID]:
    claimed: set[uuid.UUID] = set()
    rendered = [(row.id, pack(channel.message(run, outside, row))) for row in due]
    size = outside.mail.batch_size if channel.sender is MAIL_SENDER else 1
    # Batches are formed before the claim: a bisected chunk makes them smaller, never different.
    batches = [str(uuid.uuid4()) for _ in range(0, len(rendered), size)]
    claims = [(batches[place // size], *one) for place, one in enumerate(rendered)]

    def claim(tx: Transaction, chunk: Sequence[tuple[str, uuid.UUID, str]]) -> None:
        made = tx.rows(
            statement(PACKAGE, "claim_notifications"),
            batches=[batch for batch, _, _ in chunk],
            ids=[one for _, one, _ in chunk],
            messages=[message for _, _, message in chunk],
            provider=channel.sender.service,
            run_id=run.run_id,
        )
        claimed.update(row.notification_id for row in made)

    each_chunk(run, claims, claim)
    return claimed


def _send(run: Run, channel: _Channel, provider: MailProvider, alerts: Alerts) -> None:
    delivered, _ = send_open(run, channel.sender, provider, alerts, channel.claims)
    counts = delivered.counts
    run.count("processed", sum(counts.values()) - counts["deferred"] - counts["unanswered"])
    run.count("sent", counts["accepted"])
    run.count("retrying", counts["rejected"])
    run.count("failed", counts["abandoned"] + counts["unknown"])
    run.count("unknown", counts["unknown"])
    run.count("deferred", counts["deferred"] + counts["unanswered"])


def _forget_subscriptions(run: Run, endpoints: Sequence[str]) -> None:
    with run.transaction() as tx:
        tx.execute(statement(PACKAGE, "push_subscriptions_gone"), endpoints=list(endpoints))


def _narrowed(run: Run) -> dict[str, Any]:
    given = run.params.get("notification_id")
    return {"limit_as_of": run.due_limit, "notification_id": None if given is None else str(given)}


STEPS = (settle_without_provider, claim_due, send_claimed, show_failed)
