"""### Find breaches and tell of them

Every 15 minutes, each deadline that has passed undone is told to the assignee, the MANAGERs, ADMINs and OWNERs, once;
and each deadline whose SLA target has passed undone is marked as breached, and told to the same people. Neither waits
for another job to call it overdue. A date that is moved, and passes too, is told anew.

**Touches** `deadlines` and `notifications` in `ecocomply_db`. Nothing leaves the database; the notifications go out by
`ecocomply_notification_delivery`.

**If it fails** each chunk has its marks and its notifications, or neither. Nothing need be done: the next run finds
what was left, unless the same error comes again; then read it in the failed task. `failed` counts single rows.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, detect_breaches_and_alerts
from include.ecocomply.job_types import DELAYS

NOTHING = detect_breaches_and_alerts.Outside()


@dag(
    schedule=CronTriggerTimetable("*/15 * * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(timeout=300, delays=DELAYS),
    default_args=work(pool="sla-breach-alerts", priority="HIGH", timeout=300, delays=DELAYS),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        batch_size=Param(500, type="integer", minimum=1, maximum=1000, description="Deadlines of a chunk."),
    ),
    tags=["ecocomply", "pool:sla-breach-alerts", "on-failure:wait"],
    doc_md=__doc__,
)
def ecocomply_detect_breaches_and_alerts():
    @task.short_circuit
    def check_run(**context):
        return begin(context, detect_breaches_and_alerts, NOTHING)

    @task
    def detect_breaches(**context):
        with open_run(context, detect_breaches_and_alerts) as run:
            detect_breaches_and_alerts.detect_breaches(run, NOTHING)
            return dict(run.counts)

    @task
    def detect_sla_misses(detected, **context):  # noqa: ARG001 - shows the order
        with open_run(context, detect_breaches_and_alerts) as run:
            detect_breaches_and_alerts.detect_sla_misses(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(missed, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, detect_breaches_and_alerts)

    check_run() >> (detected := detect_breaches())
    report_run(detect_sla_misses(detected))


ecocomply_detect_breaches_and_alerts()
