"""### Plan the samples of trade effluent

Every day at 06:00 UTC, each parameter of a consent in force gets the day of its next sample, by its frequency and the
public holidays of its site. Who works at the site is reminded of a sample that is due and not there: on its day, the
day after, and a week after that.

**Touches** `parameters`, `audit_logs` and `notifications` in `ecocomply_db`. Nothing leaves the database; the
notifications go out by `ecocomply_notification_delivery`.

**If it fails** the days are those of the last run. Clear the failed task or trigger the DAG again: a day that is right
is not written, a reminder is sent once. A parameter whose day could not be worked out is in `audit_logs` as
`JOB_ROW_ERROR`; it is sampled weekly until its site's `country_code` and `region`, or its frequency, are put right.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, sampling_schedule
from include.ecocomply.job_types import DELAYS

NOTHING = sampling_schedule.Outside()
TIMEOUT = 300


@dag(
    schedule=CronTriggerTimetable("0 6 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=TIMEOUT),
    default_args=work(pool="module-2-sampling", priority="NORMAL", delays=DELAYS, timeout=TIMEOUT),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        site_id=optional_id("Empty: every site."),
        parameter_id=optional_id("Empty: every parameter."),
        force_generate=Param(
            False,  # noqa: FBT003 - a Param's default is its first argument
            type="boolean",
            description="Changes nothing: every run works all days out anew.",
        ),
    ),
    tags=["ecocomply", "pool:module-2-sampling", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_sampling_schedule():
    @task.short_circuit
    def check_run(**context):
        return begin(context, sampling_schedule, NOTHING)

    @task
    def generate_schedule(**context):
        with open_run(context, sampling_schedule) as run:
            sampling_schedule.generate_schedule(run, NOTHING)
            return dict(run.counts)

    @task
    def send_reminders(generated, **context):  # noqa: ARG001 - shows the order
        with open_run(context, sampling_schedule) as run:
            sampling_schedule.send_reminders(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(reminded, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, sampling_schedule)

    check_run() >> (generated := generate_schedule())
    report_run(send_reminders(generated))


ecocomply_sampling_schedule()
