"""### Hold runs of generators against the limits

Every hour, each approved run that nobody has looked at is held against its generator's limits, by the hours of the year
and of the month that it was in, however long ago. From 90 % on the entry is flagged, a clock runs until that year or
month ends, and managers, admins and owners are told, once for each kind of exceedance and window.

**Touches** `runtime_monitoring`, `compliance_clocks_universal` and `notifications` in `ecocomply_db`. Nothing leaves
the database; the notifications go out by `ecocomply_notification_delivery`.

**If it fails** what was checked is stamped with `exceedance_checked_at`, chunk by chunk, and the rest waits for the
next hour. Clear the failed task or trigger the DAG again: no run is looked at twice.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, check_runtime_exceedances
from include.ecocomply.job_types import DELAYS

NOTHING = check_runtime_exceedances.Outside()
TIMEOUT = 300


@dag(
    schedule=CronTriggerTimetable("0 * * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=TIMEOUT),
    default_args=work(pool="runtime-monitoring", priority="HIGH", delays=DELAYS, timeout=TIMEOUT),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        generator_id=optional_id("Empty: every generator."),
        batch_size=Param(100, type="integer", minimum=1, maximum=1000, description="Runs of a chunk."),
    ),
    tags=["ecocomply", "pool:runtime-monitoring", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_check_runtime_exceedances():
    @task.short_circuit
    def check_run(**context):
        return begin(context, check_runtime_exceedances, NOTHING)

    @task
    def check_entries(**context):
        with open_run(context, check_runtime_exceedances) as run:
            check_runtime_exceedances.check_entries(run, NOTHING)
            return dict(run.counts)

    @task
    def complete_clocks(checked, **context):  # noqa: ARG001 - shows the order
        with open_run(context, check_runtime_exceedances) as run:
            check_runtime_exceedances.complete_clocks(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(completed, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, check_runtime_exceedances)

    check_run() >> (checked := check_entries())
    report_run(complete_clocks(checked))


ecocomply_check_runtime_exceedances()
