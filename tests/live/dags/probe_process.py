"""A task that says which process it is, and holds on until it is told to go on: for tests that kill it.

**If it fails** a test wanted that.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pendulum
from airflow.sdk import Param, dag, task

from almanac.defaults import run_limit, work

DELAYS = (1, 1)


@dag(
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    dagrun_timeout=run_limit(delays=DELAYS, timeout=120),
    default_args=work(pool="platform", priority="HIGH", delays=DELAYS, timeout=120),
    params={
        "folder": Param(type="string", description="Where <attempt>.pid is written, and `go` is awaited.")
    },
)
def probe_process():
    @task
    def hold(**context):
        folder = Path(context["params"]["folder"])
        unfinished = folder / "unfinished"
        unfinished.write_text(str(os.getpid()))
        unfinished.rename(folder / f"{context['ti'].try_number}.pid")
        while not (folder / "go").exists():
            time.sleep(0.05)

    hold()


probe_process()
