"""### Let the application fetch its analytics

Every day at 08:00 UTC the application's endpoint `/api/cron/analytics-sync` is called. A call bears the schedule's
slot as its Idempotency-Key, and `sync_slots` remembers each slot that has succeeded: neither a repeated nor a manual
run calls it again.

**Touches** `sync_slots` in `arcvest_db`; calls `arcvest_app` with the bearer secret of that connection.

**If it fails** a call that got no answer is made again under the same key, after 60 and 300 s; the application does
the work of a key once. An error with 401 or 403 means that our secret is wrong: check the connection `arcvest_app`.
Clear the failed task or trigger the DAG again with the slot's `as_of`.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, ledger, open_run
from include.arcvest import analytics_sync


def outside(context):
    from hooks.application import application  # noqa: PLC0415 - kept out of the parse

    return analytics_sync.Outside(application("arcvest_app"), ledger(context))


@dag(
    schedule=CronTriggerTimetable("0 8 * * *", timezone="UTC"),
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="arcvest", priority="LOW"),
    params=run_params(),
    tags=["arcvest", "pool:arcvest", "on-failure:rerun"],
    doc_md=__doc__,
)
def arcvest_analytics_sync():
    @task.short_circuit
    def check_run(**context):
        return begin(context, analytics_sync, outside(context))

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def claim_slot(**context):
        with open_run(context, analytics_sync) as run:
            return analytics_sync.claim_slot(run, outside(context))

    @task
    def call_application(claimed, **context):
        with open_run(context, analytics_sync, claimed) as run:
            analytics_sync.call_application(run, outside(context))
            return dict(run.counts)

    @task(trigger_rule="none_failed")
    def report_run(called, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, analytics_sync)

    check_run() >> (claimed := claim_slot())
    report_run(call_application(claimed))


arcvest_analytics_sync()
