"""The real Postgres for every test: one server a process, databases copied from migrated templates."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import zoneinfo
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import Engine, NullPool, create_engine, make_url

from include import migrations
from include.as_of import check_zone_data
from include.engines import make_engine
from include.errors import BadInput
from include.run import EngineDatabase
from stack.postgres import Cluster

pytest_plugins = ["tests.counted", "tests.live", "tests.slow"]


def pytest_sessionstart() -> None:
    """Refuse to start on zone data other than the pinned: dates would be right here and wrong elsewhere."""
    try:
        check_zone_data()
    except BadInput as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    # A child process reads its environment anew, so it must be there too, not in this process alone.
    if os.environ.get("PYTHONTZPATH") != "" or zoneinfo.TZPATH:
        pytest.exit('set PYTHONTZPATH=""', returncode=pytest.ExitCode.USAGE_ERROR)


@dataclass(slots=True)
class Databases:
    """Fresh databases on one server, each a copy of its system's template."""

    cluster: Cluster
    _templates: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def make(
        self, system: str | None, timezone: str = "UTC", *, template: str | None = None
    ) -> tuple[str, Engine]:
        """Make a database with a system's tables, like `template`, or an empty one; return its name and an engine."""
        name = f"test_{next(self._numbers)}"
        self.cluster.create_database(name, self._template(system) if system else template)
        return name, self._engine(name, timezone)

    def drop(self, name: str, engine: Engine) -> None:
        engine.dispose()
        self.cluster.drop_database(name)

    def _template(self, system: str) -> str:
        if system not in self._templates:
            name = f"template_{system}"
            self.cluster.create_database(name)
            engine = self._engine(name, "UTC")
            migrations.upgrade(system, engine)
            # Nobody may be connected to a template while it is copied.
            engine.dispose()
            self._templates[system] = name
        return self._templates[system]

    def _engine(self, name: str, timezone: str) -> Engine:
        return make_engine(self.cluster.url(name, over_tcp=False), session={"TimeZone": timezone})


_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
_ROOM = 2 << 30


@pytest.fixture(scope="session")
def fast_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder for databases, in memory where it has room: each of thousands takes a tenth of the time."""
    if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
        with tempfile.TemporaryDirectory(
            prefix="almanac-tests-", dir=_MEMORY, ignore_cleanup_errors=True
        ) as folder:
            # Postgres may run as another user than this one, who must get through.
            Path(folder).chmod(0o711)
            yield Path(folder)
    else:
        yield tmp_path_factory.mktemp("postgres")


@pytest.fixture(scope="session")
def cluster(fast_folder: Path) -> Iterator[Cluster]:
    """Start a Postgres server of this process's own, and remove it at the end."""
    with ExitStack() as made:
        server = Cluster(fast_folder / "data", durable=False)
        made.callback(server.remove)
        server.start()
        _let_rows_be_put_back(server)
        yield server


def _let_rows_be_put_back(server: Cluster) -> None:
    """Let the tests' role become the superuser where it asks to, who writes past policies and triggers."""
    superuser = make_url(server.url("postgres", over_tcp=False)).set(username="postgres")
    with create_engine(superuser, poolclass=NullPool).begin() as connection:
        connection.exec_driver_sql("GRANT postgres TO almanac WITH INHERIT FALSE")


@pytest.fixture(scope="session")
def databases(cluster: Cluster) -> Databases:
    """Return what makes databases from templates, which it migrates once."""
    return Databases(cluster)


@pytest.fixture
def database_of(databases: Databases) -> Iterator[Callable[..., EngineDatabase]]:
    """Return a function that makes a fresh database of a system; `timezone` is its sessions' zone."""
    with ExitStack() as made:

        def make(system: str, timezone: str = "UTC") -> EngineDatabase:
            name, engine = databases.make(system, timezone)
            made.callback(databases.drop, name, engine)
            return EngineDatabase(engine)

        yield make


@pytest.fixture
def empty_database(databases: Databases) -> Iterator[Engine]:
    """Make a database without a table in it."""
    name, engine = databases.make(None)
    yield engine
    databases.drop(name, engine)


@pytest.fixture
def clearpath(database_of: Callable[..., EngineDatabase]) -> EngineDatabase:
    """Make a database with ClearPath's tables, empty."""
    return database_of("clearpath")


@pytest.fixture
def almanac(database_of: Callable[..., EngineDatabase]) -> EngineDatabase:
    """Make the platform's own database, empty."""
    return database_of("platform")
