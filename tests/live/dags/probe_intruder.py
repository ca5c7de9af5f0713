"""Starts a run of another DAG as DAGs do, past the API's own check of what a run is given.

**If it fails** a test wanted that.
"""

from __future__ import annotations

import pendulum
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Param, dag

from almanac.defaults import work


@dag(
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    default_args=work(pool="platform", priority="HIGH", delays=(), timeout=60),
    params={"dag_id": Param(type="string"), "run_id": Param(type="string"), "conf": Param(type="object")},
    render_template_as_native_obj=True,
)
def probe_intruder():
    TriggerDagRunOperator(
        task_id="intrude",
        trigger_dag_id="{{ params.dag_id }}",
        trigger_run_id="{{ params.run_id }}",
        conf="{{ params.conf }}",  # ty: ignore[invalid-argument-type]  a template that renders to a dict
    )


probe_intruder()
