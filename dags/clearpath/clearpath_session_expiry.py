"""### Expire abandoned test sessions

Every night at 02:00 in Edmonton, sessions whose expected completion date passed more than `grace_days` ago, and
which have no result, become `expired`; their queued mail is cancelled in the same transaction.

**Touches** `test_sessions`, `email_log`, `jobs_state` in `clearpath_db`. Nothing leaves the database.

**If it fails** nothing is half done: every chunk of sessions commits on its own. Read the error of
`expire_sessions`; a lost database connection has been tried three times by then. Clear the failed task or trigger
the DAG again: what has expired is left alone. Rows counted as failed stayed as they were and are tried again
tomorrow; the log names each with its error.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, open_run
from include.clearpath import ZONE, session_expiry

NOTHING = session_expiry.Outside()


@dag(
    schedule=CronTriggerTimetable("0 2 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="clearpath", priority="NORMAL"),
    params=run_params(
        grace_days=Param(
            90, type="integer", minimum=0, maximum=3650, description="Days past the expected completion date."
        ),
    ),
    tags=["clearpath", "pool:clearpath", "on-failure:rerun"],
    doc_md=__doc__,
)
def clearpath_session_expiry():
    @task.short_circuit
    def check_run(**context):
        return begin(context, session_expiry, NOTHING)

    @task
    def expire_sessions(**context):
        with open_run(context, session_expiry) as run:
            session_expiry.expire_sessions(run, NOTHING)
            return dict(run.counts)

    @task
    def note_run(expired, **context):  # noqa: ARG001 - shows what the summary follows
        with open_run(context, session_expiry) as run:
            session_expiry.note_run(run, NOTHING)
        return end(context, session_expiry)

    check_run() >> (expired := expire_sessions())
    note_run(expired)


clearpath_session_expiry()
