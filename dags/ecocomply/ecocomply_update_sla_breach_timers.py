"""### Count the hours of SLA breaches

Every hour, each deadline that has missed its SLA and is not completed gets the hours since then. At 12 hours the
assignee is told, at 24 the MANAGERs as well, at 48 the ADMINs as well: each once, and of several that were missed only
the highest.

**Touches** `deadlines` and `notifications` in `ecocomply_db`. Nothing leaves the database; the notifications go out
by `ecocomply_notification_delivery`. `ecocomply_detect_breaches_and_alerts` is what finds that an SLA was missed.

**If it fails** the hours are of the last run, and what was told stays told. Clear the failed task or wait for the next
hour: nothing is lost, and nothing is told twice.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, update_sla_breach_timers
from include.ecocomply.job_types import DELAYS

NOTHING = update_sla_breach_timers.Outside()


@dag(
    schedule=CronTriggerTimetable("0 * * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(timeout=300, delays=DELAYS),
    default_args=work(pool="sla-breach-alerts", priority="HIGH", timeout=300, delays=DELAYS),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        batch_size=Param(500, type="integer", minimum=1, maximum=1000, description="Deadlines of a chunk."),
    ),
    tags=["ecocomply", "pool:sla-breach-alerts", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_update_sla_breach_timers():
    @task.short_circuit
    def check_run(**context):
        return begin(context, update_sla_breach_timers, NOTHING)

    @task
    def update_breach_durations(**context):
        with open_run(context, update_sla_breach_timers) as run:
            update_sla_breach_timers.update_breach_durations(run, NOTHING)
            return dict(run.counts)

    @task
    def escalate_breaches(updated, **context):  # noqa: ARG001 - shows the order
        with open_run(context, update_sla_breach_timers) as run:
            update_sla_breach_timers.escalate_breaches(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(escalated, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, update_sla_breach_timers)

    check_run() >> (updated := update_breach_durations())
    report_run(escalate_breaches(updated))


ecocomply_update_sla_breach_timers()
