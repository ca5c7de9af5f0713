"""### Begin the renewal of permits

Every night at 01:00 UTC, each active permit, consent, registration or licence that expires within `advance_notice_days`
gets a renewal workflow, unless it has had one for that expiry date. Its owner is told, else the ADMINs.

**Touches** `permit_workflows` and `notifications` in `ecocomply_db`. Nothing leaves the database; the notifications go
out by `ecocomply_notification_delivery`.

**If it fails** each chunk has its workflows and notifications, or neither. Clear the failed task or trigger the DAG
again: a permit has one renewal for an expiry date, whoever made it.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, auto_create_renewal_workflows
from include.ecocomply.job_types import DELAYS

NOTHING = auto_create_renewal_workflows.Outside()


@dag(
    schedule=CronTriggerTimetable("0 1 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(timeout=300, delays=DELAYS),
    default_args=work(pool="permit-workflows", priority="NORMAL", timeout=300, delays=DELAYS),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        advance_notice_days=Param(
            90, type="integer", minimum=0, maximum=3650, description="Days before the expiry date."
        ),
    ),
    tags=["ecocomply", "pool:permit-workflows", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_auto_create_renewal_workflows():
    @task.short_circuit
    def check_run(**context):
        return begin(context, auto_create_renewal_workflows, NOTHING)

    @task
    def create_renewals(**context):
        with open_run(context, auto_create_renewal_workflows) as run:
            auto_create_renewal_workflows.create_renewals(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(created, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, auto_create_renewal_workflows)

    created = create_renewals()
    check_run() >> created
    report_run(created)


ecocomply_auto_create_renewal_workflows()
