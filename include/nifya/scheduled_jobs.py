"""The scheduler: due jobs run, each ends with the next one of its series; digests go out; failures are told."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from include.alerts import Alerts, RecordedAlerts
from include.effects import Effects
from include.errors import AlmanacError
from include.mail import MailProvider, RecordedMail
from include.nifya import digest_emails, job_runs, job_series, subscription_processing
from include.nifya.gazettes import Gazettes
from include.nifya.job_series import PACKAGE
from include.nifya.job_types import (
    PROCESS_SUBSCRIPTION,
    SEND_DIGEST_EMAILS,
    Handler,
    ProcessSubscription,
    SendDigestEmails,
)
from include.run import Run
from include.statements import statement

NAME = "scheduledJobs"
SETTINGS: dict[str, str | None] = {**subscription_processing.SETTINGS, **digest_emails.SETTINGS}
QUEUES: tuple[str, ...] = ("scheduled_jobs",)


class Outside(NamedTuple):
    """The gazettes' parsers, the mail provider, and the operators' ledger."""

    gazettes: Gazettes
    mail: MailProvider
    alerts: Alerts

    def in_preview(self, run: Run, effects: Effects) -> Outside:
        alerts = RecordedAlerts(self.alerts, effects, run.settings["ADMIN_ALERT_EMAIL"])
        with run.transaction() as tx:
            due = tx.rows(
                statement(PACKAGE, "subscriptions_of_due_jobs"),
                job_id=run.params.get("job_id"),
                not_after=run.due_limit,
            )
        read = subscription_processing.read_ahead(
            job_runs.as_of_now(run), self.gazettes, [row.id for row in due]
        )
        return Outside(read, RecordedMail(self.mail, effects), alerts)


def _process_subscriptions(
    run: Run, outside: Outside, datas: Sequence[ProcessSubscription]
) -> Sequence[AlmanacError | None]:
    return subscription_processing.handle(run, outside.gazettes, datas)


def _send_digests(
    run: Run,
    outside: Outside,  # noqa: ARG001 - a handler's form
    datas: Sequence[SendDigestEmails],
) -> Sequence[AlmanacError | None]:
    return digest_emails.handle(run, datas)


HANDLERS: Mapping[str, Handler] = {
    PROCESS_SUBSCRIPTION: _process_subscriptions,
    SEND_DIGEST_EMAILS: _send_digests,
}


def take_back_lost(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Take back the jobs of workers that have died; make the job `job_id` due, if one is named."""
    given = run.params.get("job_id")
    if given is not None:
        job_runs.make_due(run, uuid.UUID(given))
    job_runs.take_back(run)


def run_due_jobs(run: Run, outside: Outside) -> None:
    """Run all that is due by the database's clock; each job's end and what follows it are one transaction."""
    job_runs.run_due(run, outside, HANDLERS)


def send_digests(run: Run, outside: Outside) -> None:
    """Send the digests that wait: those that the jobs made, and what earlier runs could not send."""
    digest_emails.send_waiting(run, outside.mail, outside.alerts)


def tell_failing(run: Run, outside: Outside) -> None:
    """Tell the operators of jobs that failed three times in a row, and of series that ended unasked, each once."""
    job_series.tell_failing(run, outside.alerts)


STEPS = (take_back_lost, run_due_jobs, send_digests, tell_failing)
