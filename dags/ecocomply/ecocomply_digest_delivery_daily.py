"""### Send the daily digests

Every morning at 07:00 UTC, everybody for whom something waits that is wanted in a daily digest gets one mail of
it, grouped by type with counts: mail of LOW and NORMAL priority, however old. One digest a person and day.

**Touches** `digests`, `notifications`, `email_batches`, `email_attempts`, `delivery_pauses` in `ecocomply_db`; sends
mail through `ecocomply_email`.

**If it fails** no digest is lost or sent twice: claims are committed before the sending. *Out of reach* or *mail
waits*: the provider is down or its quota used up; press *Test* on `ecocomply_email`, and clear the failed task when it
is back. What stood in a digest that failed is undelivered and stands in the next one; `last_error` of `digests` says
why. A digest with `outcome_unknown` may have arrived: docs/operations.md says what to do.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, ledger, open_run
from include.ecocomply import ZONE, digest_delivery_daily
from include.ecocomply.job_types import DELAYS

SECONDS = 3000  # of sending, so that the task ends within its time


def outside(context):
    from hooks.email import email_provider  # noqa: PLC0415 - kept out of the parse

    return digest_delivery_daily.Outside(email_provider("ecocomply_email", SECONDS), ledger(context))


@dag(
    schedule=CronTriggerTimetable("0 7 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=3600),
    default_args=work(pool="digest-delivery", priority="NORMAL", delays=DELAYS, timeout=3600),
    params=run_params(),
    tags=["ecocomply", "pool:digest-delivery", "on-failure:wait"],
    doc_md=__doc__,
)
def ecocomply_digest_delivery_daily():
    @task.short_circuit
    def check_run(**context):
        return begin(context, digest_delivery_daily, outside(context))

    @task
    def make_digests(**context):
        with open_run(context, digest_delivery_daily) as run:
            digest_delivery_daily.make_digests(run, outside(context))
            return dict(run.counts)

    @task
    def claim_digests(made, **context):  # noqa: ARG001 - shows what it follows
        with open_run(context, digest_delivery_daily) as run:
            digest_delivery_daily.claim_digests(run, outside(context))

    @task
    def send_digests(**context):
        with open_run(context, digest_delivery_daily) as run:
            digest_delivery_daily.send_digests(run, outside(context))
            return dict(run.counts)

    @task
    def report_run(sent, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, digest_delivery_daily)

    check_run() >> (made := make_digests())
    claim_digests(made) >> (sent := send_digests())
    report_run(sent)


ecocomply_digest_delivery_daily()
