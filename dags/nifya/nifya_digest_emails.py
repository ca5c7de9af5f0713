"""### Send the digests of one hour

Started by a person or an application with an `hour_of_day`, 9 or "09": users who chose that local hour get one mail
with all that is new, if the hour has passed since their latest digest. What is planned is sent by
`nifya_scheduled_jobs`. Digests that an earlier run could not send go out too.

**Touches** `digests`, `notifications`, `users`, `email_batches`, `email_attempts`, `mail_pauses` in `nifya_db`; sends
mail through `nifya_email`.

**If it fails** no digest is lost or sent twice: claims are committed before the sending and go out under the same key
again. *Out of reach* or *mail waits*: the provider is down or its quota used up; trigger the DAG again when it is back.
A digest that was refused three times is `abandoned`, one whose outcome nobody knows has `outcome_unknown`; both have
the reason in `last_error`, and wait for a person: docs/operations.md has the statements.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, ledger, open_run
from include.nifya import ZONE, digest_emails


def outside(context):
    from hooks.email import email_provider  # noqa: PLC0415 - kept out of the parse

    return digest_emails.Outside(email_provider("nifya_email"), ledger(context))


@dag(
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="nifya", priority="NORMAL"),
    params=run_params(
        hour_of_day=Param(
            type=["integer", "string"],
            minimum=0,
            maximum=23,
            pattern="^(0?[0-9]|1[0-9]|2[0-3])$",
            description='The local hour that users chose: 9 or "09".',
        ),
    ),
    tags=["nifya", "pool:nifya", "on-failure:rerun"],
    doc_md=__doc__,
)
def nifya_digest_emails():
    @task.short_circuit
    def check_run(**context):
        return begin(context, digest_emails, outside(context))

    @task
    def make_digests(**context):
        with open_run(context, digest_emails) as run:
            digest_emails.make_digests(run, outside(context))
            return dict(run.counts)

    @task
    def claim_digests(made, **context):  # noqa: ARG001 - shows what it follows
        with open_run(context, digest_emails) as run:
            digest_emails.claim_digests(run, outside(context))

    @task
    def send_digests(**context):
        with open_run(context, digest_emails) as run:
            digest_emails.send_digests(run, outside(context))
            return dict(run.counts)

    @task
    def report_run(sent, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, digest_emails)

    check_run() >> (made := make_digests())
    claim_digests(made) >> (sent := send_digests())
    report_run(sent)


nifya_digest_emails()
