"""### Remind of evidence that is missing

Every day at 09:00 UTC, who looks after an obligation that needs evidence, is due within 7 days and has none yet is
reminded by mail; again each day until there is some, it is done, or it is overdue. Evidence that was deleted, archived
or has expired does not count; evidence that waits for its approval does.

**Touches** `notifications` in `ecocomply_db`. Nothing leaves the database; the mails go out by
`ecocomply_notification_delivery`.

**If it fails** who was reminded is not reminded twice. Clear the failed task or trigger the DAG again on the same day;
the next day's run reminds of what is due then. `without_recipient` counts obligations that nobody looks after.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, evidence_reminder
from include.ecocomply.job_types import DELAYS

NOTHING = evidence_reminder.Outside()


@dag(
    schedule=CronTriggerTimetable("0 9 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=120),
    default_args=work(pool="evidence-reminders", priority="HIGH", delays=DELAYS, timeout=120),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        site_id=optional_id("Empty: every site."),
    ),
    tags=["ecocomply", "pool:evidence-reminders", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_evidence_reminder():
    @task.short_circuit
    def check_run(**context):
        return begin(context, evidence_reminder, NOTHING)

    @task
    def send_reminders(**context):
        with open_run(context, evidence_reminder) as run:
            evidence_reminder.send_reminders(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(reminded, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, evidence_reminder)

    check_run() >> (reminded := send_reminders())
    report_run(reminded)


ecocomply_evidence_reminder()
