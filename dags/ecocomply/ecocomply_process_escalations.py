"""### Escalate what stays overdue

Every night at 00:30 UTC, each overdue deadline, or obligation that has no deadlines, goes up by one level at most:
after the days of its category's workflow, else of the company's, else after 7, 14, 21 and 30 days. Those whom the level
names are told, else OWNERs and ADMINs. An escalation of what is no longer overdue is resolved.

**Touches** `escalations` and `notifications` in `ecocomply_db`. Nothing leaves the database; the notifications go out
by `ecocomply_notification_delivery`.

**If it fails** each chunk has its escalations and notifications, or neither. Clear the failed task or trigger the DAG
again: a day gives one level, however many runs it has. `invalid_recipients` counts people whom a workflow names and who
have left.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, process_escalations
from include.ecocomply.job_types import DELAYS

NOTHING = process_escalations.Outside()


@dag(
    schedule=CronTriggerTimetable("30 0 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS),
    default_args=work(pool="escalation-processing", priority="HIGH", delays=DELAYS),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        obligation_category=Param(
            None, type=["null", "string"], minLength=1, maxLength=200, description="Empty: every category."
        ),
        batch_size=Param(500, type="integer", minimum=1, maximum=1000, description="Rows of a chunk."),
    ),
    tags=["ecocomply", "pool:escalation-processing", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_process_escalations():
    @task.short_circuit
    def check_run(**context):
        return begin(context, process_escalations, NOTHING)

    @task
    def resolve_escalations(**context):
        with open_run(context, process_escalations) as run:
            process_escalations.resolve_escalations(run, NOTHING)
            return dict(run.counts)

    @task
    def escalate_overdue(resolved, **context):  # noqa: ARG001 - shows the order
        with open_run(context, process_escalations) as run:
            process_escalations.escalate_overdue(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(escalated, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, process_escalations)

    check_run() >> (resolved := resolve_escalations())
    report_run(escalate_overdue(resolved))


ecocomply_process_escalations()
