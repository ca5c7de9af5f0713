"""### Make the schedules and deadlines that rules ask for

Every hour, each company's rules that make schedules and deadlines are looked at: those by the calendar for every date
that has come, those that listen to events for every event that they have not fired by.

**Touches** `schedules`, `deadlines`, `recurrence_trigger_rules` and `recurrence_trigger_executions` in `ecocomply_db`.
Nothing leaves the database.

**If it fails** nothing is lost: dates that were missed and events that wait are made up for by the next run. A rule
that can't be evaluated is no failure of the run; its reason stands in `recurrence_trigger_executions`, and its company
has to mend it. Clear the failed task or trigger the DAG again: a rule fires once for a date or an event.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, execute_pending_recurrence_triggers
from include.ecocomply.job_types import DELAYS

NOTHING = execute_pending_recurrence_triggers.Outside()


@dag(
    schedule=CronTriggerTimetable("0 * * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=300),
    default_args=work(pool="trigger-execution", priority="NORMAL", delays=DELAYS, timeout=300),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        batch_size=Param(100, type="integer", minimum=1, maximum=1000, description="Rules of a chunk."),
    ),
    tags=["ecocomply", "pool:trigger-execution", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_execute_pending_recurrence_triggers():
    @task.short_circuit
    def check_run(**context):
        return begin(context, execute_pending_recurrence_triggers, NOTHING)

    @task
    def fire_scheduled_rules(**context):
        with open_run(context, execute_pending_recurrence_triggers) as run:
            execute_pending_recurrence_triggers.fire_scheduled_rules(run, NOTHING)
            return dict(run.counts)

    @task
    def fire_event_rules(scheduled, **context):  # noqa: ARG001 - shows the order
        with open_run(context, execute_pending_recurrence_triggers) as run:
            execute_pending_recurrence_triggers.fire_event_rules(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(fired, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, execute_pending_recurrence_triggers)

    check_run() >> (scheduled := fire_scheduled_rules())
    report_run(fire_event_rules(scheduled))


ecocomply_execute_pending_recurrence_triggers()
