"""### Remind people of corrective actions' items

Every morning at 08:00 UTC, who is assigned to an open item hears of it: once from three days before its date, on the
day itself, and daily when it is overdue. Items of nobody go to the managers. What is more than seven days overdue,
managers and admins hear of too. Items of actions that are closed or cancelled are left out.

**Touches** `notifications` in `ecocomply_db`. Nothing leaves the database; the notifications go out by
`ecocomply_notification_delivery`.

**If it fails** some people have not been reminded yet. Clear the failed task or trigger the DAG again the same day: who
has been told of an item and day is not told again. A day that was missed altogether is not made up for by the next.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, monitor_corrective_action_items
from include.ecocomply.job_types import DELAYS

NOTHING = monitor_corrective_action_items.Outside()


@dag(
    schedule=CronTriggerTimetable("0 8 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=300),
    default_args=work(pool="corrective-actions", priority="NORMAL", delays=DELAYS, timeout=300),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        batch_size=Param(200, type="integer", minimum=1, maximum=1000, description="Items of a chunk."),
    ),
    tags=["ecocomply", "pool:corrective-actions", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_monitor_corrective_action_items():
    @task.short_circuit
    def check_run(**context):
        return begin(context, monitor_corrective_action_items, NOTHING)

    @task
    def send_reminders(**context):
        with open_run(context, monitor_corrective_action_items) as run:
            monitor_corrective_action_items.send_reminders(run, NOTHING)
            return dict(run.counts)

    @task
    def escalate_overdue_items(reminded, **context):  # noqa: ARG001 - shows the order
        with open_run(context, monitor_corrective_action_items) as run:
            monitor_corrective_action_items.escalate_overdue_items(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(escalated, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, monitor_corrective_action_items)

    check_run() >> (reminded := send_reminders())
    report_run(escalate_overdue_items(reminded))


ecocomply_monitor_corrective_action_items()
