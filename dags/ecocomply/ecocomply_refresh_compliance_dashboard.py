"""### Refresh the dashboard of the compliance clocks

Every 15 minutes, the materialised view `compliance_clock_dashboard` is made to show the clocks as they are, beside
those who read it. `refresh_mode` FULL lets them wait; use it only if the view is damaged.

**Touches** `compliance_clock_dashboard` in `ecocomply_db`, by the function `refresh_compliance_dashboard`. Nothing
leaves the database.

**If it fails** the dashboard shows what it showed before; the next run refreshes all of it. *Took longer than*: the
database is overloaded, or the view has outgrown 50 seconds; a run more won't help. *Is empty though there are clocks*:
the view's owner needs the role `ecocomply_service`.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, refresh_compliance_dashboard
from include.ecocomply.job_types import DELAYS

NOTHING = refresh_compliance_dashboard.Outside()


@dag(
    schedule=CronTriggerTimetable("*/15 * * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS[:1], timeout=60),
    default_args=work(pool="dashboard-refresh", priority="LOW", delays=DELAYS[:1], timeout=60),
    params=run_params(
        refresh_mode=Param(
            "CONCURRENT",
            type="string",
            enum=["CONCURRENT", "FULL"],
            description="FULL: readers wait meanwhile.",
        ),
    ),
    tags=["ecocomply", "pool:dashboard-refresh", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_refresh_compliance_dashboard():
    @task.short_circuit
    def check_run(**context):
        return begin(context, refresh_compliance_dashboard, NOTHING)

    @task
    def refresh_dashboard(**context):
        with open_run(context, refresh_compliance_dashboard) as run:
            refresh_compliance_dashboard.refresh_dashboard(run, NOTHING)

    @task
    def verify_dashboard(refreshed, **context):  # noqa: ARG001 - shows the order
        with open_run(context, refresh_compliance_dashboard) as run:
            refresh_compliance_dashboard.verify_dashboard(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(verified, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, refresh_compliance_dashboard)

    check_run() >> (refreshed := refresh_dashboard())
    report_run(verify_dashboard(refreshed))


ecocomply_refresh_compliance_dashboard()
