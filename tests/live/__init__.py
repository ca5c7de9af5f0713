"""One whole stack, with all of Airflow's processes, for every test that works on the real thing.

A test that takes the fixture `live_stack` is marked `live` by itself, and all of them run in one process, on
one stack, in any order: a test makes the rows and runs that it looks at, and leaves the DAGs paused or not as
it found them. Beside the project's DAGs the stack has those of tests/live/dags, which fail as tests want it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

from stack.api import Airflow
from stack.environment import database_uri
from stack.home import Home
from stack.supervisor import Stack
from tests.dags.every import dag_files

WANTED = {"LAB_INTEGRATION_MODEL": "api", "ARCVEST_WORKER_SECONDS": "5"}
"""The lab is asked, and ArcVest's worker waits for more work no longer than a test does."""

PROBES = Path(__file__).with_name("dags")

_LIVE = ("live_stack", "mark.live")
"""What stands in every file outside of this folder that has a live test."""

_READ_WITHIN = 180
_SECONDS = 1800


@dataclass(slots=True)
class LiveStack:
    """A running stack, with demo data and the lab on loopback."""

    stack: Stack
    _sessions: dict[str, Airflow] = field(default_factory=dict)
    _engines: dict[str, Engine] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.stack.environment["ALMANAC_URL"]

    @property
    def home(self) -> Home:
        return self.stack.home

    @property
    def environment(self) -> Mapping[str, str]:
        """What the stack's env file holds, its secrets among it."""
        return self.stack.environment

    def password(self, login: str) -> str:
        """Return the password of `admin`, `operator` (Airflow's role user) or `viewer`."""
        return self.stack.environment[f"ALMANAC_{login.upper()}_PASSWORD"]

    def api(self, login: str = "admin") -> Airflow:
        if login not in self._sessions:
            self._sessions[login] = self.stack.api(login)
        return self._sessions[login]

    def database(self, name: str) -> Engine:
        """Return an engine on `airflow`, `almanac` or a system's database."""
        if name not in self._engines:
            uri = database_uri(self.stack.environment, name, "postgresql+psycopg")
            self._engines[name] = create_engine(uri, pool_pre_ping=True)
        return self._engines[name]

    def run(self, dag_id: str, conf: Mapping[str, Any] | None = None, within: float = 120) -> dict[str, Any]:
        """Trigger a DAG as the operator, wait for the run's end and return it."""
        api = self.api("operator")
        run_id = api.trigger(dag_id, conf)
        api.unpause(dag_id)
        return api.finished(dag_id, run_id, within)

    def pids(self) -> dict[str, int]:
        """Return the process numbers of api-server, scheduler, dag-processor, triggerer, lab and postgres."""
        return self.stack.pids()

    def close(self) -> None:
        for session in self._sessions.values():
            session.http.close()
        for engine in self._engines.values():
            engine.dispose()


@pytest.fixture(scope="session")
def live_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveStack]:
    """Boot the whole stack once, in a folder of its own, and start again whatever a test kills."""
    home = Home(Path(tmp_path_factory.mktemp("stack")) / "home")
    over = threading.Event()
    with Stack(home, WANTED, durable=False, more=with_probes()) as stack:
        stack.start(demo_data=True)

        def keep_up() -> None:
            while not over.wait(0.2):
                stack.restart_the_dead()

        keeper = threading.Thread(target=keep_up, daemon=True)
        keeper.start()
        live = LiveStack(stack)
        _until_read(live)
        yield live
        over.set()
        keeper.join()
        live.close()


def _until_read(live: LiveStack) -> None:
    """Wait until Airflow has read every DAG file: there are many, and any test may be the first."""
    wanted = {file.dag_id for file in dag_files()}
    deadline = time.monotonic() + _READ_WITHIN
    while missing := wanted - live.api().dag_ids():
        assert time.monotonic() < deadline, f"not read after {_READ_WITHIN} s: {missing}"
        time.sleep(0.5)


def with_probes() -> dict[str, str]:
    """Return the environment in which Airflow also finds the tests' own DAGs."""
    folder = "airflow.dag_processing.bundles.local.LocalDagBundle"
    bundles = [
        {"name": "dags-folder", "classpath": folder, "kwargs": {}},
        {"name": "probes", "classpath": folder, "kwargs": {"path": str(PROBES)}},
    ]
    return {"AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles)}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no other file where the live tests alone are asked for: the thousands of others take half a minute."""
    is_wanted = config.option.markexpr != "live" or collection_path.is_dir() or _may_be_live(collection_path)
    return None if is_wanted else True


@cache
def _may_be_live(file: Path) -> bool:
    return file.parent == PROBES.parent or any(word in file.read_text(encoding="utf-8") for word in _LIVE)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, object, object]:
    """Mark what needs the stack, and keep it in one process: two stacks would crowd each other out.

    The marks are there before `-m` chooses by them; what looks back on all that happened comes last, after the
    order was shuffled.
    """
    for item in items:
        if "live_stack" in getattr(item, "fixturenames", ()):
            assert _may_be_live(item.path), f"{item.path} does not say that it is live, and would be left out"
            item.add_marker(pytest.mark.live)
            # The first of them waits for the stack, and for a run of every DAG.
            item.add_marker(pytest.mark.timeout(_SECONDS))
            item.add_marker(pytest.mark.xdist_group("live"))
    result = yield
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)
    return result
