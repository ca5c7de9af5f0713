"""A queue's DAG starts by the application's COMMIT, and every row is done once, whatever events are lost."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from tests.live.conftest import OtherDay
from tests.live.desk import Desk, until
from tests.live.rows import value

DAG = "leadmetrics_scheduled_tasks"
BURST = 10_000

# As an application would: one statement, one COMMIT, and a statement-level NOTIFY by the table's trigger. Nobody is
# reminded, since the registrations are gone: that is done as well, and floods no outbox.
_ADD_TASKS = text(
    'INSERT INTO scheduled_task (id, "taskType", payload, "scheduledAt") '
    "SELECT :name || '-' || n, 'signup.reminder.early', jsonb_build_object('sessionId', :name || '-' || n), now() "
    "FROM generate_series(1, :tasks) AS n"
)


@pytest.fixture
def let_go(desk: Desk, other_day: OtherDay) -> Iterator[None]:
    """Let the DAG go for the test, idle at first."""
    desk.api.unpause(DAG)
    desk.idle(DAG)
    yield
    desk.api.pause(DAG)


def add_tasks(desk: Desk, tasks: int) -> str:
    """Add due tasks under a name of their own, and return it."""
    name = f"burst-{uuid.uuid4().hex[:8]}"
    with desk.stack.database("leadmetrics").begin() as connection:
        connection.execute(_ADD_TASKS, {"name": name, "tasks": tasks})
    return name


def open_tasks(desk: Desk, name: str) -> int:
    """Return how many tasks of a burst are not done."""
    return value(
        desk.stack.database("leadmetrics"),
        "SELECT count(*) FROM scheduled_task WHERE id LIKE :name || '-%' AND status <> 'completed'",
        name=name,
    )


def done(desk: Desk, name: str) -> tuple[int, int]:
    """Return how often tasks of a burst came to their end, by the audit trail, and how many tasks those were."""
    with desk.stack.database("leadmetrics").connect() as connection:
        found = connection.execute(
            text(
                "SELECT count(*), count(DISTINCT row_key) FROM queue_audit "
                "WHERE queue = 'scheduled_task' AND row_key LIKE :name || '-%' AND to_status = 'completed'"
            ),
            {"name": name},
        ).one()
    return tuple(found)


def test_a_commit_starts_a_run(desk: Desk, let_go: None) -> None:
    """The cron is a quarter of an hour away: what starts the run is the COMMIT."""
    name = add_tasks(desk, 1)
    until("the task is done", lambda: open_tasks(desk, name) == 0, within=90)
    assert done(desk, name) == (1, 1)


def test_a_burst_while_the_triggerer_is_killed(desk: Desk, let_go: None, record_property: Any) -> None:
    """10,000 rows, the triggerer killed between them: events are lost, no row is; none is done twice."""
    names = [add_tasks(desk, BURST // 5)]
    pid = desk.stack.pids()["triggerer"]
    os.kill(pid, signal.SIGKILL)
    names += [add_tasks(desk, BURST // 5) for _ in range(3)]
    until("another triggerer", lambda: desk.stack.pids().get("triggerer", pid) != pid)
    names.append(add_tasks(desk, BURST // 5))
    until(
        "all tasks are done", lambda: not any(open_tasks(desk, name) for name in names), within=240, every=1
    )
    assert [done(desk, name) for name in names] == [(BURST // 5, BURST // 5)] * 5
    record_property(
        "queues", f"scheduled_task: a burst of {BURST:,} rows, the triggerer killed, each done once"
    )
