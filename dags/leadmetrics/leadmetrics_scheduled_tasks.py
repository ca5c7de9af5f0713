"""### Run the tasks that are due

Every 15 minutes, and as soon as the database says that tasks came in: due rows of `scheduled_task` are claimed in
chunks of `max_tasks` until none is left, and each becomes a notification or is skipped because its registration has
gone on. Notifications then go into the queue `notifications__email` where the connection `leadmetrics_redis` exists,
and out as mail through `leadmetrics_email` where it does not. Each goes out once, however often the run is killed.

**Touches** `scheduled_task`, `notification_outbox`, `notification_attempts`, `notification_pause`, `queue_audit` in
`leadmetrics_db`; reads `registration_session`. Adds jobs to BullMQ, or sends mail.

**If it fails** nothing is lost or sent twice: a task that a killed run held is due again after two minutes without a
heartbeat, at most three times. Read the error: a wrong setting is named there, and nothing was claimed. State
`deferred` means that Redis or the provider is out of reach; what waits goes out with the next run. A task that failed
stays failed, with its reason in `errorMessage`; a repeat is a new row. Notifications in status `unknown` need a person:
find out whether they went out; docs/operations.md has a statement for either.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, ledger, open_run
from almanac.triggers import Notified
from include.leadmetrics import ZONE, scheduled_tasks

# Named once: a second Asset of this name without the watcher would delete the watcher.
DUE = Asset(
    "leadmetrics_scheduled_tasks",
    watchers=[
        AssetWatcher("leadmetrics_scheduled_tasks", Notified("leadmetrics_db", "leadmetrics_scheduled_tasks"))
    ],
)


def outside(context):
    from hooks.email import email_provider  # noqa: PLC0415 - kept out of the parse
    from hooks.notification_queue import notification_queue  # noqa: PLC0415 - as above

    queue = notification_queue("leadmetrics_redis")
    mail = None if queue else email_provider("leadmetrics_email")
    return scheduled_tasks.Outside(queue, mail, ledger(context))


@dag(
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("*/15 * * * *", timezone=str(ZONE)), assets=[DUE]
    ),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="leadmetrics", priority="NORMAL"),
    params=run_params(
        max_tasks=Param(
            scheduled_tasks.MAX_TASKS,
            type=["null", "integer"],
            minimum=1,
            maximum=1_000,
            description="Tasks claimed at a time; a run takes all.",
        ),
    ),
    tags=["leadmetrics", "pool:leadmetrics", "on-failure:wait"],
    doc_md=__doc__,
)
def leadmetrics_scheduled_tasks():
    @task.short_circuit
    def check_run(**context):
        return begin(context, scheduled_tasks, outside(context))

    @task
    def run_due_tasks(**context):
        with open_run(context, scheduled_tasks) as run:
            scheduled_tasks.run_due_tasks(run, outside(context))

    @task
    def send_notifications(**context):
        with open_run(context, scheduled_tasks) as run:
            scheduled_tasks.send_notifications(run, outside(context))
            return dict(run.counts)

    @task
    def report_queue(sent, **context):  # noqa: ARG001 - shows what the summary follows
        with open_run(context, scheduled_tasks) as run:
            scheduled_tasks.report_queue(run, outside(context))
        return end(context, scheduled_tasks)

    check_run() >> run_due_tasks() >> (sent := send_notifications())
    report_queue(sent)


leadmetrics_scheduled_tasks()
