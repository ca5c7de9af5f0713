"""### Expire certificates

Every night at 02:00 in Edmonton, valid certificates whose last valid day is over become `expired`. Their PDF is
flagged, not rendered: a download makes the one with the watermark.

**Touches** `certificates`, `jobs_state` in `clearpath_db`. Nothing leaves the database.

**If it fails** nothing is half done: every chunk commits on its own. Read the error of `expire_certificates`, then
clear the failed task or trigger the DAG again: what has expired is left alone. Rows counted as failed stayed as
they were and are tried again tomorrow; the log names each with its error.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, open_run
from include.clearpath import ZONE, certificate_expiry

NOTHING = certificate_expiry.Outside()


@dag(
    schedule=CronTriggerTimetable("0 2 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="clearpath", priority="NORMAL"),
    params=run_params(),
    tags=["clearpath", "pool:clearpath", "on-failure:rerun"],
    doc_md=__doc__,
)
def clearpath_certificate_expiry():
    @task.short_circuit
    def check_run(**context):
        return begin(context, certificate_expiry, NOTHING)

    @task
    def expire_certificates(**context):
        with open_run(context, certificate_expiry) as run:
            certificate_expiry.expire_certificates(run, NOTHING)
            return dict(run.counts)

    @task
    def note_run(expired, **context):  # noqa: ARG001 - shows what the summary follows
        with open_run(context, certificate_expiry) as run:
            certificate_expiry.note_run(run, NOTHING)
        return end(context, certificate_expiry)

    check_run() >> (expired := expire_certificates())
    note_run(expired)


clearpath_certificate_expiry()
