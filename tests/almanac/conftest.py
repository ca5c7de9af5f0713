"""Airflow's connections and a task's context, as a process of Airflow's has them, on databases of a test's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Row, Table, select

from hooks import postgres
from include.platform import tables
from include.run import EngineDatabase

NOW = datetime(2026, 5, 5, 9, 30, tzinfo=UTC)


@dataclass
class Platform:
    """ClearPath's database and the platform's own, found by their connections; mail goes to folders."""

    clearpath: EngineDatabase
    almanac: EngineDatabase
    folder: Path
    setenv: Callable[[str, str], None] = field(repr=False)

    def mail_goes_to(self, conn_id: str) -> Path:
        """Make a mail connection that writes to a folder of its own, and return that."""
        folder = self.folder / conn_id
        extra = {"provider": "outbox", "folder": str(folder), "from": "almanac@example.test"}
        self.setenv(
            f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps({"conn_type": "almanac_email", "extra": extra})
        )
        return folder

    def all(self, table: Table) -> list[Row[Any]]:
        with self.almanac.transaction() as tx:
            return list(tx.rows(select(table)))

    def alerts(self) -> list[Row[Any]]:
        return self.all(tables.ALERT)


@pytest.fixture
def platform(
    clearpath: EngineDatabase, almanac: EngineDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Platform]:
    """Name the two databases to Airflow's look-up; no operator has an address yet."""
    for conn_id, database in (("clearpath_db", clearpath), ("almanac_db", almanac)):
        url = database.engine.url
        said = {
            "conn_type": "postgres",
            "host": url.query["host"],
            "port": int(str(url.query["port"])),
            "login": url.username,
            "schema": url.database,
        }
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(said))
    monkeypatch.delenv("AIRFLOW_VAR_ADMIN_ALERT_EMAIL", raising=False)
    postgres.database.cache_clear()
    yield Platform(clearpath, almanac, tmp_path, monkeypatch.setenv)
    for conn_id in ("clearpath_db", "almanac_db"):
        postgres.database(conn_id).engine.dispose()
    postgres.database.cache_clear()


def context(
    task_id: str = "check_run", try_number: int = 1, conf: dict[str, Any] | None = None, **changed: Any
) -> dict[str, Any]:
    """Return what Airflow hands to a task, as far as the runs read it."""
    params: dict[str, Any] = {"as_of": None, "dry_run": False}
    run = SimpleNamespace(
        dag_id="clearpath_certificate_expiry", run_id="run 1", conf=conf or {}, run_after=NOW
    )
    log = "http://127.0.0.1:1/log"
    return {
        "dag": SimpleNamespace(params=params),
        "dag_run": run,
        "params": params | (conf or {}),
        "ti": SimpleNamespace(
            dag_id=run.dag_id,
            run_id=run.run_id,
            task_id=task_id,
            try_number=try_number,
            map_index=-1,
            log_url=log,
        ),
    } | changed
