"""### Ask managers to validate runs that were written down by hand

Every day at 10:00 UTC, the company's managers and admins are told of each generator with manual entries that have
waited for their validation for more than a day: how many they are, and since when. They are told again each day until
the entries are approved or rejected.

**Touches** `notifications` in `ecocomply_db`. Nothing leaves the database; the notifications go out by
`ecocomply_notification_delivery`.

**If it fails** managers are not told of some generators today. Clear the failed task or trigger the DAG again: each
generator is told of once a day.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, flag_pending_runtime_validations
from include.ecocomply.job_types import DELAYS

NOTHING = flag_pending_runtime_validations.Outside()
TIMEOUT = 120
ONCE_MORE = DELAYS[:1]


@dag(
    schedule=CronTriggerTimetable("0 10 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=ONCE_MORE, timeout=TIMEOUT),
    default_args=work(pool="runtime-monitoring", priority="NORMAL", delays=ONCE_MORE, timeout=TIMEOUT),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        pending_threshold_hours=Param(
            24, type="number", minimum=0, maximum=8760, description="Hours that an entry may wait."
        ),
    ),
    tags=["ecocomply", "pool:runtime-monitoring", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_flag_pending_runtime_validations():
    @task.short_circuit
    def check_run(**context):
        return begin(context, flag_pending_runtime_validations, NOTHING)

    @task
    def notify_managers(**context):
        with open_run(context, flag_pending_runtime_validations) as run:
            flag_pending_runtime_validations.notify_managers(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(notified, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, flag_pending_runtime_validations)

    check_run() >> (notified := notify_managers())
    report_run(notified)


ecocomply_flag_pending_runtime_validations()
