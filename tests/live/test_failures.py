"""Runs that fail: what is tried again and when, and that operators hear of each failure once."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.live.desk import Desk, Run, mails, text_of, until


@dataclass(frozen=True)
class Fates:
    """Runs that all went wrong at the same time, each in its own way; all have ended."""

    killed_once: Run
    killed_always: Run
    too_long: Run
    permanent: Run
    transient: Run
    outages: tuple[Run, ...]
    pids: dict[Run, dict[int, int]]


@pytest.fixture(scope="module")
def fates(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> Fates:
    """Start every run that is to go wrong, kill what is to be killed, and wait for the ends."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("once", "always")}
    once, always = (desk.start("probe_process", {"folder": str(folder)}) for folder in folders.values())
    too_long = desk.start("probe_limit")
    permanent, transient = (
        desk.start("probe_errors", {"error": kind}) for kind in ("permanent", "transient")
    )
    outages = tuple(desk.start("probe_errors", {"error": "outage"}) for _ in range(3))
    pids: dict[Run, dict[int, int]] = {once: {}, always: {}}
    pids[once][1] = kill(folders["once"], 1)
    (folders["once"] / "go").touch()
    for attempt in (1, 2, 3):
        pids[always][attempt] = kill(folders["always"], attempt)
    desk.ended(once, always, too_long, permanent, transient, *outages)
    return Fates(once, always, too_long, permanent, transient, outages, pids)


def kill(folder: Path, attempt: int) -> int:
    """Kill the process of an attempt, with no chance to say anything, as soon as it works; return its number."""
    pid = int(until(f"attempt {attempt} in {folder}", lambda: _read(folder / f"{attempt}.pid")))
    os.kill(pid, signal.SIGKILL)
    return pid


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def test_killed_on_the_first_of_three_attempts(desk: Desk, fates: Fates) -> None:
    """R2: the second attempt does it; nobody is told of what mended itself."""
    run = fates.killed_once
    assert [one["state"] for one in desk.tries(run, "hold")] == ["failed", "success"]
    assert desk.states([run]) == {run: "success"}
    # By then the one that was killed on all attempts has been told of, and this would have been.
    desk.told(fates.killed_always)
    assert desk.alerts(run) == []
    assert desk.alert_mails(run.run_id) == []


def test_killed_on_the_last_attempt(desk: Desk, fates: Fates) -> None:
    """R2: a process that is killed can tell nobody: the scheduler does, with one ledger row and one mail."""
    run = fates.killed_always
    assert len(set(fates.pids[run].values())) == 3
    assert [one["state"] for one in desk.tries(run, "hold")] == ["failed"] * 3
    row = desk.told(run)
    assert row["cause"] == f"task:{run.dag_id}:{run.run_id}:hold:3"
    assert "killed" in row["body"]
    _told_once(desk, run)
    assert desk.closed(run)["state"] == "failed"


def test_a_run_that_reached_its_limit(desk: Desk, fates: Fates) -> None:
    """Ruling 11: Airflow skips the tasks and calls nobody; one alert all the same."""
    run = fates.too_long
    assert desk.states([run]) == {run: "failed"}
    assert desk.tasks(run)["work_on"]["state"] == "skipped"
    assert "time limit" in desk.told(run)["subject"]
    _told_once(desk, run)
    assert desk.closed(run)["state"] == "failed"


def test_a_permanent_error(desk: Desk, fates: Fates) -> None:
    """Ruling 7: what gives the same answer every time is not tried again; one alert, with the error's words."""
    run = fates.permanent
    assert len(desk.tries(run, "fail")) == 1
    assert "the value is no good" in desk.told(run)["body"]
    _told_once(desk, run)


def test_a_transient_error(desk: Desk, fates: Fates) -> None:
    """Ruling 12: the delays are exact, and only the last attempt is told of."""
    run = fates.transient
    tries = desk.tries(run, "fail")
    assert len(tries) == 3
    with desk.stack.database("airflow").connect() as connection:
        delays = connection.execute(
            text(
                "SELECT retry_delay_override FROM task_instance_history "
                "WHERE dag_id = :dag_id AND run_id = :run_id ORDER BY try_number"
            ),
            run._asdict(),
        )
        assert list(delays.scalars()) == [2, 3]
    for one, following, seconds in ((tries[0], tries[1], 2), (tries[1], tries[2], 3)):
        waited = datetime.fromisoformat(following["start_date"]) - datetime.fromisoformat(one["end_date"])
        assert waited.total_seconds() >= seconds
    assert "hung up" in desk.told(run)["body"]
    _told_once(desk, run)


def _told_once(desk: Desk, run: Run) -> None:
    (mail,) = desk.alert_mails(run.run_id)
    body = text_of(mail)
    assert run.dag_id in body
    # The link leads to the run.
    link = next(line for line in body.splitlines() if line.startswith("http"))
    assert link.startswith(f"{desk.stack.url}/dags/{run.dag_id}/runs/")
    assert desk.admin.call("GET", link.removeprefix(desk.stack.url)).is_success


def test_an_outage(desk: Desk, fates: Fates) -> None:
    """Ruling 11: three runs that meet the same outage are one alert; the next outage is another one."""
    assert set(desk.states(fates.outages).values()) == {"failed"}
    (first,) = until("the outage's alert", lambda: _about(desk, "probe_service is out of reach"))
    assert "nobody answers" in text_of(first)
    rows = [row for run in fates.outages for row in desk.alerts(run)]
    assert sorted(row["kind"] for row in rows) == ["outage", "task", "task", "task"]
    assert all(row["delivered_at"] for row in rows)
    # It is the only mail that leads to one of them.
    told = [mail["Subject"] for run in fates.outages for mail in desk.alert_mails(run.run_id)]
    assert told == [first["Subject"]]
    desk.succeed(desk.start("probe_errors", {"error": "none"}))
    again = desk.start("probe_errors", {"error": "outage"})
    desk.ended(again)
    until("the second alert", lambda: len(_about(desk, "probe_service is out of reach")) == 2)


def _about(desk: Desk, subject: str) -> list[Any]:
    return [mail for mail in mails(desk.alert_folder) if subject in str(mail["Subject"])]
