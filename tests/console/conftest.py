"""The console behind Airflow's own login, on its own metadata database and real business databases."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow import settings
from airflow.api_fastapi.app import create_auth_manager, get_auth_manager, purge_cached_app
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.auth.middlewares.refresh_token import JWTRefreshMiddleware
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db
from airflow.models.log import Log
from airflow.utils.db import initdb
from airflow.utils.session import create_session
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import URL, delete

from console.app import create_app
from console.databases import Databases
from include.run import EngineDatabase
from tests.conftest import Databases as DatabaseMaker
from tests.console import sample

if TYPE_CHECKING:
    from tests.console.ecocomply_sample import Desk

ROOT = Path(__file__).resolve().parents[2]
OWN = "http://testserver"
"""The origin that the console is served from."""


@pytest.fixture(scope="package")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give Airflow a metadata database that knows the project's DAGs, and its own auth manager."""
    home = tmp_path_factory.mktemp("airflow")
    with pytest.MonkeyPatch.context() as patch:
        environment = {
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "ada:admin,otto:user,vera:viewer",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": f"{home}/passwords.json",
            "AIRFLOW__API__BASE_URL": OWN,
            "AIRFLOW__API__SECRET_KEY": "of the console's tests",
            "AIRFLOW__API_AUTH__JWT_SECRET": "of the console's tests, " * 4,
        }
        for name, value in environment.items():
            patch.setenv(name, value)
        _use_metadata_database()
        purge_cached_app()
        _fill_metadata_database()
        create_auth_manager().init()
        yield
    settings.dispose_orm(do_log=False)
    purge_cached_app()
    _use_metadata_database()


def _use_metadata_database() -> None:
    settings.configure_vars()
    settings.configure_orm()


def _fill_metadata_database() -> None:
    initdb()
    manager = DagBundlesManager()
    manager.sync_bundles_to_db()
    for bundle in manager.get_all_dag_bundles():
        bundle.initialize()
        bag = BundleDagBag(bundle.path, bundle_path=bundle.path, bundle_name=bundle.name)
        assert bag.import_errors == {}
        sync_bag_to_db(bag, bundle.name, bundle_version=None)


@dataclass(frozen=True)
class Console:
    """The console, mounted as Airflow mounts it, and the databases behind it."""

    app: FastAPI
    opened: Databases
    clearpath: EngineDatabase
    almanac: EngineDatabase
    now: datetime

    def as_user(self, name: str | None, role: str = "VIEWER", **options: Any) -> TestClient:
        """Return a browser in which somebody is signed in, or nobody if `name` is None."""
        client = TestClient(self.app, base_url=OWN, follow_redirects=False, **options)
        client.headers["accept"] = "text/html"
        if name is not None:
            client.cookies.set("_token", token(name, role))
        return client


def token(name: str, role: str, seconds: int = 3_600) -> str:
    """Return what a login gives, for a number of seconds."""
    user = SimpleAuthManagerUser(username=name, role=role, teams=None)
    return get_auth_manager().generate_jwt(user, expiration_time_in_seconds=seconds)


@pytest.fixture
def console(
    airflow: None,
    clearpath: EngineDatabase,
    almanac: EngineDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Console]:
    """Return the console over a sample that a test may change."""
    store = {"conn_type": "fs", "password": "k" * 32, "host": f"{OWN}/almanac/files"}
    monkeypatch.setenv(
        "AIRFLOW_CONN_CLEARPATH_STORAGE", json.dumps(store | {"extra": {"folder": str(tmp_path / "files")}})
    )
    with opened_over(clearpath, almanac) as made:
        yield made


@pytest.fixture(scope="package")
def common(airflow: None, databases: DatabaseMaker) -> Iterator[Console]:
    """Return the console over one sample for all tests that only read."""
    with ExitStack() as stack:
        made: list[EngineDatabase] = []
        for system in ("clearpath", "platform"):
            name, engine = databases.make(system)
            stack.callback(databases.drop, name, engine)
            made.append(EngineDatabase(engine))
        yield stack.enter_context(opened_over(*made))


@contextmanager
def opened_over(clearpath: EngineDatabase, almanac: EngineDatabase) -> Generator[Console]:
    """Fill the sample in and mount the console over it."""
    now = datetime.now(UTC)
    sample.fill_clearpath(clearpath.engine, now)
    sample.fill_platform(almanac.engine, now)
    urls: dict[str, URL] = {"clearpath_db": clearpath.engine.url, "almanac_db": almanac.engine.url}
    opened = Databases(urls.__getitem__)
    app = FastAPI()
    app.mount("/almanac", create_app(opened))
    app.add_middleware(JWTRefreshMiddleware)
    yield Console(app, opened, clearpath, almanac, now)
    opened.close()


@pytest.fixture
def reader(common: Console) -> TestClient:
    """Return a browser of somebody who may read, over the sample that nothing changes."""
    return common.as_user("vera")


@pytest.fixture
def viewer(console: Console) -> TestClient:
    """Return a browser of somebody who may read."""
    return console.as_user("vera")


@pytest.fixture
def operator(console: Console) -> TestClient:
    """Return a browser of somebody who may trigger."""
    return console.as_user("otto", "USER")


@pytest.fixture
def eco_desk(airflow: None, databases: DatabaseMaker) -> Iterator[Desk]:
    """Return the console over an EcoComply that a test may change."""
    from tests.console.ecocomply_sample import desk_over  # noqa: PLC0415 - it takes this module's own

    with create_session() as session:
        session.execute(delete(Log))
    with desk_over(databases) as made:
        yield made


@pytest.fixture(scope="package")
def eco_common(airflow: None, databases: DatabaseMaker) -> Iterator[Desk]:
    """Return the console over one EcoComply for all tests that only read."""
    from tests.console.ecocomply_sample import desk_over  # noqa: PLC0415 - as above

    with desk_over(databases) as made:
        yield made


@pytest.fixture
def eco_reader(eco_common: Desk) -> TestClient:
    """Return a browser of somebody who may read, over the EcoComply that nothing changes."""
    return eco_common.as_user("vera")


@pytest.fixture
def eco_operator(eco_desk: Desk) -> TestClient:
    """Return a browser of somebody who may trigger."""
    return eco_desk.as_user("otto", "USER")
