"""### Do what the job queue holds

Every 5 minutes, and at once when a job is enqueued: claims that nobody has been heard of for 10 minutes are taken back,
stuck ideas go back to `selected`, and due jobs are done, up to `slots` at a time. The run takes jobs and waits for more
until 240 s, and claims one only while the time left covers its type's limit; it is ended at 300 s. `process_pipeline`
belongs to `arcvest_content_pipeline`; types that are neither's are left to the application.

**Touches** `job_queue`, `idea_queue`, `scan_state`, `activity_log`, `queue_audit` in `arcvest_db`; reads feeds through
`arcvest_feeds` and mail through `arcvest_mailbox`.

**If it fails** no job is lost: what was claimed is taken back after 10 minutes without a heartbeat, and the next run
goes on. A job that fails is tried again after 30, 60, 120 and 240 s, then it is `failed` and `activity_log` has
`job_failed_permanently`. The console's page of the job queue says why, and lets a person have it tried again.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, open_run
from almanac.triggers import Notified
from include.arcvest import ZONE, queue_worker

# Named once: a second Asset of this name without the watcher would delete the watcher.
JOBS = Asset("arcvest_jobs", watchers=[AssetWatcher("arcvest_jobs", Notified("arcvest_db", "arcvest_jobs"))])


def outside():
    from hooks.bell import PostgresBell  # noqa: PLC0415 - kept out of the parse
    from hooks.feeds import feeds  # noqa: PLC0415 - as above
    from hooks.mailbox import mailbox  # noqa: PLC0415 - as above

    bell = PostgresBell("arcvest_db", "arcvest_jobs")
    return queue_worker.Outside(feeds("arcvest_feeds"), mailbox("arcvest_mailbox"), bell)


@dag(
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("*/5 * * * *", timezone=str(ZONE)), assets=[JOBS]
    ),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(timeout=300),
    default_args=work(pool="arcvest", priority="HIGH", timeout=300),
    params=run_params(
        slots=Param(
            queue_worker.SLOTS,
            type=["null", "integer"],
            minimum=1,
            maximum=queue_worker.SLOTS,
            description="Jobs that are done at a time.",
        ),
    ),
    tags=["arcvest", "pool:arcvest", "on-failure:wait"],
    doc_md=__doc__,
)
def arcvest_queue_worker():
    @task.short_circuit
    def check_run(**context):
        return begin(context, queue_worker, outside())

    @task
    def free_stuck(**context):
        with open_run(context, queue_worker) as run:
            queue_worker.free_stuck(run, outside())
            return dict(run.counts)

    @task
    def work_jobs(freed, **context):  # noqa: ARG001 - shows what it follows
        with open_run(context, queue_worker) as run:
            queue_worker.work_jobs(run, outside())
            return dict(run.counts)

    @task
    def report_queue(worked, **context):  # noqa: ARG001 - shows what the summary follows
        with open_run(context, queue_worker) as run:
            queue_worker.report_queue(run, outside())
        return end(context, queue_worker)

    check_run() >> (freed := free_stuck())
    report_queue(work_jobs(freed))


arcvest_queue_worker()
