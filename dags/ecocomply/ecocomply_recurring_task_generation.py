"""### Make the tasks that come back

Every night at 03:00 UTC, each active definition whose next date has come gets a task for that date, and one for each
period that was missed since, up to today, assigned to its default assignee. Then its next date is the first of its
series that is still to come. A definition without a next date begins today.

**Touches** `tasks` and `recurring_tasks` in `ecocomply_db`. Nothing leaves the database.

**If it fails** every chunk commits on its own, tasks with their definition's next date. Clear the failed task or
trigger the DAG again: a definition has one task a due date. One that is counted as `failed` keeps its date and is tried
again by the next run; the log names it with the reason.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, recurring_task_generation
from include.ecocomply.job_types import DELAYS

NOTHING = recurring_task_generation.Outside()


@dag(
    schedule=CronTriggerTimetable("0 3 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=300),
    default_args=work(pool="recurring-tasks", priority="NORMAL", delays=DELAYS, timeout=300),
    params=run_params(),
    tags=["ecocomply", "pool:recurring-tasks", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_recurring_task_generation():
    @task.short_circuit
    def check_run(**context):
        return begin(context, recurring_task_generation, NOTHING)

    @task
    def generate_tasks(**context):
        with open_run(context, recurring_task_generation) as run:
            recurring_task_generation.generate_tasks(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(generated, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, recurring_task_generation)

    check_run() >> (generated := generate_tasks())
    report_run(generated)


ecocomply_recurring_task_generation()
