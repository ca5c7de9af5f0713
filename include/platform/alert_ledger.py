"""The operators' ledger: every cause once, delivered once, through whatever mail provider is at hand."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from include.alerts import alert_text
from include.isolation import CHUNK
from include.mail import Accepted, Batch, Deferred, MailProvider, Message, Unknown
from include.run import EngineDatabase, Transaction
from include.statements import statement

PACKAGE = "include.platform"
_LOG = logging.getLogger("almanac.alerts")


@dataclass(frozen=True, slots=True)
class About:
    """The run that an alert is about, and the address of its log; all None for one that is about none."""

    dag_id: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    link: str | None = None


class AlertLedger:
    """The ledger in the database `almanac`; satisfies include.alerts.Alerts."""

    def __init__(self, almanac: EngineDatabase, about: About | None = None) -> None:
        self._almanac = almanac
        self._about = about or About()

    def tell(self, cause: str, kind: str, subject: str, text: str, *, told_elsewhere: bool = False) -> bool:
        """Put a message on the ledger; say whether its cause is new.

        `told_elsewhere` keeps the row and mails nothing: another alert, say of an outage, tells of it.
        """
        with self._almanac.transaction() as tx:
            return self._add(tx, cause, kind, subject, text, told_elsewhere=told_elsewhere)

    def outage(self, service: str, reason: str) -> None:
        # Together: an outage that is open and was never told of would keep silent to its end.
        with self._almanac.transaction() as tx:
            opened = tx.value(statement(PACKAGE, "open_outage"), service=service, reason=reason)
            if opened is not None:
                self._add(
                    tx,
                    f"outage:{service}:{opened}",
                    "outage",
                    f"{service} is out of reach",
                    alert_text(
                        reason,
                        "There is no further alert of this until the service answers again. What waits in a queue "
                        "goes out by itself then. A run that failed meanwhile does not: clear its failed task, or "
                        "wait for the next one. The console's page Alerts lists them all.",
                        dag_id=self._about.dag_id,
                        run_id=self._about.run_id,
                        task=self._about.task_id,
                        link=self._about.link,
                    ),
                )

    def recovered(self, service: str) -> None:
        with self._almanac.transaction() as tx:
            if tx.execute(statement(PACKAGE, "close_outage"), service=service):
                _LOG.info("outage over: service=%s", service)

    def in_outage(self, service: str) -> bool:
        with self._almanac.transaction() as tx:
            return bool(tx.value(statement(PACKAGE, "in_outage"), service=service))

    def _add(
        self, tx: Transaction, cause: str, kind: str, subject: str, text: str, *, told_elsewhere: bool = False
    ) -> bool:
        added = tx.execute(
            statement(PACKAGE, "add_alert"),
            cause=cause,
            kind=kind,
            subject=_one_line(subject),
            body=text,
            dag_id=self._about.dag_id,
            run_id=self._about.run_id,
            task_id=self._about.task_id,
            told_elsewhere=told_elsewhere,
        )
        if added:
            _LOG.error("alert: cause=%s subject=%s", cause, _one_line(subject))
        return bool(added)

    def known(self, cause: str) -> bool:
        """Say whether a cause is on the ledger."""
        with self._almanac.transaction() as tx:
            return bool(tx.value(statement(PACKAGE, "alert_known"), cause=cause))


def deliver_alerts(almanac: EngineDatabase, mail: MailProvider, to: str) -> int:
    """Mail what the ledger holds undelivered and return how many alerts the provider took.

    An alert is claimed in a committed transaction first and goes out under its own id as the key; one that
    was claimed and not answered is mailed again only if the provider's keys still stop a second delivery.
    """
    with almanac.transaction() as tx:
        claimed = tx.rows(
            statement(PACKAGE, "claim_alerts"),
            limit=CHUNK,
            key_hours=mail.key_lifetime.total_seconds() / 3600,
        )
    in_doubt = {str(row.id) for row in claimed if row.in_doubt}
    messages = {
        str(row.id): Message(
            sender=mail.default_sender or "", to=to, subject=f"[Almanac] {row.subject}", text=row.body
        )
        for row in claimed
    }
    taken = 0
    for answer in mail.send(Batch(key, (message,)) for key, message in messages.items()):
        outcome = answer.outcomes[0]
        taken += isinstance(outcome, Accepted)
        _record(almanac, answer.batch.key, outcome, in_doubt=answer.batch.key in in_doubt)
    return taken


def listening_since(almanac: EngineDatabase) -> datetime:
    """Return the instant of the platform's first start: failures before it are history."""
    with almanac.transaction() as tx:
        return tx.value(statement(PACKAGE, "listening_since"))


def undelivered(almanac: EngineDatabase) -> list[str]:
    """Return the systems whose alerts are still to be mailed, oldest alert first."""
    with almanac.transaction() as tx:
        return [row.system for row in tx.rows(statement(PACKAGE, "undelivered_alerts"))]


def nobody_to_tell(almanac: EngineDatabase) -> None:
    """Note that what the ledger holds undelivered has no address to go to: it stands in the log alone."""
    with almanac.transaction() as tx:
        tx.execute(statement(PACKAGE, "alerts_without_address"))


def _record(almanac: EngineDatabase, alert_id: str, outcome: Any, *, in_doubt: bool) -> None:
    # One that was in doubt before stays under its first claim, whose age says how long the key still holds.
    release = isinstance(outcome, Deferred) and outcome.certain and not in_doubt
    with almanac.transaction() as tx:
        tx.execute(
            statement(PACKAGE, "record_alert"),
            id=alert_id,
            delivered=isinstance(outcome, Accepted),
            release=release,
            error=None if isinstance(outcome, Accepted) else _why(outcome),
        )


def _why(outcome: Any) -> str:
    prefix = "outcome unknown: " if isinstance(outcome, Unknown) else ""
    return f"{prefix}{outcome.reason}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]
