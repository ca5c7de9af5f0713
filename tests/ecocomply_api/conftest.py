"""The job API behind Airflow's own login, over a real database, in a server of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from console.databases import Databases
from ecocomply_api.app import create_app
from include.run import EngineDatabase
from tests.console.conftest import airflow as airflow  # noqa: PLC0414 - a fixture is found by its name
from tests.console.conftest import token
from tests.ecocomply.jobs_world import Records


@dataclass(frozen=True)
class Api:
    """The API, mounted as Airflow mounts it, and the jobs behind it."""

    url: str
    records: Records

    def as_user(self, name: str | None = "vera", role: str = "VIEWER") -> httpx.Client:
        """Return a client with somebody's token, or with none if `name` is None."""
        login = {} if name is None else {"authorization": f"Bearer {token(name, role)}"}
        return httpx.Client(base_url=f"{self.url}/ecocomply/api", headers=login, trust_env=False, timeout=30)


@pytest.fixture
def api(airflow: None, database_of: Callable[..., EngineDatabase]) -> Iterator[Api]:
    """Serve the API over a database of the test's own: a stream of events needs a real server."""
    records = Records(database_of("ecocomply"))
    records.fill()
    url = records.engine.url
    opened = Databases({"ecocomply_db": url}.__getitem__)
    app = FastAPI()
    app.mount("/ecocomply", create_app(opened, lambda: url))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield Api(f"http://127.0.0.1:{port}", records)
    server.should_exit = True
    thread.join()
    opened.close()
