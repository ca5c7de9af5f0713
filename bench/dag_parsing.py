"""Parsing a DAG file against an empty one, each in a process as Airflow's DAG processor forks it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from bench.databases import Databases
from bench.measure import Comparison, Goal
from include.errors import Permanent
from stack.home import PROJECT

EMPTY = """\
from airflow.sdk import DAG

empty = DAG("empty")
"""

# What clearpath_email_queue_dispatch says of itself, word for word, with tasks that do nothing.
DECLARED = """\
from datetime import timedelta

import pendulum
from airflow.sdk import CronTriggerTimetable, Param, dag, task

WORK = {
    "owner": "almanac",
    "pool": "clearpath",
    "priority_weight": 10,
    "weight_rule": "absolute",
    "retries": 2,
    "retry_delay": timedelta(seconds=60),
    "execution_timeout": timedelta(seconds=600),
    "on_failure_callback": print,
}


@dag(
    schedule=CronTriggerTimetable("*/15 * * * *", timezone="America/Edmonton"),
    start_date=pendulum.datetime(2026, 1, 1, tz="America/Edmonton"),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(seconds=2460),
    default_args=WORK,
    params={
        "batch_limit": Param(
            50, type="integer", minimum=1, maximum=100_000, description="Most mails attempted a run."
        ),
        "as_of": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="As of",
            description="The instant to decide by. Empty: the run's own date.",
        ),
        "dry_run": Param(False, type="boolean", title="Preview only", description="Change nothing."),
    },
    tags=["clearpath", "pool:clearpath", "on-failure:wait"],
)
def declared():
    @task.short_circuit
    def check_run(): ...

    @task
    def settle_unsendable(): ...

    @task
    def claim_due(settled): ...

    @task
    def send_claimed(): ...

    @task
    def check_queue(sent): ...

    check_run() >> (settled := settle_unsendable())
    claim_due(settled) >> (sent := send_claimed())
    check_queue(sent)


declared()
"""

# The plugins load beforehand what the DAG files import, as on the stack.
_FOLDERS = {
    "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
}

DISPATCH = PROJECT / "dags" / "clearpath" / "clearpath_email_queue_dispatch.py"


@dataclass(frozen=True, slots=True)
class Size:
    """How often each file is parsed, and how many of them: None for all."""

    rounds: int
    files: int | None = None


FULL = Size(rounds=31)
TINY = Size(rounds=2, files=2)


def measure(databases: Databases, size: Size) -> list[Comparison]:  # noqa: ARG001 - a benchmark's form
    """Parse every DAG file of the project and the two limits by turns; of the files the slowest is shown."""
    files = sorted((PROJECT / "dags").glob("*/*.py"))[: size.files]
    where = "in a process that a DAG processor forks"
    form = Comparison("", "", "", Goal.AT_MOST, 1.15)
    against_none = {
        path: replace(
            form,
            name=f"parsing {path.stem}, the slowest file",
            job=f"the file, {where}",
            limit="a file with one DAG and no task",
            job_seconds=[],
            limit_seconds=[],
        )
        for path in files
    }
    against_same = replace(
        form,
        name=f"parsing {DISPATCH.stem}, what is not Airflow's",
        job=f"the file, {where}",
        limit="a file that declares the same DAG with tasks that do nothing, and imports Airflow alone",
        job_seconds=[],
        limit_seconds=[],
    )
    with _limits() as (empty, declared), _processor() as parse:
        # Each once untimed: the parent imports what a file wants of Airflow when it first meets it.
        for path in (empty, declared, DISPATCH, *files):
            parse(path)
        for number in range(size.rounds):
            for path in files if number % 2 else reversed(files):
                against_none[path].limit_seconds.append(parse(empty))
                against_none[path].job_seconds.append(parse(path))
            against_same.limit_seconds.append(parse(declared))
            against_same.job_seconds.append(parse(DISPATCH))
    return [max(against_none.values(), key=lambda compared: compared.ratio), against_same]


class _Parse:
    """Asks the process; an answer is the seconds that a file took."""

    def __init__(self, questions: IO[str], answers: IO[str]) -> None:
        self._questions = questions
        self._answers = answers

    def __call__(self, path: Path) -> float:
        self._questions.write(f"{path}\n")
        self._questions.flush()
        word, seconds, dags = [*self._answers.readline().split(), "", "", ""][:3]
        if word != "parsed" or dags != "1":
            raise Permanent(f"bench: {path} was not parsed into one DAG")
        return float(seconds)


@contextmanager
def _processor() -> Generator[_Parse]:
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            [sys.executable, "-m", "bench.dag_processor"],
            cwd=PROJECT,
            env=os.environ | _FOLDERS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        if process.stdin is None or process.stdout is None:
            raise Permanent("bench: the process that parses has no pipes")
        try:
            yield _Parse(process.stdin, process.stdout)
        finally:
            process.stdin.close()
            process.wait()


@contextmanager
def _limits() -> Generator[tuple[Path, Path]]:
    with tempfile.TemporaryDirectory(prefix="almanac-bench-") as folder:
        empty, declared = Path(folder) / "empty.py", Path(folder) / "declared.py"
        empty.write_text(EMPTY, encoding="utf-8")
        declared.write_text(DECLARED, encoding="utf-8")
        yield empty, declared
