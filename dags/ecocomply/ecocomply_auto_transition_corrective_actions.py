"""### Move corrective actions on when all their items are done

Every hour, a corrective action in its `ACTION` phase whose items are all completed goes on to `RESOLUTION`, and who
made it is told so. Cancelled items count for nothing; an action without a completed item stays where it is.

**Touches** `corrective_actions` and `notifications` in `ecocomply_db`. Nothing leaves the database; the notifications
go out by `ecocomply_notification_delivery`.

**If it fails** the actions that were not reached stay in their phase until the next hour's run. An action and the word
of it are written together. Clear the failed task or trigger the DAG again: what has moved on is left alone.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, auto_transition_corrective_actions
from include.ecocomply.job_types import DELAYS

NOTHING = auto_transition_corrective_actions.Outside()


@dag(
    schedule=CronTriggerTimetable("0 * * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS[:1], timeout=120),
    default_args=work(pool="corrective-actions", priority="NORMAL", delays=DELAYS[:1], timeout=120),
    params=run_params(company_id=optional_id("Empty: every company.")),
    tags=["ecocomply", "pool:corrective-actions", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_auto_transition_corrective_actions():
    @task.short_circuit
    def check_run(**context):
        return begin(context, auto_transition_corrective_actions, NOTHING)

    @task
    def transition_actions(**context):
        with open_run(context, auto_transition_corrective_actions) as run:
            auto_transition_corrective_actions.transition_actions(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(transitioned, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, auto_transition_corrective_actions)

    check_run() >> (transitioned := transition_actions())
    report_run(transitioned)


ecocomply_auto_transition_corrective_actions()
