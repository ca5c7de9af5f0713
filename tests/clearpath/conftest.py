"""What ClearPath's tests work on: a database of its own, rows in it, and the world behind real connections."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, Engine, delete

from include.clearpath.tables import METADATA
from include.run import EngineDatabase
from stack.fakes.lab_server import LabServer
from stack.fakes.resend_server import ResendServer
from tests.clearpath.rows import Rows
from tests.conftest import Databases


class Emptied:
    """One database for one test after the other; emptying it takes a tenth of making another."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._kept: tuple[str, Engine] | None = None

    def take(self) -> EngineDatabase:
        if self._kept is None:
            self._kept = self._databases.make("clearpath")
        return EngineDatabase(self._kept[1])

    def give_back(self, *, changed: bool) -> None:
        """Empty every table; a database whose tables themselves were changed is thrown away."""
        if changed:
            self.drop()
        elif self._kept is not None:
            with self._kept[1].begin() as connection:
                for table in reversed(METADATA.sorted_tables):
                    connection.execute(delete(table))

    def drop(self) -> None:
        if self._kept is not None:
            self._databases.drop(*self._kept)
            self._kept = None


@pytest.fixture(scope="session")
def emptied(databases: Databases) -> Iterator[Emptied]:
    """Return the database that `rows` takes and gives back."""
    kept = Emptied(databases)
    yield kept
    kept.drop()


@pytest.fixture
def rows(emptied: Emptied) -> Iterator[Rows]:
    """Return what inserts rows into an empty ClearPath and reads them again."""
    made = Rows(emptied.take())
    yield made
    emptied.give_back(changed=made.changed_tables)


@pytest.fixture
def own_rows(clearpath: EngineDatabase) -> Rows:
    """Return rows in a database of the test's own, which other processes may use."""
    return Rows(clearpath)


SECRET = "p/s@s:%#1"
SENDER = "ClearPath <hello@clearpath.test>"


@pytest.fixture
def connections(clearpath: EngineDatabase, almanac: EngineDatabase, tmp_path: Path) -> dict[str, str]:
    """Return the databases, an outbox and a folder of files, as Airflow's connections in the environment."""
    outbox = {"provider": "outbox", "folder": str(tmp_path / "outbox"), "from": SENDER}
    files = {"folder": str(tmp_path / "files")}
    said = {
        "CLEARPATH_DB": _postgres(clearpath.engine.url),
        "ALMANAC_DB": _postgres(almanac.engine.url),
        "CLEARPATH_EMAIL": {"conn_type": "almanac_email", "extra": outbox},
        "CLEARPATH_STORAGE": {
            "conn_type": "fs", "host": "https://almanac.test/files", "password": SECRET * 3, "extra": files
        },
    }  # fmt: skip
    return {f"AIRFLOW_CONN_{name}": json.dumps(parts) for name, parts in said.items()}


def _postgres(url: URL) -> dict[str, Any]:
    # Over the socket, as the tests themselves do.
    port = int(str(url.query["port"]))
    at = {"host": url.query["host"], "port": port, "login": url.username, "schema": url.database}
    return {"conn_type": "postgres", **at}


@pytest.fixture
def resend(connections: dict[str, str]) -> Iterator[Callable[..., ResendServer]]:
    """Return a function that starts a Resend and lets the connection name it; `extra` goes to the connection."""
    running: list[ResendServer] = []

    def start(extra: dict[str, Any] | None = None, **settings: Any) -> ResendServer:
        server = ResendServer(api_key=SECRET, base_path="/mail/v1", **settings)
        running.append(server.__enter__())
        said = {"provider": "resend", "from": SENDER, "timeout": 10} | (extra or {})
        connections["AIRFLOW_CONN_CLEARPATH_EMAIL"] = json.dumps(
            {"conn_type": "almanac_email", "host": server.url, "password": SECRET, "extra": said}
        )
        return server

    yield start
    for server in running:
        server.__exit__()


@pytest.fixture
def lab_server(connections: dict[str, str]) -> Iterator[LabServer]:
    """Run a lab with two results a page, and let the connection name it."""
    with LabServer(token=SECRET, base_path="/v1", page_size=2) as server:
        connections["AIRFLOW_CONN_CLEARPATH_LAB"] = json.dumps(
            {"conn_type": "http", "host": server.url, "password": SECRET}
        )
        yield server
