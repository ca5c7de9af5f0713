"""### Watch the hours that generators run

Every day at 07:00 UTC, each generator's hours of its year (from its anniversary, else from 1 January) and of the month
are summed up, and held against its limits. At 80, 90 and 100 % the company's managers, admins and owners are told: of
the highest threshold reached, once a window, of the year and of the month apart.

**Touches** `generators`, `notifications` and `audit_logs` in `ecocomply_db`. Nothing leaves the database; the
notifications go out by `ecocomply_notification_delivery`.

**If it fails** the hours are those of the last run, and alerts wait. Clear the failed task or trigger the DAG again:
what is right is not written, an alert is sent once. A generator with a limit that is none is in `audit_logs` as
`JOB_ROW_ERROR`; one without an annual limit is a warning in the log.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, run_hour_monitoring
from include.ecocomply.job_types import DELAYS

NOTHING = run_hour_monitoring.Outside()
TIMEOUT = 300


@dag(
    schedule=CronTriggerTimetable("0 7 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=TIMEOUT),
    default_args=work(pool="module-3-run-hours", priority="NORMAL", delays=DELAYS, timeout=TIMEOUT),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        generator_id=optional_id("Empty: every generator."),
        check_monthly=Param(True, type="boolean", description="Hold hours against the monthly limits."),  # noqa: FBT003 - a Param's default is its first argument
        check_annual=Param(True, type="boolean", description="Hold hours against the annual limits."),  # noqa: FBT003 - as above
    ),
    tags=["ecocomply", "pool:module-3-run-hours", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_run_hour_monitoring():
    @task.short_circuit
    def check_run(**context):
        return begin(context, run_hour_monitoring, NOTHING)

    @task
    def update_hours(**context):
        with open_run(context, run_hour_monitoring) as run:
            run_hour_monitoring.update_hours(run, NOTHING)
            return dict(run.counts)

    @task
    def alert_thresholds(updated, **context):  # noqa: ARG001 - shows the order
        with open_run(context, run_hour_monitoring) as run:
            run_hour_monitoring.alert_thresholds(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(alerted, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, run_hour_monitoring)

    check_run() >> (updated := update_hours())
    report_run(alert_thresholds(updated))


ecocomply_run_hour_monitoring()
