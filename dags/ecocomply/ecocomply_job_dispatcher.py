"""### Start the jobs that EcoComply asks for

Every minute, and as soon as the database says that a row of `background_jobs` is due: every waiting row that is due
and has no live run starts its DAG, with the payload as params; the most urgent first, companies in turn, then the
oldest. The run's id, `job__<row>`, stands in the row's `dag_run_id`. A row that can never be (no such job, another
company's, a param that the DAG refuses) ends as failed with the reason. `job_id` starts one that waits before its time.

**Touches** `background_jobs`, `dead_letter_queue`, `notifications`, `audit_logs`, `queue_audit` in `ecocomply_db`, and
starts runs of EcoComply's DAGs. Listens through `ecocomply_listen_db`.

**If it fails** nothing is lost: the next run, a minute later, starts what waits, and no row twice. Look at the log for
what does not answer, the database or Airflow itself. *Row failed … not found* means that the DAG is not there or can't
be read; its rows wait until it is. A run that is queued and does not begin waits for a slot of its pool, or its DAG is
paused.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, ledger, open_run
from almanac.triggers import Notified
from hooks.airflow_runs import TaskSdkRuns
from include.ecocomply import ZONE, job_dispatcher

DELAYS = (10,)
# Named once: a second Asset of this name without the watcher would delete the watcher.
WATCHER = AssetWatcher(
    "ecocomply_background_jobs", Notified("ecocomply_listen_db", "ecocomply_background_jobs")
)
DUE = Asset("ecocomply_background_jobs", watchers=[WATCHER])


def outside(context):
    return job_dispatcher.Outside(TaskSdkRuns(), ledger(context))


@dag(
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("* * * * *", timezone=str(ZONE)), assets=[DUE]
    ),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS),
    default_args=work(pool="platform", priority="HIGH", delays=DELAYS),
    params=run_params(job_id=optional_id("A job that waits and is to start now. Empty: what is due.")),
    tags=["ecocomply", "pool:platform", "on-failure:wait"],
    doc_md=__doc__,
)
def ecocomply_job_dispatcher():
    @task.short_circuit
    def check_run(**context):
        return begin(context, job_dispatcher, outside(context))

    @task
    def start_due_jobs(**context):
        with open_run(context, job_dispatcher) as run:
            job_dispatcher.start_due_jobs(run, outside(context))
            return dict(run.counts)

    @task
    def tell_operators(started, **context):  # noqa: ARG001 - shows what the summary follows
        with open_run(context, job_dispatcher) as run:
            job_dispatcher.tell_operators(run, outside(context))
        return end(context, job_dispatcher)

    check_run() >> (started := start_due_jobs())
    tell_operators(started)


ecocomply_job_dispatcher()
