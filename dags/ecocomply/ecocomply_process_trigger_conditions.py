"""### Look at the conditions that an event concerns

Started by a row in `background_jobs`, or by a person: the event `event_type` with its `event_data` is stored for
`company_id`, and the company's conditional rules that listen to it are evaluated at once; those that are met make their
schedule or deadline. With `event_id` alone it looks at that event; with nothing, at every event that waits.

**Touches** `recurrence_events`, `schedules`, `deadlines`, `recurrence_trigger_rules` and
`recurrence_trigger_executions` in `ecocomply_db`. Nothing leaves the database.

**If it fails** the event is stored, and `ecocomply_execute_pending_recurrence_triggers` looks at it within the hour. An
event without a company, or whose `event_id` is another company's, is refused: the application has to send it anew.
Clear the failed task or trigger the DAG again: the event is stored once, and a rule fires by it once.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, process_trigger_conditions
from include.ecocomply.job_types import DELAYS

NOTHING = process_trigger_conditions.Outside()


@dag(
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS[:1], timeout=60),
    default_args=work(pool="trigger-execution", priority="NORMAL", delays=DELAYS[:1], timeout=60),
    params=run_params(
        event_type=Param(
            None,
            type=["null", "string"],
            minLength=1,
            maxLength=200,
            description="What has happened. Empty: look at the events that wait.",
        ),
        event_data=Param(None, type=["null", "object"], description="What the conditions read."),
        company_id=optional_id("Whose event it is; without an event: empty for every company."),
        event_id=optional_id("What the application calls the event. Empty: the job's own id."),
    ),
    tags=["ecocomply", "pool:trigger-execution", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_process_trigger_conditions():
    @task.short_circuit
    def check_run(**context):
        return begin(context, process_trigger_conditions, NOTHING)

    @task
    def store_event(**context):
        with open_run(context, process_trigger_conditions) as run:
            return process_trigger_conditions.store_event(run, NOTHING)

    @task
    def evaluate_conditions(stored, **context):
        with open_run(context, process_trigger_conditions, stored) as run:
            process_trigger_conditions.evaluate_conditions(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(evaluated, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, process_trigger_conditions)

    check_run() >> (stored := store_event())
    report_run(evaluate_conditions(stored))


ecocomply_process_trigger_conditions()
