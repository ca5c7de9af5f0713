"""### Process one subscription

Started by a person or an application with a `subscription_id`: what the subscription's gazette published since its
last success becomes notifications, each address once. What is planned is processed by `nifya_scheduled_jobs`.

**Touches** `notifications`, `subscription_processing`, `parser_breakers` in `nifya_db`; asks the parser of the
subscription's type through `nifya_boe` or `nifya_doga`.

**If it fails** the status in `subscription_processing` says why, and nothing is lost: the next run looks from the last
success on. *Not found*, *inactive* or *no parser*: mend the subscription, or don't ask for it. *HTTP 5xx* or *no whole
answer*: the gazette is out of reach; *left alone* means that it failed five times in a row just now and is asked again
after a minute. The Test button of its connection asks it. Clear the failed task or trigger the DAG again.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, ledger, open_run
from include.nifya import ZONE, subscription_processing


def outside(context):
    from hooks.gazettes import gazettes  # noqa: PLC0415 - kept out of the parse

    return subscription_processing.Outside(gazettes(), ledger(context))


@dag(
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="nifya", priority="NORMAL"),
    params=run_params(
        subscription_id=Param(type="string", format="uuid", description="The subscription to process."),
    ),
    tags=["nifya", "pool:nifya", "on-failure:rerun"],
    doc_md=__doc__,
)
def nifya_subscription_processing():
    @task.short_circuit
    def check_run(**context):
        return begin(context, subscription_processing, outside(context))

    @task
    def process_subscriptions(**context):
        with open_run(context, subscription_processing) as run:
            subscription_processing.process_subscriptions(run, outside(context))
            return dict(run.counts)

    @task
    def report_run(processed, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, subscription_processing)

    check_run() >> (processed := process_subscriptions())
    report_run(processed)


nifya_subscription_processing()
