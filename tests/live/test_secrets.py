"""After all that happened on the stack: no secret in any log of it, nor in any answer of the API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from tests.live.desk import Desk
from tests.live.test_connections import PASSWORD

_SECRET = re.compile(r"PASSWORD|TOKEN|SECRET|KEY")
_ANSWERS = (
    "/api/v2/connections?limit=100",
    "/api/v2/variables?limit=100",
    "/api/v2/pools",
    "/api/v2/eventLogs?limit=1000&order_by=-when",
    "/api/v2/config",
    "/api/v2/plugins",
    "/api/v2/providers",
    "/api/v2/importErrors",
    "/api/v2/monitor/health",
    "/api/v2/dags?limit=100",
    "/api/v2/dags/~/dagRuns?limit=100",
    "/api/v2/dags/~/dagRuns/~/taskInstances?limit=100",
    "/api/v2/jobs",
    "/almanac/runs",
    "/almanac/alerts",
    "/almanac/clearpath/mail",
)


def secrets_of(environment: Mapping[str, str]) -> dict[str, set[str]]:
    """Return each secret of an environment in every form in which it may stand in a log."""
    # The path of a file with secrets in it is none.
    found = {
        name: value
        for name, value in environment.items()
        if _SECRET.search(name) and not name.endswith("_FILE")
    }
    assert {
        "POSTGRES_PASSWORD",
        "LAB_TOKEN",
        "STORAGE_SIGNING_KEY",
        "AIRFLOW__CORE__FERNET_KEY",
    } <= found.keys()
    found["a connection's password"] = PASSWORD
    return {name: {value, quote(value, safe=""), quote_plus(value)} for name, value in found.items()}


def files(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder."""
    yield from (path for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.last
def test_no_log_holds_a_secret(desk: Desk) -> None:
    """R3: neither Airflow's logs, nor the tasks', nor Postgres's, nor a mail, however it was quoted."""
    home = desk.stack.home
    seen = [*files(home.logs), *files(home.outbox), *files(desk.alert_folder)]
    assert any("attempt=1" in str(path) for path in seen)
    secrets = secrets_of(desk.stack.environment)
    for path in seen:
        content = path.read_bytes().decode(errors="replace")
        for name, forms in secrets.items():
            assert not any(form in content for form in forms), (
                f"{name} stands in {path.relative_to(home.folder)}"
            )


@pytest.mark.last
@pytest.mark.parametrize("login", ["admin", "operator", "viewer"])
def test_no_answer_holds_a_secret(desk: Desk, login: str) -> None:
    """R3: nobody reads a secret back, not even who set it."""
    secrets = secrets_of(desk.stack.environment)
    answered = 0
    for path in _ANSWERS:
        answer = desk.stack.api(login).call("GET", path)
        answered += answer.is_success
        for name, forms in secrets.items():
            assert not any(form in answer.text for form in forms), f"{name} stands in the answer to {path}"
    assert answered > 3


@pytest.mark.last
def test_no_file_of_the_stack_is_for_everybody(desk: Desk) -> None:
    """What must hold secrets is readable by its owner alone."""
    for path in (desk.stack.home.environment, desk.stack.home.passwords):
        assert path.stat().st_mode & 0o077 == 0, path
