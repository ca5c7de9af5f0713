"""### Bring the consultants' dashboards up to date

Every night at 02:00 UTC: assignments whose client was deleted, or whose consultant has lost the role, become
`INACTIVE`. Then what each consultant sees of each client is counted anew: what is overdue, what is due in 30 days, open
gaps, the score of the last 90 days, and what happened last. Consultants get a summary. `sync_type` makes it one of both
alone, without the summary.

**Touches** `consultant_client_assignments`, `consultant_dashboard` and `notifications` in `ecocomply_db`. Nothing
leaves the database; the notifications go out by `ecocomply_notification_delivery`.

**If it fails** the consultants who were not reached see yesterday's figures (`synced_at`). Clear the failed task or
trigger the DAG again: all figures are counted anew, a summary goes out once a day. A consultant who fails alone is in
the log, with the reason.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, consultant_client_sync
from include.ecocomply.job_types import DELAYS

NOTHING = consultant_client_sync.Outside()


@dag(
    schedule=CronTriggerTimetable("0 2 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS[:1]),
    default_args=work(pool="consultant-sync", priority="LOW", delays=DELAYS[:1]),
    params=run_params(
        consultant_id=optional_id("Empty: every consultant."),
        sync_type=Param(
            "FULL",
            type="string",
            enum=["ASSIGNMENTS", "DASHBOARD", "FULL"],
            description="FULL: both, and summaries.",
        ),
    ),
    tags=["ecocomply", "pool:consultant-sync", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_consultant_client_sync():
    @task.short_circuit
    def check_run(**context):
        return begin(context, consultant_client_sync, NOTHING)

    @task
    def sync_assignments(**context):
        with open_run(context, consultant_client_sync) as run:
            consultant_client_sync.sync_assignments(run, NOTHING)
            return dict(run.counts)

    @task
    def sync_dashboard(assigned, **context):  # noqa: ARG001 - shows the order
        with open_run(context, consultant_client_sync) as run:
            consultant_client_sync.sync_dashboard(run, NOTHING)
            return dict(run.counts)

    @task
    def send_summaries(synced, **context):  # noqa: ARG001 - shows the order
        with open_run(context, consultant_client_sync) as run:
            consultant_client_sync.send_summaries(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(sent, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, consultant_client_sync)

    check_run() >> (assigned := sync_assignments())
    report_run(send_summaries(sync_dashboard(assigned)))


ecocomply_consultant_client_sync()
