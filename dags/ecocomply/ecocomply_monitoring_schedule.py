"""### Keep obligations' due dates, deadlines and statuses

Every hour, on the hour, each obligation with a frequency gets its next due date (the base date plus whole periods, the
first after the last completed deadline), a schedule, and its deadlines up to 90 days ahead. Where its frequency or base
date has changed, the former dates ahead become NOT_APPLICABLE. Then statuses follow the
dates: due soon from 7 days before, overdue from the day after. `ecocomply_deadline_alert` runs after it.

`force_recalculate` has no effect: every run reckons everything anew, and writes what differs.

**Touches** `obligations`, `schedules`, `deadlines` and, for obligations whose dates can't be reckoned, `audit_logs` in
`ecocomply_db`. Nothing leaves the database.

**If it fails** dates and statuses are those of the last run; every chunk commits on its own. Clear the failed task or
trigger the DAG again: what is right is not written. An obligation counted as `failed` is named in `audit_logs`
(`JOB_ROW_ERROR`) once a day, with the reason: mostly it has no base date, which a person has to add.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.assets import DEADLINES_SCHEDULED
from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, monitoring_schedule
from include.ecocomply.job_types import DELAYS

NOTHING = monitoring_schedule.Outside()


@dag(
    schedule=CronTriggerTimetable("0 * * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=300),
    default_args=work(pool="monitoring-schedule", priority="NORMAL", delays=DELAYS, timeout=300),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        site_id=optional_id("Empty: every site."),
        force_recalculate=Param(
            False,  # noqa: FBT003 - a Param's default is its first argument
            type="boolean",
            description="No effect: every run reckons all anew.",
        ),
    ),
    tags=["ecocomply", "pool:monitoring-schedule", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_monitoring_schedule():
    @task.short_circuit
    def check_run(**context):
        return begin(context, monitoring_schedule, NOTHING)

    @task
    def schedule_obligations(**context):
        with open_run(context, monitoring_schedule) as run:
            monitoring_schedule.schedule_obligations(run, NOTHING)
            return dict(run.counts)

    @task
    def update_statuses(scheduled, **context):  # noqa: ARG001 - shows the order
        with open_run(context, monitoring_schedule) as run:
            monitoring_schedule.update_statuses(run, NOTHING)
            return dict(run.counts)

    @task(outlets=[DEADLINES_SCHEDULED])
    def update_schedules(updated, **context):  # noqa: ARG001 - shows the order
        with open_run(context, monitoring_schedule) as run:
            monitoring_schedule.update_schedules(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(updated, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, monitoring_schedule)

    check_run() >> (scheduled := schedule_obligations())
    report_run(update_schedules(update_statuses(scheduled)))


ecocomply_monitoring_schedule()
