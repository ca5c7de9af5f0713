"""How runs stand and how they are started, by Airflow's own answers."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun as StoredRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from sqlalchemy import select, update

from hooks.airflow_runs import TaskSdkRuns
from include.ecocomply.job_records.dag_runs import DagRun, NotReady, RunStanding
from include.errors import Outage, Refused
from tests.hooks.in_airflow.conftest import Supervisor

CLOCKS = "ecocomply_update_compliance_clocks"
TASKS = ("check_run", "recalculate_clocks", "send_reminders", "report_run")


def started(conf: dict[str, Any] | None = None, dag_id: str = CLOCKS) -> DagRun:
    """Start a run of its own, and return it."""
    run = DagRun(dag_id, f"job__{uuid.uuid4()}")
    TaskSdkRuns().start(run.dag_id, run.run_id, conf or {})
    return run


def put(run: DagRun, state: str, *tasks: str | None) -> None:
    """Put a run, and its tasks in their order, into states."""
    with create_session() as session:
        of = (StoredRun.dag_id == run.dag_id, StoredRun.run_id == run.run_id)
        session.execute(update(StoredRun).where(*of).values(state=state))
        for task_id, task in zip(TASKS, tasks, strict=True):
            one = (
                TaskInstance.dag_id == run.dag_id,
                TaskInstance.run_id == run.run_id,
                TaskInstance.task_id == task_id,
            )
            session.execute(update(TaskInstance).where(*one).values(state=task))


def stored(run: DagRun) -> Any:
    """Return the run's state and conf, None without one."""
    with create_session() as session:
        found = session.execute(
            select(StoredRun.state, StoredRun.conf).where(
                StoredRun.dag_id == run.dag_id, StoredRun.run_id == run.run_id
            )
        ).one_or_none()
    return found and tuple(found)


def test_a_run_is_started_once(supervisor: Supervisor) -> None:
    """A dispatcher that was killed starts the very run again, and that is left as it is."""
    run = started({"batch_size": 500})
    assert stored(run) == ("queued", {"batch_size": 500})
    TaskSdkRuns().start(run.dag_id, run.run_id, {"batch_size": 7})
    assert stored(run) == ("queued", {"batch_size": 500})


@pytest.mark.parametrize(("name", "value"), [("batch_size", "many"), ("company_id", "x")])
def test_a_conf_that_the_params_refuse(supervisor: Supervisor, name: str, value: str) -> None:
    """The row can never run: it ends with the param's name."""
    with pytest.raises(Refused, match=name):
        started({name: value})


def test_a_dag_that_is_not_there(supervisor: Supervisor) -> None:
    """A file that is not read yet is no fault of the row's: it waits."""
    with pytest.raises(NotReady, match="ecocomply_none"):
        started(dag_id="ecocomply_none")


def test_a_dag_that_can_not_be_read(supervisor: Supervisor) -> None:
    """Neither is one that is broken."""
    with create_session() as session:
        session.execute(update(DagModel).where(DagModel.dag_id == CLOCKS).values(has_import_errors=True))
    try:
        with pytest.raises(NotReady, match="import errors"):
            started()
    finally:
        with create_session() as session:
            session.execute(update(DagModel).where(DagModel.dag_id == CLOCKS).values(has_import_errors=False))


def test_airflow_that_does_not_answer(supervisor: Supervisor) -> None:
    """An outage: the task fails, and is tried again."""
    supervisor.away = True
    with pytest.raises(Outage, match="connection refused"):
        started()
    with pytest.raises(Outage, match="connection refused"):
        TaskSdkRuns().standing([DagRun(CLOCKS, "job__1")])


@pytest.mark.parametrize(
    ("state", "tasks", "stands"),
    [
        ("queued", (None, None, None, None), RunStanding(live=True, working=False)),
        ("running", ("success", "running", None, None), RunStanding(live=True, working=True)),
        ("running", ("success", "queued", None, None), RunStanding(live=True, working=True)),
        ("running", ("success", "scheduled", None, None), RunStanding(live=True, working=True)),
        ("running", ("success", "up_for_retry", None, None), RunStanding(live=True, working=True)),
        ("running", ("success", "success", None, None), RunStanding(live=True, working=False)),
        ("success", ("success",) * 4, RunStanding(live=False, working=False)),
        ("success", ("skipped",) * 4, RunStanding(live=False, working=False)),
        ("failed", ("success", "failed", "upstream_failed", "upstream_failed"), RunStanding(live=False, working=False)),
        ("failed", ("success", "failed", "skipped", "skipped"), RunStanding(live=False, working=False)),
        ("failed", ("success", *["skipped"] * 3), RunStanding(live=False, working=False, timed_out=True)),
    ],
)  # fmt: skip
def test_how_a_run_stands(
    supervisor: Supervisor, state: str, tasks: tuple[str | None, ...], stands: RunStanding
) -> None:
    """Ruling: running, queued or retrying is work; a run that took too long has skipped tasks and no failed one."""
    run = started()
    put(run, state, *tasks)
    assert TaskSdkRuns().standing([run]) == {run: stands}


def test_many_runs_are_asked_for_together(supervisor: Supervisor) -> None:
    """One that Airflow does not know is left out; live and ended ones are told apart."""
    live, over, unknown = started(), started(), DagRun(CLOCKS, "job__unknown")
    elsewhere = started(dag_id="ecocomply_dead_letter_retention")
    put(over, "success", *["success"] * 4)
    asked = supervisor.asked
    found = TaskSdkRuns().standing([live, over, unknown, elsewhere])
    assert {run: stands.live for run, stands in found.items()} == {live: True, over: False, elsewhere: True}
    assert supervisor.asked - asked == 6
    assert TaskSdkRuns().standing([]) == {}
