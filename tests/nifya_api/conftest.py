"""The admin API behind Airflow's own login, over a real database with jobs of every kind."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import URL

from console.databases import Databases
from include.run import EngineDatabase
from nifya_api.app import create_app
from tests.conftest import Databases as DatabaseMaker
from tests.console.conftest import OWN, token
from tests.console.conftest import airflow as airflow  # noqa: PLC0414 - a fixture is found by its name
from tests.nifya.conftest import Jobs

JOBS = "/nifya/api/admin/jobs"


@dataclass(frozen=True)
class Api:
    """The API, mounted as Airflow mounts it, and the jobs behind it."""

    app: FastAPI
    jobs: Jobs

    def as_user(self, name: str | None = "otto", role: str = "USER") -> TestClient:
        """Return a client with somebody's token, or with none if `name` is None."""
        client = TestClient(self.app, base_url=OWN, follow_redirects=False)
        if name is not None:
            client.headers["authorization"] = f"Bearer {token(name, role)}"
        return client

    def at(self, job: uuid.UUID | str, more: str = "") -> str:
        return f"{JOBS}/{job}{more}"


@contextmanager
def mounted(database: EngineDatabase) -> Generator[Api]:
    """Mount the API over a database."""
    with mounted_at(database.engine.url) as app:
        yield Api(app, Jobs(database))


@contextmanager
def mounted_at(url: URL) -> Generator[FastAPI]:
    """Mount the API over whatever is at an address."""
    opened = Databases({"nifya_db": url}.__getitem__)
    app = FastAPI()
    app.mount("/nifya", create_app(opened))
    yield app
    opened.close()


@pytest.fixture
def api(airflow: None, database_of: Callable[..., EngineDatabase]) -> Iterator[Api]:
    """Return the API over a database of the test's own."""
    with mounted(database_of("nifya")) as made:
        yield made


@pytest.fixture
def client(api: Api) -> TestClient:
    """Return a client of somebody who may trigger DAGs."""
    return api.as_user()


@pytest.fixture(scope="package")
def refusing(airflow: None, databases: DatabaseMaker) -> Iterator[TestClient]:
    """Return a client of one database for all requests that must be refused, and so leave nothing in it."""
    name, engine = databases.make("nifya")
    with mounted(EngineDatabase(engine)) as made:
        yield made.as_user()
    databases.drop(name, engine)


@pytest.fixture(scope="package")
def shared_api(airflow: None, databases: DatabaseMaker) -> Iterator[Api]:
    """Return the API over one database for all generated requests, which may leave anything in it."""
    name, engine = databases.make("nifya")
    with mounted(EngineDatabase(engine)) as made:
        yield made
    databases.drop(name, engine)


def json_of(answer: Any, code: int) -> Any:
    """Return an answer's JSON, which must come with this status."""
    assert answer.status_code == code, answer.text
    return answer.json()
