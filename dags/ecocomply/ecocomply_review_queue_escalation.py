"""### Escalate what waits for review

Every four hours, each item of the review queue that has waited for 48, 96 or 168 hours (half of that, if the model may
have made it up) goes to that level: first the team leads are told, then the MANAGERs as well, then ADMINs and
compliance officers. An item goes up once in 24 hours at most.

**Touches** `review_queue_items`, `review_queue_escalation_history` and `notifications` in `ecocomply_db`. Nothing
leaves the database; the notifications go out by `ecocomply_notification_delivery`.

**If it fails** each chunk has its levels and notifications, or neither. Clear the failed task or wait for the next run:
an item reaches a level once.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, review_queue_escalation
from include.ecocomply.job_types import DELAYS

NOTHING = review_queue_escalation.Outside()


@dag(
    schedule=CronTriggerTimetable("0 */4 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(timeout=300, delays=DELAYS),
    default_args=work(pool="escalation-processing", priority="HIGH", timeout=300, delays=DELAYS),
    params=run_params(company_id=optional_id("Empty: every company.")),
    tags=["ecocomply", "pool:escalation-processing", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_review_queue_escalation():
    @task.short_circuit
    def check_run(**context):
        return begin(context, review_queue_escalation, NOTHING)

    @task
    def escalate_reviews(**context):
        with open_run(context, review_queue_escalation) as run:
            review_queue_escalation.escalate_reviews(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(escalated, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, review_queue_escalation)

    escalated = escalate_reviews()
    check_run() >> escalated
    report_run(escalated)


ecocomply_review_queue_escalation()
