"""### Run NIFYA's scheduled jobs

Every minute, and as soon as the database says that jobs came in: due rows of `scheduled_jobs` are claimed until none
is left and run by their type, `process-subscription` or `send-digest-emails`. A recurring job's end, good or bad, and
the row of its next run are one transaction. Digests that the jobs made, or that an earlier run could not send, go out
in every run. `job_id` lets one job that waits run now; a recurring one keeps its next time.

**Touches** `scheduled_jobs`, `queue_audit`, and what the jobs touch: `notifications`, `subscription_processing`,
`parser_breakers`, `digests`, `users`, `email_batches`, `email_attempts`, `mail_pauses` in `nifya_db`. Asks the
gazettes' parsers through `nifya_boe` and `nifya_doga`, sends mail through `nifya_email`.

**If it fails** nothing is lost: what a killed run held is taken back after two minutes without a heartbeat. A job that
failed has its reason in `error`; it was tried three times, 60 and 300 s apart, unless another try could not help. The
console's page of scheduled jobs shows each with its history and runs it again. Rows with `recurrence_ended` have no
next run, and say why; of those that ended unasked the operators are told. *Mail waits*: the digests go out by
themselves when the provider is back. *Left alone* means that a parser failed five times in a row and is asked again
after a minute.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, ledger, open_run
from almanac.triggers import Notified
from include.nifya import ZONE, scheduled_jobs

# Named once: a second Asset of this name without the watcher would delete the watcher.
WATCHER = AssetWatcher("nifya_scheduled_jobs", Notified("nifya_db", "nifya_scheduled_jobs"))
DUE = Asset("nifya_scheduled_jobs", watchers=[WATCHER])


def outside(context):
    from hooks.email import email_provider  # noqa: PLC0415 - kept out of the parse
    from hooks.gazettes import gazettes  # noqa: PLC0415 - as above

    return scheduled_jobs.Outside(gazettes(), email_provider("nifya_email"), ledger(context))


@dag(
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("* * * * *", timezone=str(ZONE)), assets=[DUE]
    ),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="nifya", priority="HIGH"),
    params=run_params(
        job_id=Param(
            None,
            type=["null", "string"],
            format="uuid",
            description="The id of a job that waits and is to run now. Empty: what is due.",
        )
    ),
    tags=["nifya", "pool:nifya", "on-failure:wait"],
    doc_md=__doc__,
)
def nifya_scheduled_jobs():
    @task.short_circuit
    def check_run(**context):
        return begin(context, scheduled_jobs, outside(context))

    @task
    def take_back_lost(**context):
        with open_run(context, scheduled_jobs) as run:
            scheduled_jobs.take_back_lost(run, outside(context))
            return dict(run.counts)

    @task
    def run_due_jobs(taken_back, **context):  # noqa: ARG001 - shows what it follows
        with open_run(context, scheduled_jobs) as run:
            scheduled_jobs.run_due_jobs(run, outside(context))
            return dict(run.counts)

    @task
    def send_digests(made, **context):  # noqa: ARG001 - shows what it follows
        with open_run(context, scheduled_jobs) as run:
            scheduled_jobs.send_digests(run, outside(context))
            return dict(run.counts)

    @task
    def tell_failing(sent, **context):  # noqa: ARG001 - shows what the summary follows
        with open_run(context, scheduled_jobs) as run:
            scheduled_jobs.tell_failing(run, outside(context))
        return end(context, scheduled_jobs)

    check_run() >> (taken_back := take_back_lost())
    tell_failing(send_digests(run_due_jobs(taken_back)))


nifya_scheduled_jobs()
