"""Runs of DAGs as a job's row names them, and what is asked of Airflow about them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from include.effects import Effects
from include.errors import Transient

_OF_JOB = re.compile(r"job__([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:__([1-9][0-9]*))?")


@dataclass(frozen=True, slots=True)
class DagRun:
    """One run of a DAG. `clear_number` is how often a person has cleared it."""

    dag_id: str
    run_id: str
    clear_number: int = 0

    @property
    def key(self) -> str:
        """What `background_jobs.dag_run_id` holds: `<dag>/<run>`, and `/<n>` after the n-th clearing."""
        return f"{self.dag_id}/{self.run_id}" + (f"/{self.clear_number}" if self.clear_number else "")

    @property
    def keys(self) -> list[str]:
        """The run's keys before each clearing and since, the oldest first."""
        return [DagRun(self.dag_id, self.run_id, n).key for n in range(self.clear_number + 1)]

    @property
    def uncleared(self) -> DagRun:
        """The run as Airflow knows it: clearing makes no other of it."""
        return DagRun(self.dag_id, self.run_id)


@dataclass(frozen=True, slots=True)
class TaskTry:
    """One try of one task of a run; `number` counts from 1. Tasks that write to one job's row go one after another."""

    dag_run: DagRun
    task_id: str
    number: int

    @property
    def owner(self) -> str:
        """What `background_jobs.claimed_by` holds."""
        return f"{self.dag_run.key} {self.task_id} {self.number}"


def run_of_key(key: str | None) -> DagRun | None:
    """Return the run that a row names; None if it names none."""
    parts = (key or "").split("/")
    cleared = parts[2] if len(parts) == 3 else "0"  # noqa: PLR2004 - dag, run, clearing
    if len(parts) not in (2, 3) or not all(parts) or not (cleared.isascii() and cleared.isdigit()):
        return None
    return DagRun(parts[0], parts[1], int(cleared))


def try_of_owner(owner: str | None) -> TaskTry | None:
    """Return the try that holds a row; None if nobody does, or a worker of the application's own."""
    parts = (owner or "").split(" ")
    if len(parts) != 3 or not (parts[2].isascii() and parts[2].isdigit()):  # noqa: PLR2004 - run, task, try
        return None
    run = run_of_key(parts[0])
    return None if run is None else TaskTry(run, parts[1], int(parts[2]))


def run_id_of_job(job_id: UUID, number: int = 1) -> str:
    """Return the id of the n-th run that is started for a row."""
    return f"job__{job_id}" + (f"__{number}" if number > 1 else "")


def number_of_run(run_id: str, job_id: UUID) -> int:
    """Return which of the runs that were started for a row it is, from 1; 0 for a run of another kind."""
    found = _OF_JOB.fullmatch(run_id)
    return int(found[2] or 1) if found and found[1] == str(job_id) else 0


def starts_for_a_job(run_id: str) -> bool:
    """Say whether a run was started for a row that was there before it."""
    return _OF_JOB.fullmatch(run_id) is not None


@dataclass(frozen=True, slots=True)
class RunStanding:
    """How a run stands.

    `live`: it is queued or running; `working`: one of its tasks is running, is queued or about to be, or waits to
    be tried again; `timed_out`: it was ended because it took too long.
    """

    live: bool
    working: bool
    timed_out: bool = False


class NotReady(Transient):
    """Airflow does not know the DAG now, or can't read its file: its runs start when it does."""


class AirflowRuns(Protocol):
    """Airflow, as far as the records of jobs ask it. An outage raises Outage."""

    def standing(self, runs: Collection[DagRun]) -> Mapping[DagRun, RunStanding]:
        """Say how runs stand, by the run without its clearings; one that Airflow does not know is left out."""
        ...

    def start(self, dag_id: str, run_id: str, conf: Mapping[str, Any]) -> None:
        """Start a run; one of that id that is there already is left as it is.

        Raises Permanent if Airflow refuses the conf, NotReady if it can't start this DAG now.
        """
        ...


class RecordedRuns:
    """A preview's Airflow: how runs stand was asked before, and nothing is started."""

    def __init__(self, standing: Mapping[DagRun, RunStanding], effects: Effects) -> None:
        self._standing = standing
        self._effects = effects

    def standing(self, runs: Collection[DagRun]) -> Mapping[DagRun, RunStanding]:
        return {run: self._standing[run] for run in runs if run in self._standing}

    def start(self, dag_id: str, run_id: str, conf: Mapping[str, Any]) -> None:  # noqa: ARG002 - the protocol's form
        self._effects.call("airflow", f"start {dag_id}, run {run_id}")


def standing_of(runs: AirflowRuns, keys: Collection[str | None]) -> Mapping[DagRun, RunStanding]:
    """Ask how the runs that rows name stand."""
    named = {run.uncleared for key in keys if (run := run_of_key(key)) is not None}
    return runs.standing(named) if named else {}
