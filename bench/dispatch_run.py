"""A run of the mail queue with nothing due against five empty tasks, both over the API of one running stack."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.databases import Databases
from bench.measure import Comparison, Goal, by_turns
from include.errors import Permanent, Transient
from stack.api import Airflow
from stack.home import PROJECT, Home
from stack.supervisor import Stack

DISPATCH = "clearpath_email_queue_dispatch"
FIVE_EMPTY_TASKS = "five_empty_tasks"

EMPTY = '''\
"""Five tasks in a row that do nothing: what a run of five steps costs in Airflow itself."""

from airflow.sdk import dag, task


@dag(catchup=False, max_active_runs=1)
def five_empty_tasks():
    @task
    def first(): ...

    @task
    def second(): ...

    @task
    def third(): ...

    @task
    def fourth(): ...

    @task
    def fifth(): ...

    first() >> second() >> third() >> fourth() >> fifth()


five_empty_tasks()
'''

_RUN_WITHIN = 120
_PARSED_WITHIN = 120


@dataclass(frozen=True, slots=True)
class Size:
    """How often both are run."""

    rounds: int


FULL = Size(rounds=15)
TINY = Size(rounds=2)


def measure(databases: Databases, size: Size) -> list[Comparison]:  # noqa: ARG001 - a benchmark's form
    """Boot a stack that has both DAGs, without demo data, and run them by turns."""
    with open_stack() as stack, stack.api() as api:
        return [compare(api, size, DISPATCH, FIVE_EMPTY_TASKS)]


def compare(api: Airflow, size: Size, dag_id: str, limit_id: str) -> Comparison:
    """Run two DAGs of a running stack by turns and time them, from the trigger to the run's end."""
    compared = Comparison(
        f"a run of {dag_id} with nothing due",
        job="trigger to success over the API, five steps with their databases, summary and watch on the queue",
        limit=f"{limit_id}, on the same stack",
        goal=Goal.AT_MOST,
        goal_ratio=1.5,
    )
    for each in (dag_id, limit_id):
        until_known(api, each)
        api.unpause(each)
        # Once untimed: caches fill, and a missed slot of the schedule is made up for.
        _run(api, each)
    return by_turns(compared, lambda: _run(api, dag_id), lambda: _run(api, limit_id), size.rounds)


def _run(api: Airflow, dag_id: str) -> float:
    """Return the seconds between asking for a run and its success; both are this machine's clock."""
    began = datetime.now(UTC)
    run = api.finished(dag_id, api.trigger(dag_id), _RUN_WITHIN)
    if run["state"] != "success":
        raise Permanent(f"bench: {dag_id} {run['dag_run_id']} ended as {run['state']}")
    return (datetime.fromisoformat(run["end_date"]) - began).total_seconds()


def until_known(api: Airflow, dag_id: str) -> None:
    """Wait until Airflow has read a DAG's file."""
    deadline = time.monotonic() + _PARSED_WITHIN
    while dag_id not in api.dag_ids():
        if time.monotonic() > deadline:
            raise Transient(f"bench: the stack does not know {dag_id} after {_PARSED_WITHIN} s")
        time.sleep(0.5)


@contextmanager
def open_stack() -> Generator[Stack]:
    """Boot a stack over this project with one more DAG, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="almanac-bench-") as folder:
        Path(folder).chmod(0o711)
        project = Path(folder) / "project"
        (project / "dags" / "bench").mkdir(parents=True)
        (project / "dags" / "bench" / f"{FIVE_EMPTY_TASKS}.py").write_text(EMPTY, encoding="utf-8")
        for path in [*PROJECT.iterdir(), *(PROJECT / "dags").iterdir()]:
            place = project / path.relative_to(PROJECT)
            if not place.exists() and not path.name.startswith((".", "__")):
                place.symlink_to(path)
        with Stack(Home(Path(folder) / "home", project)) as stack:
            stack.start()
            yield stack
