"""### Look after EcoComply's running jobs

Every minute: a row of `background_jobs` whose run reached its time limit is closed as failed. One that has not been
heard of for five minutes, and has no task in Airflow that is running, queued or to be tried again, is marked STALE;
then it is due again after 2 or 4 seconds, or, without an attempt left, a dead letter.

**Touches** `background_jobs`, `dead_letter_queue`, `notifications`, `audit_logs`, `queue_audit` in `ecocomply_db`. Asks
Airflow how runs stand, and starts none: `ecocomply_job_dispatcher` does.

**If it fails** jobs that hang stay as they are until a later run, a minute away, succeeds; nothing else depends on it.
Look at the log for what does not answer, the database or Airflow itself. Many stale rows at once mean that workers
died: look at the scheduler, and at the memory of the machine.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, ledger, open_run
from hooks.airflow_runs import TaskSdkRuns
from include.ecocomply import ZONE, job_health

DELAYS = (10,)


def outside(context):
    return job_health.Outside(TaskSdkRuns(), ledger(context))


@dag(
    schedule=CronTriggerTimetable("* * * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS),
    default_args=work(pool="platform", priority="HIGH", delays=DELAYS),
    params=run_params(),
    tags=["ecocomply", "pool:platform", "on-failure:wait"],
    doc_md=__doc__,
)
def ecocomply_job_health():
    @task.short_circuit
    def check_run(**context):
        return begin(context, job_health, outside(context))

    @task
    def close_timed_out(**context):
        with open_run(context, job_health) as run:
            job_health.close_timed_out(run, outside(context))
            return dict(run.counts)

    @task
    def mark_stale(closed, **context):  # noqa: ARG001 - shows what it follows
        with open_run(context, job_health) as run:
            job_health.mark_stale(run, outside(context))
            return dict(run.counts)

    @task
    def recover_stale(marked, **context):  # noqa: ARG001 - shows what it follows
        with open_run(context, job_health) as run:
            job_health.recover_stale(run, outside(context))
            return dict(run.counts)

    @task
    def tell_operators(recovered, **context):  # noqa: ARG001 - shows what the summary follows
        with open_run(context, job_health) as run:
            job_health.tell_operators(run, outside(context))
        return end(context, job_health)

    check_run() >> (closed := close_timed_out())
    tell_operators(recover_stale(mark_stale(closed)))


ecocomply_job_health()
