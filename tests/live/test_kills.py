"""Processes of the platform that are killed amid the work: what was begun ends right, and nothing goes out twice."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from tests.live.conftest import FirstDay
from tests.live.desk import Desk, Run, mails, until
from tests.live.rows import queue_mails, statuses, value
from tests.live.test_failures import kill

DISPATCH = "clearpath_email_queue_dispatch"
PEOPLE = 30


@pytest.mark.timeout(1200)
def test_the_scheduler_is_killed(desk: Desk, first_day: FirstDay, tmp_path: Path) -> None:
    """R2, E1: killed amid a run, and between a failure and its telling: the run ends right, the telling is made up."""
    desk.idle(DISPATCH)
    addresses = queue_mails(desk.stack.database("clearpath"), people=PEOPLE)
    failed = desk.start("probe_process", {"folder": str(tmp_path)})
    for attempt in (1, 2, 3):
        kill(tmp_path, attempt)
    desk.ended(failed)
    sending = desk.start(DISPATCH)
    until("the run's first task", lambda: _at_work(desk, sending), every=0.02)
    assert desk.alerts(failed) == []

    _kill(desk, "scheduler")

    # Found lost after a minute and tried again after another, and that again if the machine is busy.
    desk.succeed(sending, within=600)
    assert desk.told(failed, within=180)["cause"].startswith("task:probe_process:")
    assert len(desk.alert_mails(failed.run_id)) == 1
    _assert_sent_once(desk, addresses)


@pytest.mark.timeout(900)
def test_postgres_is_killed(desk: Desk, first_day: FirstDay) -> None:
    """E1: every process loses its database amid a run; the next run ends right, and nothing was sent twice."""
    desk.idle(DISPATCH)
    addresses = queue_mails(desk.stack.database("clearpath"), people=PEOPLE)
    sending = desk.start(DISPATCH)
    until("claimed mail", lambda: _claimed(desk), every=0.01)

    _kill(desk, "postgres")

    # Whatever became of this one: a task may have lost its supervisor's answer, and waits to be tried again.
    until("the API server answers again", lambda: desk.api.call("GET", "/api/v2/version").is_success)
    until("the database answers again", lambda: _answers(desk))
    # A task that lost its supervisor is found after a minute, and tried again after another.
    until("the run's end", lambda: _settled(desk, sending), within=300)
    following = desk.start(DISPATCH)
    desk.succeed(following, within=120)
    _assert_sent_once(desk, addresses)


def _at_work(desk: Desk, run: Run) -> bool:
    return bool(
        value(
            desk.stack.database("airflow"),
            "SELECT count(*) FROM task_instance WHERE run_id = :run_id AND state IN ('queued', 'running', 'success')",
            run_id=run.run_id,
        )
    )


def _claimed(desk: Desk) -> bool:
    return bool(
        value(desk.stack.database("clearpath"), "SELECT count(*) FROM email_log WHERE batch_id IS NOT NULL")
    )


def _answers(desk: Desk) -> bool:
    try:
        return value(desk.stack.database("airflow"), "SELECT true")
    except OperationalError:
        # It still recovers what was committed before it was killed.
        return False


def _settled(desk: Desk, run: Run) -> bool:
    return desk.states([run])[run] in {"success", "failed"}


def _kill(desk: Desk, name: str) -> None:
    """Kill a program of the stack, and wait until it has been started again."""
    pid = desk.stack.pids()[name]
    os.kill(pid, signal.SIGKILL)
    until(f"another {name}", lambda: desk.stack.pids().get(name, pid) != pid)


def _assert_sent_once(desk: Desk, addresses: list[str]) -> None:
    clearpath = desk.stack.database("clearpath")
    with clearpath.connect() as connection:
        open_claims = connection.execute(
            text("SELECT count(*) FROM email_attempts WHERE outcome IS NULL")
        ).scalar_one()
    assert open_claims == 0
    assert {address: statuses(clearpath, address) for address in addresses} == {
        address: ["sent"] for address in addresses
    }
    went_out = Counter(str(mail["To"]) for mail in mails(desk.stack.home.outbox))
    assert {address: went_out[address] for address in addresses} == dict.fromkeys(addresses, 1)
