"""### Find gaps in the evidence for deadlines ahead

Every 6 hours: open gaps that have their evidence are resolved, those that became graver are updated; then each deadline
of the next `look_ahead_days` without sufficient evidence gets a gap. Who is assigned to the obligation and the site's
managers are told of gaps that are new or graver, if HIGH or CRITICAL.

**Touches** `evidence_gaps` and `notifications` in `ecocomply_db`. Nothing leaves the database; the notifications go out
by `ecocomply_notification_delivery`.

**If it fails** gaps are those of the last run; each is kept with its notifications, chunk by chunk. Clear the failed
task or trigger the DAG again: a deadline has one open gap, and people are told of each degree once.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, evidence_gap_detection
from include.ecocomply.job_types import DELAYS

NOTHING = evidence_gap_detection.Outside()


@dag(
    schedule=CronTriggerTimetable("0 */6 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS),
    default_args=work(pool="evidence-tracking", priority="NORMAL", delays=DELAYS),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        look_ahead_days=Param(30, type="integer", minimum=0, maximum=365, description="Days ahead."),
    ),
    tags=["ecocomply", "pool:evidence-tracking", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_evidence_gap_detection():
    @task.short_circuit
    def check_run(**context):
        return begin(context, evidence_gap_detection, NOTHING)

    @task
    def review_gaps(**context):
        with open_run(context, evidence_gap_detection) as run:
            evidence_gap_detection.review_gaps(run, NOTHING)
            return dict(run.counts)

    @task
    def find_gaps(reviewed, **context):  # noqa: ARG001 - shows the order
        with open_run(context, evidence_gap_detection) as run:
            evidence_gap_detection.find_gaps(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(found, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, evidence_gap_detection)

    check_run() >> (reviewed := review_gaps())
    report_run(find_gaps(reviewed))


ecocomply_evidence_gap_detection()
