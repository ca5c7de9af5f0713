"""### Find the modules that a company's permits speak of

Every six hours, the text of each permit that has changed since it was last looked through is searched for the keywords
of every other module. What is found is noted, unless the company has the module; its owners are offered a module once.

**Touches** `documents.scanned_at`, `cross_sell_triggers` and `notifications` in `ecocomply_db`. Nothing leaves the
database; the notifications go out by `ecocomply_notification_delivery`.

**If it fails** the documents that were not reached are looked through next time. A document, what was found in it and
the offer are written together. Clear the failed task or trigger the DAG again. After a change of keywords, trigger it
with `process_recent_only` off: that looks through every permit again, and notes only what is new.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, cross_sell_trigger_detection
from include.ecocomply.job_types import DELAYS

NOTHING = cross_sell_trigger_detection.Outside()


@dag(
    schedule=CronTriggerTimetable("0 */6 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=300),
    default_args=work(pool="cross-sell-triggers", priority="LOW", delays=DELAYS, timeout=300),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        document_id=optional_id("Empty: every document."),
        process_recent_only=Param(
            True,  # noqa: FBT003 - a Param's default is its first argument
            type="boolean",
            description="Only documents that have changed since they were last looked through.",
        ),
    ),
    tags=["ecocomply", "pool:cross-sell-triggers", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_cross_sell_trigger_detection():
    @task.short_circuit
    def check_run(**context):
        return begin(context, cross_sell_trigger_detection, NOTHING)

    @task
    def scan_documents(**context):
        with open_run(context, cross_sell_trigger_detection) as run:
            cross_sell_trigger_detection.scan_documents(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(scanned, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, cross_sell_trigger_detection)

    check_run() >> (scanned := scan_documents())
    report_run(scanned)


ecocomply_cross_sell_trigger_detection()
