"""Which zone data decides: every process of the platform says so, and none starts on any other."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path

import pytest

from include.as_of import ZONE_DATA
from include.clearpath import ZONE
from stack import environment
from tests.live.conftest import FirstDay
from tests.live.desk import Desk, Run

SERVICES = ("api-server", "scheduler", "dag-processor", "triggerer")
DAILY = {
    "clearpath_session_expiry": 8,
    "clearpath_certificate_expiry": 8,
    "clearpath_cnrpp_expiry_alert": 8,
    "clearpath_lab_result_polling": 12,
}
NEXT_RUN = """
import json, sys
from datetime import datetime
from airflow.models.serialized_dag import SerializedDagModel
from airflow.timetables.base import DataInterval, TimeRestriction
from airflow.utils.session import create_session
with create_session() as session:
    for dag_id in sys.argv[2:]:
        timetable = SerializedDagModel.get(dag_id, session=session).dag.timetable
        earliest = datetime.fromisoformat(sys.argv[1])
        found = timetable.next_dagrun_info(
            last_automated_data_interval=None, restriction=TimeRestriction(earliest, None, True)
        )
        print("next:", dag_id, found.run_after.isoformat())
"""


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_says_it(desk: Desk, service: str) -> None:
    """T7: a person who doubts a date finds in the log which data it came from."""
    log = (desk.stack.home.logs / f"{service}.log").read_text(encoding="utf-8", errors="replace")
    assert f"{service}: zone data: tzdata {ZONE_DATA}" in log


def test_a_task_says_it(desk: Desk, first_day: FirstDay) -> None:
    """T7: so does the process that decides."""
    run: Run = first_day.runs[0]
    assert f"zone_data={ZONE_DATA}" in desk.log(run, "check_run")


def test_the_next_runs(desk: Desk) -> None:
    """T7: what the scheduler has planned: Alberta stays on UTC-6, whatever the machine's own data says."""
    for dag_id, hour in DAILY.items():
        planned = datetime.fromisoformat(desk.api.dag(dag_id)["next_dagrun_run_after"])
        assert (planned.hour, planned.minute) == (hour, 0), dag_id


@pytest.mark.parametrize("day", ["2026-11-02", "2027-01-15"])
def test_the_days_of_the_case(desk: Desk, day: str) -> None:
    """T7: 02:00 in Edmonton is 08:00Z on both days, by the DAGs as the stack holds them."""
    done = subprocess.run(
        [sys.executable, "-c", NEXT_RUN, f"{day}T00:00:00+00:00", *DAILY],
        env=environment.for_processes(desk.stack.environment),
        cwd=desk.stack.home.project,
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("next: "))
    assert found == {dag_id: f"{day}T{hour:02}:00:00+00:00" for dag_id, hour in DAILY.items()}
    assert datetime.fromisoformat(found["clearpath_session_expiry"]).astimezone(
        ZONE
    ).date() == date.fromisoformat(day)


def test_no_service_starts_on_other_data(desk: Desk, tmp_path: Path) -> None:
    """T7: on the machine's own data a schedule would be off by an hour, and nobody would see why."""
    asked = environment.for_processes(desk.stack.environment) | {
        "PYTHONTZPATH": "/usr/share/zoneinfo",
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__API__PORT": "0",
    }
    started = {
        service: subprocess.Popen(
            [sys.executable, "-m", "airflow", service],
            env=asked,
            cwd=desk.stack.home.project,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for service in SERVICES
    }
    try:
        for service, process in started.items():
            said, _ = process.communicate(timeout=90)
            assert process.returncode != os.EX_OK, service
            assert "/usr/share/zoneinfo would be read" in said, service
    finally:
        for process in started.values():
            process.kill()
            process.wait()
