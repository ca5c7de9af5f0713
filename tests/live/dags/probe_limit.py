"""A run that reaches its time limit while its task works.

**If it fails** a test wanted that.
"""

from __future__ import annotations

import time
from datetime import timedelta

import pendulum
from airflow.sdk import dag, task

from almanac.defaults import work


@dag(
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    dagrun_timeout=timedelta(seconds=3),
    default_args=work(pool="platform", priority="HIGH", delays=(1, 1), timeout=120),
)
def probe_limit():
    @task
    def work_on():
        time.sleep(100)

    work_on()


probe_limit()
