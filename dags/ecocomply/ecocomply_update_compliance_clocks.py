"""### Count the days that compliance clocks have left

Every night at 00:01 UTC, each running clock gets its days left, its criticality (red up to 7 days, amber up to 30) and
its status anew. Then people are reminded of each clock that has crossed one of its marks: of the most urgent one, once.

**Touches** `compliance_clocks_universal` and `notifications` in `ecocomply_db`. Nothing leaves the database; the
notifications go out by `ecocomply_notification_delivery`.

**If it fails** the days are of yesterday until it is run again; reminders are kept with their clocks, chunk by chunk.
Clear the failed task or trigger the DAG again: a clock that is right is not written, a mark is told once.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, update_compliance_clocks
from include.ecocomply.job_types import DELAYS

NOTHING = update_compliance_clocks.Outside()


@dag(
    schedule=CronTriggerTimetable("1 0 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS),
    default_args=work(pool="compliance-clocks", priority="NORMAL", delays=DELAYS),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        site_id=optional_id("Empty: every site."),
        module_id=optional_id("Empty: every module."),
        batch_size=Param(1000, type="integer", minimum=1, maximum=1000, description="Clocks of a chunk."),
    ),
    tags=["ecocomply", "pool:compliance-clocks", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_update_compliance_clocks():
    @task.short_circuit
    def check_run(**context):
        return begin(context, update_compliance_clocks, NOTHING)

    @task
    def recalculate_clocks(**context):
        with open_run(context, update_compliance_clocks) as run:
            update_compliance_clocks.recalculate_clocks(run, NOTHING)
            return dict(run.counts)

    @task
    def send_reminders(recalculated, **context):  # noqa: ARG001 - shows the order
        with open_run(context, update_compliance_clocks) as run:
            update_compliance_clocks.send_reminders(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(reminded, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, update_compliance_clocks)

    check_run() >> (recalculated := recalculate_clocks())
    report_run(send_reminders(recalculated))


ecocomply_update_compliance_clocks()
