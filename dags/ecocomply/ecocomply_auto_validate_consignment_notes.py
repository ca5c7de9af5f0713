"""### Check consignment notes before they are submitted

Every five minutes, each consignment note that is new or has changed is checked by its company's rules: carrier's
licence, quantity, storage, EWC code, destination, and conditions of the company's own. It becomes `PASSED`,
`PASSED_WITH_WARNINGS` or `FAILED`; who wrote a note that failed is told why.

**Touches** `consignment_notes`, `validation_executions` and `notifications` in `ecocomply_db`. Nothing leaves the
database; the notifications go out by `ecocomply_notification_delivery`.

**If it fails** notes wait as `NOT_VALIDATED`, and the next run takes them. A rule that can't be evaluated fails its
notes, and its reason stands in their `pre_validation_errors`: its company has to mend it, and then change the notes or
set them back to `NOT_VALIDATED`. Clear the failed task or trigger the DAG again: what is checked is left alone.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, auto_validate_consignment_notes
from include.ecocomply.job_types import DELAYS

NOTHING = auto_validate_consignment_notes.Outside()


@dag(
    schedule=CronTriggerTimetable("*/5 * * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=300),
    default_args=work(pool="validation-processing", priority="NORMAL", delays=DELAYS, timeout=300),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        batch_size=Param(50, type="integer", minimum=1, maximum=1000, description="Notes of a chunk."),
    ),
    tags=["ecocomply", "pool:validation-processing", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_auto_validate_consignment_notes():
    @task.short_circuit
    def check_run(**context):
        return begin(context, auto_validate_consignment_notes, NOTHING)

    @task
    def validate_notes(**context):
        with open_run(context, auto_validate_consignment_notes) as run:
            auto_validate_consignment_notes.validate_notes(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(validated, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, auto_validate_consignment_notes)

    check_run() >> (validated := validate_notes())
    report_run(validated)


ecocomply_auto_validate_consignment_notes()
