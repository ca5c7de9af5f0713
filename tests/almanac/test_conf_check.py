"""What is refused before it is a run, over ASGI; who may ask is Airflow's matter, and tried on a live stack."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from almanac import conf_check
from almanac.params import run_params

RUNS = "/api/v2/dags/a_dag/dagRuns"
LATER = datetime(2199, 1, 1, tzinfo=UTC)


async def taken(request: Request) -> JSONResponse:
    """Answer as Airflow does to a run that it takes, with what it was asked for."""
    return JSONResponse(await request.json())


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """Return a caller who may trigger the DAG, which knows the two params of all DAGs."""

    async def anybody(*_: Any) -> bool:
        return True

    monkeypatch.setattr(conf_check, "_may_trigger", anybody)
    monkeypatch.setattr(
        conf_check, "_params_of", lambda _: {name: param.schema for name, param in run_params().items()}
    )
    return TestClient(conf_check.ConfCheck(Starlette(routes=[Route(RUNS, taken, methods=["POST"])])))


@pytest.mark.parametrize("conf", [{}, {"dry_run": True}, None])
@pytest.mark.parametrize(
    "date", [LATER.isoformat(), LATER.timestamp(), "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"]
)
def test_a_date_that_no_run_can_have(client: TestClient, conf: Any, date: Any) -> None:
    """It would be accepted, start nothing and block the DAG: it is refused, whatever the conf is."""
    answer = client.post(RUNS, json={"logical_date": date, "conf": conf})
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("logical_date: ")


@pytest.mark.parametrize(
    "asked",
    [
        {"logical_date": None},
        {"logical_date": "2026-10-01T00:00:00.123456+02:00", "conf": {}},
        {"logical_date": "2026-01-01T00:00:00Z", "conf": {"dry_run": True}},
        # Airflow's own to refuse.
        {"logical_date": "tomorrow", "conf": None},
        {"logical_date": "2026-01-01T00:00:00"},
    ],
    ids=str,
)
def test_what_is_left_to_airflow(client: TestClient, asked: dict[str, Any]) -> None:
    """What is right passes as it came, and so does what Airflow says better."""
    answer = client.post(RUNS, json=asked)
    assert (answer.status_code, answer.json()) == (200, asked)


def test_an_unknown_param(client: TestClient) -> None:
    """The check of the conf stands beside that of the date."""
    answer = client.post(RUNS, json={"logical_date": "2026-01-01T00:00:00Z", "conf": {"dryrun": True}})
    assert answer.status_code == 400
    assert "unknown param" in answer.json()["detail"]
