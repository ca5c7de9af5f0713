"""### Tell of regulators that have not answered in time

Every day at 09:00 UTC, the owner of each permit whose workflow is under review beyond the regulator's deadline is told,
else the ADMINs; after seven days all ADMINs as well, and as urgent. Each workflow has a note of each day it was told.

**Touches** `permit_workflows` and `notifications` in `ecocomply_db`. Nothing leaves the database; the notifications go
out by `ecocomply_notification_delivery`.

**If it fails** each chunk has its notes and notifications, or neither. Clear the failed task or trigger the DAG again:
a workflow is told of once a day.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, check_regulator_response_deadlines
from include.ecocomply.job_types import DELAYS

NOTHING = check_regulator_response_deadlines.Outside()
TWO_ATTEMPTS = DELAYS[:1]


@dag(
    schedule=CronTriggerTimetable("0 9 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(timeout=120, delays=TWO_ATTEMPTS),
    default_args=work(pool="permit-workflows", priority="NORMAL", timeout=120, delays=TWO_ATTEMPTS),
    params=run_params(company_id=optional_id("Empty: every company.")),
    tags=["ecocomply", "pool:permit-workflows", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_check_regulator_response_deadlines():
    @task.short_circuit
    def check_run(**context):
        return begin(context, check_regulator_response_deadlines, NOTHING)

    @task
    def alert_overdue_responses(**context):
        with open_run(context, check_regulator_response_deadlines) as run:
            check_regulator_response_deadlines.alert_overdue_responses(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(alerted, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, check_regulator_response_deadlines)

    alerted = alert_overdue_responses()
    check_run() >> alerted
    report_run(alerted)


ecocomply_check_regulator_response_deadlines()
