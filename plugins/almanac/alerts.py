"""Operators hear of every failure once: from the task itself, else from the scheduler.

A task that used up its attempts tells of itself. A run that reached its time limit and a process that was
killed can't: the teller in the scheduler tells of those. All go through the ledger under the same causes, so
that each is told once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from almanac.settings import settings
from include.alerts import alert_text
from include.errors import BadInput, Outage, Permanent
from include.mail import MailProvider
from include.run import row_error

_LOG = logging.getLogger("almanac.alerts")
ADDRESS = "ADMIN_ALERT_EMAIL"
CONNECTION = "almanac_alert_email"
_WHAT_TO_DO = "The DAG's page says what to do if it fails."


def tell_task_failed(context: Mapping[str, Any]) -> None:
    """Tell operators of a task that has used up its attempts: a task's on_failure_callback."""
    try:
        ti = context["ti"]
        exception = context.get("exception")
        reason = row_error(exception) if isinstance(exception, BaseException) else str(exception or "unknown")
        task = FailedTask(ti.dag_id, ti.run_id, ti.task_id, ti.try_number, ti.map_index, reason, ti.log_url)
        service = exception.service if isinstance(exception, Outage) else None
        if service is not None:
            # First: an alert that is told elsewhere, and is not, would be lost.
            task.ledger().outage(service, reason)
        task.tell(told_elsewhere=service is not None)
    except Exception:
        # The task's own error matters more than the alert's; the scheduler tells of it instead.
        _LOG.exception("alert: could not be put on the ledger")
    deliver_quietly()


class FailedTask:
    """One failed attempt of one task, as the ledger knows it."""

    def __init__(
        self, dag_id: str, run_id: str, task_id: str, try_number: int, map_index: int, reason: str, link: str
    ) -> None:
        self._about = (dag_id, run_id, task_id, link)
        place = f"{task_id}[{map_index}]" if map_index >= 0 else task_id
        self.cause = f"task:{dag_id}:{run_id}:{place}:{try_number}"
        self.subject = f"{dag_id}: task {place} failed"
        task = f"{place}, attempt {try_number}"
        self.body = alert_text(reason, _WHAT_TO_DO, dag_id=dag_id, run_id=run_id, task=task, link=link)

    def ledger(self) -> Any:
        return _ledger(*self._about)

    def tell(self, *, told_elsewhere: bool = False) -> bool:
        return self.ledger().tell(self.cause, "task", self.subject, self.body, told_elsewhere=told_elsewhere)


def tell_run_failed(dag_id: str, run_id: str, attempt: int, reason: str, link: str) -> None:
    """Tell operators of a run that failed though no task did; `attempt` counts how often it was started over."""
    _ledger(dag_id, run_id, None, link).tell(
        f"timeout:{dag_id}:{run_id}:{attempt}",
        "timeout",
        f"{dag_id}: the run {reason}",
        alert_text(
            f"the run {reason}; tasks that had not ended show as skipped",
            _WHAT_TO_DO,
            dag_id=dag_id,
            run_id=run_id,
            task=None,
            link=link,
        ),
    )


def deliver_undelivered() -> None:
    """Mail what the ledger holds undelivered; a provider that is out of reach leaves it for the next time."""
    from hooks.postgres import database  # noqa: PLC0415 - heavy, and seldom needed
    from include.addresses import set_address  # noqa: PLC0415 - as above
    from include.platform.alert_ledger import deliver_alerts, nobody_to_tell, undelivered  # noqa: PLC0415 - as above

    almanac = database("almanac_db")
    systems = undelivered(almanac)
    if not systems:
        return
    to = settings({ADDRESS: None})[ADDRESS]
    if to is None:
        nobody_to_tell(almanac)
        return
    # A slip in the setting must not use up the alerts: they wait until it is mended.
    set_address(ADDRESS, to)
    deliver_alerts(almanac, _provider(CONNECTION, *(f"{system}_email" for system in systems)), to)


def _provider(*conn_ids: str) -> MailProvider:
    """Return the first of these connections that is one; not every system has mail of its own."""
    from hooks.email import email_provider  # noqa: PLC0415 - heavy, and seldom needed

    reasons = []
    for conn_id in conn_ids:
        try:
            return email_provider(conn_id)
        except Permanent as error:
            reasons.append(str(error))
    raise BadInput(f"alerts: no mail connection: {'; '.join(reasons)}")


def deliver_quietly() -> None:
    """Mail what is undelivered; if that can't be done now, the row waits for the next run, or the teller."""
    try:
        deliver_undelivered()
    except Exception:
        # An alert that can't be mailed must fail neither a task nor the scheduler.
        _LOG.exception("alerts: could not be mailed now")


def _ledger(dag_id: str, run_id: str, task_id: str | None, link: str) -> Any:
    from hooks.postgres import database  # noqa: PLC0415 - heavy, and no DAG file needs it to be parsed
    from include.platform.alert_ledger import About, AlertLedger  # noqa: PLC0415 - as above

    return AlertLedger(database("almanac_db"), About(dag_id, run_id, task_id, link))
