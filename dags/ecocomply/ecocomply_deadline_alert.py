"""### Warn of deadlines that draw near

Every 6 hours, and after each run of `ecocomply_monitoring_schedule`: who looks after an obligation is warned 7, 3 and 1
days before its deadline and on the day itself, once each; of marks that were missed, only of the most urgent. Then open
deadlines become due soon from 3 days before, and overdue from the day after.

`trigger_source` has no effect: it says who asked.

**Touches** `notifications` and `deadlines` in `ecocomply_db`. Nothing leaves the database; the notifications go out by
`ecocomply_notification_delivery`.

**If it fails** nobody was warned twice, and who was not is warned by the next run, as long as the day lasts. Clear the
failed task or trigger the DAG again. `without_recipient` counts deadlines that nobody looks after: give the obligation
an assignee, or the company an active owner.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable, Param, dag, task

from almanac.assets import DEADLINES_SCHEDULED
from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, deadline_alert
from include.ecocomply.job_types import DELAYS

NOTHING = deadline_alert.Outside()


@dag(
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("0 */6 * * *", timezone=str(ZONE)), assets=[DEADLINES_SCHEDULED]
    ),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=120),
    default_args=work(pool="deadline-alerts", priority="HIGH", delays=DELAYS, timeout=120),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        site_id=optional_id("Empty: every site."),
        trigger_source=Param(
            None,
            type=["null", "string"],
            enum=[None, "CRON", "MONITORING_JOB"],
            description="Who asked; no effect.",
        ),
    ),
    tags=["ecocomply", "pool:deadline-alerts", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_deadline_alert():
    @task.short_circuit
    def check_run(**context):
        return begin(context, deadline_alert, NOTHING)

    @task
    def send_alerts(**context):
        with open_run(context, deadline_alert) as run:
            deadline_alert.send_alerts(run, NOTHING)
            return dict(run.counts)

    @task
    def update_deadline_statuses(alerted, **context):  # noqa: ARG001 - shows the order
        with open_run(context, deadline_alert) as run:
            deadline_alert.update_deadline_statuses(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(updated, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, deadline_alert)

    check_run() >> (alerted := send_alerts())
    report_run(update_deadline_statuses(alerted))


ecocomply_deadline_alert()
