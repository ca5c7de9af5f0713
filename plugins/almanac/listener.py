"""What the scheduler hears of runs, and hands to a thread of its own: Airflow's loop waits for nothing here."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from airflow.configuration import conf
from airflow.listeners import hookimpl

from almanac.preloading import preload
from almanac.start import service_name
from almanac.teller import TELLER

_LOG = logging.getLogger("almanac.alerts")


@hookimpl
def on_starting(component: Any) -> None:
    """Prepare a starting scheduler or DAG processor; a scheduler also tells what failed while none was up."""
    # A task's process is the scheduler's child, and calls this as well; a job does not say yet whose it is.
    service = service_name()
    if type(component).__name__ != "Job" or service not in ("scheduler", "dag-processor"):
        return
    try:
        preload(Path(conf.get("core", "dags_folder")))
    except Exception:
        # It costs time, nothing else.
        _LOG.exception("preload: every child loads for itself")
    if service != "scheduler":
        return
    try:
        TELLER.start()
    except Exception:
        # A scheduler that tells of nothing is better than none.
        _LOG.exception("alerts: the scheduler tells of no failed runs")


@hookimpl
def on_dag_run_failed(dag_run: Any, msg: str) -> None:
    """Have a failed run told of, as far as no task could tell."""
    try:
        TELLER.hear(dag_run.dag_id, dag_run.run_id, msg)
    except Exception:
        # The sweep tells of it.
        _LOG.exception("alerts: a failed run was not heard of")
