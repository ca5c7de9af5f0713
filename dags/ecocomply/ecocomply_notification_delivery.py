"""### Deliver notifications

Every minute, and at once when some are added: mail, SMS and push messages go out, the most urgent first, then the
oldest; what is for the application is shown there. Off is CANCELLED, a digest holds what is LOW or NORMAL, and what
was refused three times, 1 and 5 minutes apart, is FAILED and shown in the application. Up to 50 a second go out by a
channel (extra `per_second` of its connection); what a run has no time for, the next one sends.

**Touches** `notifications`, `email_batches`, `email_attempts`, `delivery_pauses`, `push_subscriptions` in
`ecocomply_db`; sends through `ecocomply_email`, `ecocomply_sms` and `ecocomply_push`; `ecocomply_links` signs links.

**If it fails** nothing is lost or sent twice: claims are committed before the sending. A provider that is out of reach
does not fail the run: its channel waits, and the operators are told once; press *Test* on its connection. *The key that
signs links*: mend `ecocomply_links`. What nobody knows the outcome of has `outcome_unknown` and does not go again by
itself: docs/operations.md has what a person may decide. `status_reason` says of every row why it was sent, or not.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, ledger, open_run
from almanac.triggers import Notified
from include.ecocomply import ZONE, notification_delivery
from include.ecocomply.job_types import DELAYS

# Named once: a second Asset of this name without the watcher would delete the watcher.
WATCHER = AssetWatcher(
    notification_delivery.CHANNEL, Notified("ecocomply_listen_db", "ecocomply_notifications")
)
ADDED = Asset("ecocomply_notifications", watchers=[WATCHER])
SECONDS = 80  # that a channel sends for: three of them end within the task's time


def outside(context):
    from hooks.notifications import notification_providers  # noqa: PLC0415 - kept out of the parse

    return notification_delivery.Outside(*notification_providers(SECONDS), ledger(context))


@dag(
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("* * * * *", timezone=str(ZONE)), assets=[ADDED]
    ),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=300),
    default_args=work(pool="notification-delivery", priority="HIGH", delays=DELAYS, timeout=300),
    params=run_params(notification_id=optional_id("Of one that is due. Empty: all that are.")),
    tags=["ecocomply", "pool:notification-delivery", "on-failure:wait"],
    doc_md=__doc__,
)
def ecocomply_notification_delivery():
    @task.short_circuit
    def check_run(**context):
        return begin(context, notification_delivery, outside(context))

    @task
    def settle_without_provider(**context):
        with open_run(context, notification_delivery) as run:
            notification_delivery.settle_without_provider(run, outside(context))
            return dict(run.counts)

    @task
    def claim_due(settled, **context):  # noqa: ARG001 - shows what it follows
        with open_run(context, notification_delivery) as run:
            notification_delivery.claim_due(run, outside(context))

    @task
    def send_claimed(**context):
        with open_run(context, notification_delivery) as run:
            notification_delivery.send_claimed(run, outside(context))
            return dict(run.counts)

    @task
    def show_failed(sent, **context):  # noqa: ARG001 - shows what it follows
        with open_run(context, notification_delivery) as run:
            notification_delivery.show_failed(run, outside(context))

    @task
    def report_run(**context):
        return end(context, notification_delivery)

    check_run() >> (settled := settle_without_provider())
    claim_due(settled) >> (sent := send_claimed())
    show_failed(sent) >> report_run()


ecocomply_notification_delivery()
