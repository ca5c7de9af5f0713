"""A row that an application inserts starts its DAG, is judged by the DAG's params, and can be called off."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Row, text

from tests.live.desk import Desk, Run, until

DISPATCHER, HEALTH = "ecocomply_job_dispatcher", "ecocomply_job_health"
CLOCKS = "ecocomply_update_compliance_clocks"

_ADD = text(
    "INSERT INTO background_jobs (job_type, payload)"
    " VALUES ('UPDATE_COMPLIANCE_CLOCKS', CAST(:payload AS jsonb)) RETURNING id"
)


@pytest.fixture
def let_go(desk: Desk) -> Iterator[None]:
    """Let the DAGs go for the test."""
    for dag_id in (DISPATCHER, CLOCKS):
        desk.api.unpause(dag_id)
    yield
    for dag_id in (DISPATCHER, CLOCKS, HEALTH):
        desk.api.pause(dag_id)


def add(desk: Desk, **payload: Any) -> uuid.UUID:
    """Insert a row as an application does, and return its id."""
    with desk.stack.database("ecocomply").begin() as connection:
        return connection.execute(_ADD, {"payload": json.dumps(payload)}).scalar_one()


def job(desk: Desk, job_id: uuid.UUID) -> Row[Any]:
    """Return a row as it is now."""
    with desk.stack.database("ecocomply").connect() as connection:
        return connection.execute(text("SELECT * FROM background_jobs WHERE id = :id"), {"id": job_id}).one()


def test_a_row_starts_its_dag_within_seconds(desk: Desk, let_go: None) -> None:
    """The application's COMMIT is enough: the DAG runs with the payload, and the row ends with its result."""
    job_id = add(desk, batch_size=500)
    until("the row is done", lambda: job(desk, job_id).status == "COMPLETED", within=90)
    row = job(desk, job_id)
    run = Run(CLOCKS, f"job__{job_id}")
    assert row.dag_run_id == f"{run.dag_id}/{run.run_id}"
    assert (row.attempts, row.result["state"]) == (1, "success")
    assert desk.api.run(*run)["conf"] == {"batch_size": 500, "as_of": row.as_of.isoformat()}
    desk.succeed(run)


@pytest.mark.parametrize(
    ("payload", "said", "starts"),
    [({"batch_size": "many"}, "batch_size", False), ({"batchsize": 5}, "unknown param 'batchsize'", True)],
)
def test_what_the_dag_refuses(
    desk: Desk, let_go: None, payload: dict[str, Any], said: str, *, starts: bool
) -> None:
    """A value that the params don't take starts no run, an unknown key fails its first task: both say so in the row."""
    job_id = add(desk, **payload)
    until("the row has failed", lambda: job(desk, job_id).status == "FAILED", within=90)
    row = job(desk, job_id)
    assert said in row.error_message
    assert row.attempts == 1
    assert desk.api.call("GET", f"/api/v2/dags/{CLOCKS}/dagRuns/job__{job_id}").is_success is starts


def test_a_job_that_is_called_off_shows_as_skipped(desk: Desk, let_go: None) -> None:
    """A person's cancel before the start: no task works, and none has failed."""
    desk.api.pause(CLOCKS)
    job_id = add(desk)
    run = Run(CLOCKS, f"job__{job_id}")
    until("there is its run", lambda: run.run_id in {one["dag_run_id"] for one in desk.api.runs(CLOCKS)}, 90)
    with desk.stack.database("ecocomply").begin() as connection:
        connection.execute(
            text("UPDATE background_jobs SET status = 'CANCELLED' WHERE id = :id"), {"id": job_id}
        )
    desk.api.unpause(CLOCKS)
    assert desk.api.finished(*run, 90)["state"] == "success"
    assert {task["state"] for task in desk.api.tasks(*run)} == {"skipped"}
    assert job(desk, job_id).status == "CANCELLED"


def test_a_run_that_died_is_seen_as_such(desk: Desk, let_go: None) -> None:
    """The health check asks Airflow by itself: a silent row of a run that is over is due again, and runs anew."""
    desk.succeed(over := desk.start(CLOCKS))
    key = f"{over.dag_id}/{over.run_id}"
    lost = text(
        "UPDATE background_jobs SET status = 'RUNNING', attempts = 1, dag_run_id = :run, claimed_by = :by, "
        "heartbeat_at = now() - interval '6 minutes' WHERE id = :id"
    )
    with desk.stack.database("ecocomply").begin() as connection:
        # In one transaction: the dispatcher never sees it wait.
        job_id = connection.execute(_ADD, {"payload": "{}"}).scalar_one()
        connection.execute(lost, {"id": job_id, "run": key, "by": f"{key} recalculate_clocks 1"})
    # A run of a paused DAG would wait.
    desk.api.unpause(HEALTH)
    desk.start(HEALTH)
    until("the row is done", lambda: job(desk, job_id).status == "COMPLETED", within=90)
    assert job(desk, job_id).attempts == 2
