"""A DAG whose task looks connections up as jobs do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import dag, task


@dag(schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC))
def looks_up_connections() -> None:
    """Look a connection up that exists, and one that does not."""

    @task
    def look_up() -> dict[str, Any]:
        from tests.hooks.airflow_process import told  # noqa: PLC0415 - as the body of every task

        return {name: told(name) for name in ("stored", "nowhere")}

    look_up()


looks_up = looks_up_connections()
