"""### Tell operators of C-NRPP certifications that end

Every night at 02:00 in Edmonton: contractors whose certification ends within `window_days`, or has ended, are put
on a ledger once a calendar month; what the ledger holds unsent goes to ADMIN_ALERT_EMAIL. Who has expired becomes
`inactive`, whether an alert was due or not.

**Touches** `contractors`, `cnrpp_alerts`, `email_batches`, `email_attempts`, `jobs_state` in `clearpath_db`; sends
mail through `clearpath_email`.

**If it fails** no alert is lost or sent twice: claims are committed before the sending and go out under the same
key again. State `deferred` means that the provider is out of reach; the next run goes on by itself. Is
ADMIN_ALERT_EMAIL empty, the alerts wait until it is set. Clear the failed task or trigger the DAG again.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, ledger, open_run
from include.clearpath import ZONE, cnrpp_expiry_alert


def outside(context):
    from hooks.email import email_provider  # noqa: PLC0415 - kept out of the parse

    return cnrpp_expiry_alert.Outside(email_provider("clearpath_email"), ledger(context))


@dag(
    schedule=CronTriggerTimetable("0 2 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="clearpath", priority="NORMAL"),
    params=run_params(
        window_days=Param(
            60, type="integer", minimum=0, maximum=366, description="Days before the expiry date."
        ),
    ),
    tags=["clearpath", "pool:clearpath", "on-failure:rerun"],
    doc_md=__doc__,
)
def clearpath_cnrpp_expiry_alert():
    @task.short_circuit
    def check_run(**context):
        return begin(context, cnrpp_expiry_alert, outside(context))

    @task
    def settle_contractors(**context):
        with open_run(context, cnrpp_expiry_alert) as run:
            cnrpp_expiry_alert.settle_contractors(run, outside(context))
            return dict(run.counts)

    @task
    def claim_alerts(settled, **context):  # noqa: ARG001 - shows what it follows
        with open_run(context, cnrpp_expiry_alert) as run:
            cnrpp_expiry_alert.claim_alerts(run, outside(context))

    @task
    def send_alerts(**context):
        with open_run(context, cnrpp_expiry_alert) as run:
            cnrpp_expiry_alert.send_alerts(run, outside(context))
            return dict(run.counts)

    @task
    def note_run(sent, **context):  # noqa: ARG001 - shows what the summary follows
        with open_run(context, cnrpp_expiry_alert) as run:
            cnrpp_expiry_alert.note_run(run, outside(context))
        return end(context, cnrpp_expiry_alert)

    check_run() >> (settled := settle_contractors())
    claim_alerts(settled) >> (sent := send_alerts())
    note_run(sent)


clearpath_cnrpp_expiry_alert()
