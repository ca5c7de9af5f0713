"""### Remind of permits that expire

Every day at 08:00 UTC, people are reminded by mail of each active document that has crossed one of `reminder_days`: of
the most urgent one, once for an expiry date. Beyond 30 days OWNERs and ADMINs, to 30 also the site's STAFF, to 7
everyone who is assigned to the site.

**Touches** `notifications` in `ecocomply_db`. Nothing leaves the database; the notifications go out by
`ecocomply_notification_delivery`.

**If it fails** what was reminded of stays so. Clear the failed task or trigger the DAG again, today or later: a mark
that was crossed meanwhile is not lost, and none is told twice.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, permit_renewal_reminder
from include.ecocomply.job_types import DELAYS

NOTHING = permit_renewal_reminder.Outside()
REMINDER_DAYS = Param(
    [90, 30, 7],
    type="array",
    items={"type": "integer", "minimum": 0, "maximum": 3650},
    minItems=1,
    maxItems=20,
    uniqueItems=True,
    description="Days before the expiry date.",
)


@dag(
    schedule=CronTriggerTimetable("0 8 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(timeout=300, delays=DELAYS),
    default_args=work(pool="deadline-alerts", priority="NORMAL", timeout=300, delays=DELAYS),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        site_id=optional_id("Empty: every site."),
        reminder_days=REMINDER_DAYS,
    ),
    tags=["ecocomply", "pool:deadline-alerts", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_permit_renewal_reminder():
    @task.short_circuit
    def check_run(**context):
        return begin(context, permit_renewal_reminder, NOTHING)

    @task
    def send_reminders(**context):
        with open_run(context, permit_renewal_reminder) as run:
            permit_renewal_reminder.send_reminders(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(reminded, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, permit_renewal_reminder)

    reminded = send_reminders()
    check_run() >> reminded
    report_run(reminded)


ecocomply_permit_renewal_reminder()
