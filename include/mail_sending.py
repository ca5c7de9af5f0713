"""Claimed mail goes to a system's provider, and nothing does while the provider wants to be left alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from include.alerts import Alerts, RecordedAlerts
from include.delivery import Delivered, deliver
from include.effects import Effects
from include.errors import Outage
from include.mail import Deferred, MailProvider, RecordedMail
from include.odd_dates import OddDate
from include.run import Run
from include.statements import statement


class Outside(NamedTuple):
    """The mail provider, and the operators' ledger: all that a job which only sends mail reaches."""

    mail: MailProvider
    alerts: Alerts

    def in_preview(self, run: Run, effects: Effects) -> Outside:
        alerts = RecordedAlerts(self.alerts, effects, run.settings["ADMIN_ALERT_EMAIL"])
        return Outside(RecordedMail(self.mail, effects), alerts)


@dataclass(frozen=True, slots=True)
class Sender:
    """Whose mail it is: `service` is the provider's name for the operators, `pause` the key of its pause.

    `package` holds the statements `mail_pause` and `pause_mail`, beside those of `include.delivery`. Jobs that
    share a provider share the sender, and so its pause.
    """

    package: str
    service: str
    pause: str


def paused(run: Run, sender: Sender) -> Outage | None:
    """Return why the provider is to be left alone now, or None; the run is then deferred, and says so."""
    with run.transaction() as tx:
        pause = tx.row(statement(sender.package, "mail_pause"), name=sender.pause)
    if pause is None:
        return None
    at = pause.paused_until
    until = str(at) if isinstance(at, OddDate) else f"{at.astimezone(run.zone):%Y-%m-%d %H:%M %Z}"
    said = f"mail waits until {until}: {pause.pause_reason}"
    run.state = "deferred"
    run.note(said)
    retry_at = None if isinstance(at, OddDate) else at
    return Outage(f"{sender.service}: {said}", retry_at=retry_at, service=sender.service)


def send_open(
    run: Run, sender: Sender, mail: MailProvider, alerts: Alerts, claims: str
) -> tuple[Delivered, Outage | None]:
    """Send the claims that the statement `claims` finds; beside the counts comes what keeps the rest."""
    if (waiting := paused(run, sender)) is not None:
        # Told before, unless the run that came to the pause was killed right there.
        alerts.outage(sender.service, str(waiting))
        return Delivered(), waiting
    delivered = deliver(run, mail, sender.package, claims)
    if delivered.outage is not None:
        return delivered, _put_off(run, sender, alerts, delivered.outage)
    if delivered.answered:
        alerts.recovered(sender.service)
    if unanswered := delivered.counts["unanswered"]:
        return delivered, _deferred(run, sender, f"still at an earlier sending of {unanswered} mails")
    return delivered, None


def _put_off(run: Run, sender: Sender, alerts: Alerts, outage: Deferred) -> Outage:
    if outage.retry_at is not None:
        why = "the provider's quota is used up" if outage.quota else "the provider asked to wait"
        with run.transaction() as tx:
            tx.execute(
                statement(sender.package, "pause_mail"),
                name=sender.pause,
                until=outage.retry_at,
                reason=f"{why} ({outage.reason})",
            )
    alerts.outage(sender.service, outage.reason)
    return _deferred(run, sender, f"out of reach: {outage.reason}", outage.retry_at)


def _deferred(run: Run, sender: Sender, why: str, retry_at: datetime | None = None) -> Outage:
    said = f"{sender.service} is {why}"
    run.state = "deferred"
    run.note(said)
    return Outage(said, retry_at=retry_at, service=sender.service)
