"""### Send the mail that is due

Every 15 minutes: due rows of `email_log` are settled (session ended: `cancelled`; a second copy: `duplicate`), the
oldest `batch_limit` of the rest are rendered and claimed, and the claims are sent in batches. What is claimed goes
out once, under one key, byte for byte as claimed, however often the run is killed.

**Touches** `email_log`, `email_batches`, `email_attempts`, `email_frames`, `jobs_state` in `clearpath_db`; sends mail
through `clearpath_email`.

**If it fails** nothing is lost or sent twice; the next run goes on where this one stopped. State `deferred` means
that the provider is out of reach or asked to wait; no row loses an attempt by that. The mail log in the console
says of every row why it was or wasn't sent. Rows marked "outcome unknown" need a person: ask the provider whether
the message went out, then run the statement that the mail's own page in **ClearPath → Mail log** has.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, ledger, open_run
from include.clearpath import ZONE, email_queue_dispatch


def outside(context):
    from hooks.email import email_provider  # noqa: PLC0415 - kept out of the parse

    return email_queue_dispatch.Outside(email_provider("clearpath_email"), ledger(context))


@dag(
    schedule=CronTriggerTimetable("*/15 * * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="clearpath", priority="HIGH"),
    params=run_params(
        batch_limit=Param(
            50, type="integer", minimum=1, maximum=100_000, description="Most mails attempted a run."
        ),
    ),
    tags=["clearpath", "pool:clearpath", "on-failure:wait"],
    doc_md=__doc__,
)
def clearpath_email_queue_dispatch():
    @task.short_circuit
    def check_run(**context):
        return begin(context, email_queue_dispatch, outside(context))

    @task
    def settle_unsendable(**context):
        with open_run(context, email_queue_dispatch) as run:
            email_queue_dispatch.settle_unsendable(run, outside(context))
            return dict(run.counts)

    @task
    def claim_due(settled, **context):  # noqa: ARG001 - shows what it follows
        with open_run(context, email_queue_dispatch) as run:
            email_queue_dispatch.claim_due(run, outside(context))

    @task
    def send_claimed(**context):
        with open_run(context, email_queue_dispatch) as run:
            email_queue_dispatch.send_claimed(run, outside(context))
            return dict(run.counts)

    @task
    def check_queue(sent, **context):  # noqa: ARG001 - shows what the summary follows
        with open_run(context, email_queue_dispatch) as run:
            email_queue_dispatch.check_queue(run, outside(context))
        return end(context, email_queue_dispatch)

    check_run() >> (settled := settle_unsendable())
    claim_due(settled) >> (sent := send_claimed())
    check_queue(sent)


clearpath_email_queue_dispatch()
