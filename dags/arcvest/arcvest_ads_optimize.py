"""### Let the application adjust its advertisements

Every day at 12:00 UTC the application's endpoint `/api/cron/ads-optimize` is called, which changes bids and budgets.
A call bears the schedule's slot as its Idempotency-Key, and `sync_slots` remembers each slot that has succeeded:
neither a repeated nor a manual run calls it again.

**Touches** `sync_slots` in `arcvest_db`; calls `arcvest_app` with the bearer secret of that connection.

**If it fails** with "it is not called again by itself", the call went out and nobody knows whether it was done (no
answer, a page, or nothing that says what was done): the slot has `outcome_unknown`, and no run calls it again. Look at
the advertisements or ask the application; docs/operations.md has a statement for a call that was done, and one for a
call that was not, after which you clear the task. A killed task calls once more under the same key, which the
application does once. Every other failure is tried again under the same key; 401 or 403 means that our secret in
`arcvest_app` is wrong.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, ledger, open_run
from include.arcvest import ads_optimize


def outside(context):
    from hooks.application import application  # noqa: PLC0415 - kept out of the parse

    return ads_optimize.Outside(application("arcvest_app"), ledger(context))


@dag(
    schedule=CronTriggerTimetable("0 12 * * *", timezone="UTC"),
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="arcvest", priority="LOW"),
    params=run_params(),
    tags=["arcvest", "pool:arcvest", "on-failure:call"],
    doc_md=__doc__,
)
def arcvest_ads_optimize():
    @task.short_circuit
    def check_run(**context):
        return begin(context, ads_optimize, outside(context))

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def claim_slot(**context):
        with open_run(context, ads_optimize) as run:
            return ads_optimize.claim_slot(run, outside(context))

    @task
    def call_application(claimed, **context):
        with open_run(context, ads_optimize, claimed) as run:
            ads_optimize.call_application(run, outside(context))
            return dict(run.counts)

    @task(trigger_rule="none_failed")
    def report_run(called, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, ads_optimize)

    check_run() >> (claimed := claim_slot())
    report_run(call_application(claimed))


arcvest_ads_optimize()
