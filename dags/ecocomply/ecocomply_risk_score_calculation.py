"""### Score the risk of every site

Every day at 04:00 UTC, each site gets a score from 0 to 100, by what is overdue (40 %), gaps in its evidence (25 %),
open escalations (20 %) and the deadlines missed in the last 90 days (15 %), and a band: LOW, MEDIUM, HIGH or CRITICAL.
The site's managers are told when the band is worse than the last time.

**Touches** `risk_scores` and `notifications` in `ecocomply_db`. Nothing leaves the database; the notifications go out
by `ecocomply_notification_delivery`.

**If it fails** today has no scores yet. Clear the failed task or trigger the DAG again: a site has one row a day, which
is written anew only if the score is another one, and each band is told of once a day.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import CronTriggerTimetable, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from include.ecocomply import ZONE, risk_score_calculation
from include.ecocomply.job_types import DELAYS

NOTHING = risk_score_calculation.Outside()
TIMEOUT = 900


@dag(
    schedule=CronTriggerTimetable("0 4 * * *", timezone=str(ZONE)),
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(delays=DELAYS, timeout=TIMEOUT),
    default_args=work(pool="risk-scoring", priority="NORMAL", delays=DELAYS, timeout=TIMEOUT),
    params=run_params(
        company_id=optional_id("Empty: every company."),
        site_id=optional_id("Empty: every site."),
    ),
    tags=["ecocomply", "pool:risk-scoring", "on-failure:rerun"],
    doc_md=__doc__,
)
def ecocomply_risk_score_calculation():
    @task.short_circuit
    def check_run(**context):
        return begin(context, risk_score_calculation, NOTHING)

    @task
    def calculate_scores(**context):
        with open_run(context, risk_score_calculation) as run:
            risk_score_calculation.calculate_scores(run, NOTHING)
            return dict(run.counts)

    @task
    def send_alerts(calculated, **context):  # noqa: ARG001 - shows the order
        with open_run(context, risk_score_calculation) as run:
            risk_score_calculation.send_alerts(run, NOTHING)
            return dict(run.counts)

    @task
    def report_run(alerted, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, risk_score_calculation)

    check_run() >> (calculated := calculate_scores())
    report_run(send_alerts(calculated))


ecocomply_risk_score_calculation()
