"""### Fetch results from the lab

Every morning at 06:00 in Edmonton, if the Variable LAB_INTEGRATION_MODEL is `api`: results since the watermark are
fetched page by page and saved. A saved result completes its session, cancels its reminders, makes its certificate
and starts the rendering. What can't be saved is set aside with its reason and tried again by every poll.

**Touches** `results`, `test_sessions`, `email_log`, `certificates`, `lab_set_aside`, `jobs_state` in
`clearpath_db`; reads from `clearpath_lab`.

**If it fails** the watermark has not moved, so the next poll fetches the same results again and saves what is
missing. An error with the lab's HTTP status means that the lab is at fault, or our key (401, 403): check the
connection `clearpath_lab`. Clear the failed task or trigger the DAG again. Records set aside stand in the console.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, ledger, open_run
from include.clearpath import ZONE, lab_result_polling


def outside(context):
    from hooks.lab import lab  # noqa: PLC0415 - kept out of the parse

    return lab_result_polling.Outside(lab("clearpath_lab"), ledger(context))


@dag(
    schedule=CronTriggerTimetable("0 6 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="clearpath", priority="NORMAL"),
    params=run_params(
        since=Param(
            None,
            type=["null", "string"],
            format="date-time",
            description="Fetch from this instant on, instead of from the watermark; never moves that back.",
        ),
    ),
    tags=["clearpath", "pool:clearpath", "on-failure:rerun"],
    doc_md=__doc__,
)
def clearpath_lab_result_polling():
    @task.short_circuit
    def check_run(**context):
        return begin(context, lab_result_polling, outside(context))

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def check_model(**context):
        with open_run(context, lab_result_polling) as run:
            return lab_result_polling.check_model(run, outside(context))

    @task
    def fetch_results(**context):
        with open_run(context, lab_result_polling) as run:
            return lab_result_polling.fetch_results(run, outside(context))

    @task
    def retry_set_aside(fetched, **context):
        with open_run(context, lab_result_polling, fetched) as run:
            lab_result_polling.retry_set_aside(run, outside(context))

    @task
    def move_watermark(fetched, **context):
        with open_run(context, lab_result_polling, fetched) as run:
            lab_result_polling.move_watermark(run, outside(context))

    @task(trigger_rule="none_failed")
    def note_run(**context):
        with open_run(context, lab_result_polling) as run:
            lab_result_polling.note_run(run, outside(context))
        return end(context, lab_result_polling)

    check_run() >> check_model() >> (fetched := fetch_results())
    retry_set_aside(fetched) >> move_watermark(fetched) >> note_run()


clearpath_lab_result_polling()
