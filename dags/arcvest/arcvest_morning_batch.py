"""### Enqueue the morning batch

Every day at 06:30 in Chicago, one row of `job_queue` for each of `news_scan`, `email_scan`, `bloomberg_scan`,
`score_ideas` and `select_daily` (6 ideas). They share a `correlation_id`: within a batch a job waits while one of a
higher priority is pending or processing. A batch is enqueued once per day and type; `job_batches` remembers, also when
the queue's rows are long deleted.

**Touches** `job_queue`, `job_batches` in `arcvest_db`. Nothing leaves the database; the worker does the jobs.

**If it fails** the whole batch is enqueued or none of it. Read the error of `enqueue_jobs`, then clear the failed task
or trigger the DAG again: what is enqueued is left alone. A missed day: trigger it with that day's `as_of`.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, open_run
from include.arcvest import ZONE, morning_batch

NOTHING = morning_batch.Outside()


@dag(
    schedule=CronTriggerTimetable("30 6 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="arcvest", priority="NORMAL"),
    params=run_params(),
    tags=["arcvest", "pool:arcvest", "on-failure:rerun"],
    doc_md=__doc__,
)
def arcvest_morning_batch():
    @task.short_circuit
    def check_run(**context):
        return begin(context, morning_batch, NOTHING)

    @task
    def enqueue_jobs(**context):
        with open_run(context, morning_batch) as run:
            morning_batch.enqueue_jobs(run, NOTHING)
            return dict(run.counts)

    @task
    def report_batch(enqueued, **context):  # noqa: ARG001 - shows what the summary follows
        with open_run(context, morning_batch) as run:
            morning_batch.report_batch(run, NOTHING)
        return end(context, morning_batch)

    check_run() >> (enqueued := enqueue_jobs())
    report_batch(enqueued)


arcvest_morning_batch()
