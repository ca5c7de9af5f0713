"""The whole stack as it runs: who reaches it, what it was set up with, and that it heals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml

from stack import environment
from stack.settings_file import load
from tests.live import LiveStack

R3_PASSWORD = "p/s@s:%#1"

READ_BACK = """
import json, sys
from airflow.sdk import BaseHook
found = BaseHook.get_connection(sys.argv[1])
print("read back:", json.dumps([found.host, found.login, found.password, found.port, found.extra_dejson]))
"""


def in_stack(live_stack: LiveStack, *command: str, more: Mapping[str, str] | None = None) -> str:
    """Run Python in the stack's environment and return what it wrote."""
    whole = environment.for_processes(live_stack.stack.environment) | dict(more or {})
    done = subprocess.run(
        [sys.executable, *command],
        env=whole,
        cwd=live_stack.home.project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_nothing_listens_beyond_loopback(live_stack: LiveStack) -> None:
    """Airflow's log servers and Postgres would gladly serve every network that the machine is in."""
    listening = {}
    for name, pid in live_stack.pids().items():
        process = psutil.Process(pid)
        for each in [process, *process.children(recursive=True)]:
            for connection in each.net_connections():
                if connection.status == psutil.CONN_LISTEN:
                    listening[name] = connection.laddr.ip
    assert {"api-server", "postgres", "lab"} <= set(listening)
    assert set(listening.values()) == {"127.0.0.1"}


@pytest.mark.parametrize("path", ["/api/v2/dags", "/api/v2/connections", "/api/v2/variables"])
def test_nobody_gets_in_without_a_login(live_stack: LiveStack, path: str) -> None:
    """ALL_ADMINS would make a request without a token an administrator."""
    answer = httpx.get(live_stack.url + path, trust_env=False)
    assert answer.status_code == httpx.codes.UNAUTHORIZED
    wrong = httpx.post(
        live_stack.url + "/auth/token", json={"username": "admin", "password": "admin"}, trust_env=False
    )
    assert wrong.status_code == httpx.codes.UNAUTHORIZED


def test_each_login_has_its_role(live_stack: LiveStack) -> None:
    """A viewer reads, an operator runs DAGs, and neither sees connections."""
    dag_id = min(live_stack.api().dag_ids())
    asked = {"logical_date": None, "conf": {"no_such_param": 1}}
    path = f"/api/v2/dags/{dag_id}/dagRuns"
    assert live_stack.api("viewer").call("GET", path).status_code == httpx.codes.OK
    assert live_stack.api("viewer").call("POST", path, json=asked).status_code == httpx.codes.FORBIDDEN
    assert live_stack.api("operator").call("POST", path, json=asked).status_code != httpx.codes.FORBIDDEN
    for login in ("viewer", "operator"):
        answer = live_stack.api(login).call("GET", "/api/v2/connections")
        assert answer.status_code == httpx.codes.FORBIDDEN


def test_what_the_settings_file_says_is_in_airflow(live_stack: LiveStack) -> None:
    """Nothing in Airflow reads the file: every connection, pool and variable has to be carried over."""
    settings = load(live_stack.home.settings, live_stack.stack.environment)
    api = live_stack.api()
    for connection in settings.connections:
        found = api.call("GET", f"/api/v2/connections/{connection.conn_id}").json()
        assert found["conn_type"] == connection.conn_type
        assert (found["host"] or None) == (connection.host or None)
        assert (found["port"] or None) == connection.port
        assert (found["schema"] or None) == (connection.schema or None)
    for pool in settings.pools:
        assert api.call("GET", f"/api/v2/pools/{pool.name}").json()["slots"] == pool.slots
    for variable in settings.variables:
        assert api.call("GET", f"/api/v2/variables/{variable.name}").status_code == httpx.codes.OK


def with_settings(live_stack: LiveStack, folder: Path, **content: Any) -> None:
    """Load a settings file of a test's own into the stack's Airflow."""
    (folder / "airflow_settings.yaml").write_text(yaml.safe_dump({"airflow": content}), encoding="utf-8")
    code = (
        "import os, sys; from pathlib import Path; from stack.prepare import load_settings; "
        "from stack.settings_file import load; load_settings(load(Path(sys.argv[1]), os.environ))"
    )
    in_stack(live_stack, "-c", code, str(folder / "airflow_settings.yaml"), more={"R3_PASSWORD": R3_PASSWORD})


def test_a_password_of_any_characters_reaches_a_hook(live_stack: LiveStack, tmp_path: Path) -> None:
    """R3: from the environment over the file and Airflow's database to a hook, exactly."""
    url = "https://lab.example:8443/partner/v1?x=%20#y"
    extra = {"api_key": R3_PASSWORD, "number": 1}
    entry = {
        "conn_id": "stack_test_r3",
        "conn_type": "http",
        "conn_host": url,
        "conn_login": R3_PASSWORD,
        "conn_password": "${R3_PASSWORD}",
        "conn_extra": extra,
    }
    try:
        with_settings(live_stack, tmp_path, connections=[entry])
        server = {"_AIRFLOW_PROCESS_CONTEXT": "server"}
        said = in_stack(live_stack, "-c", READ_BACK, "stack_test_r3", more=server)
        line = next(line for line in said.splitlines() if line.startswith("read back: "))
        assert json.loads(line.removeprefix("read back: ")) == [url, R3_PASSWORD, R3_PASSWORD, None, extra]
        shown = live_stack.api().call("GET", "/api/v2/connections/stack_test_r3").json()
        assert shown["password"] != R3_PASSWORD
    finally:
        live_stack.api().call("DELETE", "/api/v2/connections/stack_test_r3")


def test_a_change_made_in_the_ui_stays_until_the_file_changes(live_stack: LiveStack, tmp_path: Path) -> None:
    """A restart must not take back what a person set; a new value in the file must still arrive."""
    api = live_stack.api()
    name = "stack_test_variable"
    path = f"/api/v2/variables/{name}"

    def in_file(value: str) -> None:
        with_settings(live_stack, tmp_path, variables=[{"variable_name": name, "variable_value": value}])

    def now() -> str:
        return api.call("GET", path).json()["value"]

    try:
        in_file("first")
        assert now() == "first"
        api.call("PATCH", path, json={"key": name, "value": "a person's"})
        in_file("first")
        assert now() == "a person's"
        in_file("second")
        assert now() == "second"
    finally:
        api.call("DELETE", path)
        # What the stack's own file last gave was replaced by the tests'; a load of that file mends it.
        in_stack(live_stack, "-m", "stack.prepare")


@pytest.mark.parametrize("name", ["dag-processor", "triggerer", "lab"])
def test_what_dies_is_started_again(live_stack: LiveStack, name: str) -> None:
    """One process that runs out of memory must not take the platform down for good."""
    before = live_stack.pids()[name]
    os.kill(before, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while live_stack.pids().get(name) in (None, before):
        assert time.monotonic() < deadline
        time.sleep(0.1)
