"""### Clear away EcoComply's old dead letters and jobs

Every day at 05:00 UTC: dead letters that were resolved 30 days ago (`retention_days`) move to `audit_logs`, where they
stay; then jobs that ended 90 days ago go, with their trail. A letter that nobody has decided on stays for ever, and
keeps its job.

**Touches** `dead_letter_queue`, `background_jobs`, `queue_audit` and `audit_logs` in `ecocomply_db`.

**If it fails** the tables keep more than they need, and nothing else; each thousand rows are a transaction of their
own, so what was moved stays moved. Clear the failed task, or leave it to tomorrow's run.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, dead_letter_retention

DELAYS = (10,)
NOTHING = dead_letter_retention.Outside()


@dag(
    schedule=CronTriggerTimetable("0 5 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS),
    default_args=work(pool="platform", priority="LOW", delays=DELAYS),
    params=run_params(
        retention_days=Param(
            dead_letter_retention.RETENTION_DAYS,
            type="integer",
            minimum=0,
            maximum=3650,
            description="Days that a dead letter stays after it was resolved.",
        ),
    ),
    tags=["ecocomply", "pool:platform", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_dead_letter_retention():
    @task.short_circuit
    def check_run(**context):
        return begin(context, dead_letter_retention, NOTHING)

    @task
    def archive_letters(**context):
        with open_run(context, dead_letter_retention) as run:
            dead_letter_retention.archive_letters(run, NOTHING)
            return dict(run.counts)

    @task
    def retire_jobs(archived, **context):  # noqa: ARG001 - shows what the summary follows
        with open_run(context, dead_letter_retention) as run:
            dead_letter_retention.retire_jobs(run, NOTHING)
        return end(context, dead_letter_retention)

    check_run() >> (archived := archive_letters())
    retire_jobs(archived)


ecocomply_dead_letter_retention()
