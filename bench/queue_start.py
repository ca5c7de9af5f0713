"""From an application's COMMIT to the start of the run's work, on a running stack, against the goal in seconds."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

from sqlalchemy import Engine, text

from bench.databases import Databases
from bench.dispatch_run import open_stack, until_known
from bench.measure import Comparison, Goal
from include.engines import make_engine
from include.errors import Transient
from stack.environment import database_uri

DAG = "leadmetrics_scheduled_tasks"
_WITHIN = 60

_ADD = text(
    'INSERT INTO scheduled_task (id, "taskType", payload) '
    "VALUES (:id, 'signup.alert.internal', jsonb_build_object('sessionId', CAST(:id AS text), "
    "'email', CAST(:id AS text) || '@example.test'))"
)
_CLAIMED_AT = text("SELECT min(moved_at) FROM queue_audit WHERE row_key = :id AND to_status = 'running'")


@dataclass(frozen=True, slots=True)
class Size:
    """How many tasks are committed, one after the other."""

    commits: int


FULL = Size(commits=40)
TINY = Size(commits=2)


def measure(databases: Databases, size: Size) -> list[Comparison]:  # noqa: ARG001 - a benchmark's form
    """Commit a task at a time to an idle queue, and ask the audit trail when it was claimed."""
    seconds: list[float] = []
    with open_stack() as stack, stack.api() as api:
        until_known(api, DAG)
        api.unpause(DAG)
        engine = make_engine(database_uri(stack.environment, "leadmetrics", "postgresql+psycopg"))
        _one(engine)
        for _ in range(size.commits):
            # Until the run before is over: a second one would wait for it.
            time.sleep(6)
            seconds.append(_one(engine))
        engine.dispose()
    ordered = sorted(seconds)
    return [
        _against(1.5, "COMMIT to task start, median", [ordered[len(ordered) // 2]]),
        _against(3.0, "COMMIT to task start, 95th percentile", [ordered[int(len(ordered) * 0.95)]]),
    ]


def _against(goal: float, name: str, seconds: list[float]) -> Comparison:
    """Compare with one second, so that the ratio is the seconds themselves."""
    return Comparison(
        name,
        "a row inserted into an idle queue of the stack, until the trail says that it was claimed",
        "one second by the same clock",
        Goal.AT_MOST,
        goal,
        job_seconds=seconds,
        limit_seconds=[1.0] * len(seconds),
    )


def _one(engine: Engine) -> float:
    """Commit one task, and return the seconds until it was claimed, both by the database's clock."""
    task = f"bench-{uuid.uuid4()}"
    with engine.begin() as connection:
        connection.execute(_ADD, {"id": task})
        committed = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    deadline = time.monotonic() + _WITHIN
    while time.monotonic() < deadline:
        with engine.connect() as connection:
            claimed = connection.execute(_CLAIMED_AT, {"id": task}).scalar()
        if claimed is not None:
            return float((claimed - committed).total_seconds())
        time.sleep(0.05)
    raise Transient(f"bench: task {task} was not claimed within {_WITHIN} s of its COMMIT")
