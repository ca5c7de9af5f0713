"""### Tell of evidence that is about to expire

Every night at 02:00 UTC, who uploaded an item of evidence and who is assigned to its obligations, else the site's
managers, are told 30, 14, 7 and 1 days before it expires, once each; of marks that were missed, only of the most
urgent. From 7 days on it is HIGH.

**Touches** `notifications` in `ecocomply_db`. Nothing leaves the database; the notifications go out by
`ecocomply_notification_delivery`.

**If it fails** nobody was told twice, and who was not is told by the next run, while the evidence is still valid. Clear
the failed task or trigger the DAG again. `without_recipient` counts items that nobody looks after.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, evidence_expiry_tracking
from include.ecocomply.job_types import DELAYS

NOTHING = evidence_expiry_tracking.Outside()


@dag(
    schedule=CronTriggerTimetable("0 2 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=300),
    default_args=work(pool="evidence-tracking", priority="NORMAL", delays=DELAYS, timeout=300),
    params=run_params(),
    tags=["ecocomply", "pool:evidence-tracking", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_evidence_expiry_tracking():
    @task.short_circuit
    def check_run(**context):
        return begin(context, evidence_expiry_tracking, NOTHING)

    @task
    def track_expiry(**context):
        with open_run(context, evidence_expiry_tracking) as run:
            evidence_expiry_tracking.track_expiry(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(tracked, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, evidence_expiry_tracking)

    check_run() >> (tracked := track_expiry())
    report_run(tracked)


ecocomply_evidence_expiry_tracking()
