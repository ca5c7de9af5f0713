"""A task that fails as it is told to.

**If it fails** a test wanted that.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Param, dag, task

from almanac.defaults import run_limit, work
from almanac.runs import ledger
from include.errors import BadInput, Outage, Transient

DELAYS = (2, 3)
SERVICE = "probe_service"


@dag(
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    dagrun_timeout=run_limit(delays=DELAYS, timeout=60),
    default_args=work(pool="platform", priority="HIGH", delays=DELAYS, timeout=60),
    params={"error": Param("none", enum=["none", "permanent", "transient", "outage"])},
)
def probe_errors():
    @task
    def fail(**context):
        match context["params"]["error"]:
            case "permanent":
                raise BadInput("probe: the value is no good")
            case "transient":
                raise Transient("probe: the other side hung up")
            case "outage":
                raise Outage("probe: nobody answers", service=SERVICE)
            case _:
                ledger(context).recovered(SERVICE)

    fail()


probe_errors()
