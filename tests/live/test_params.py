"""What a run may be given: good and bad values made from each DAG's own params, and every way around the API."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.dags.test_declarations import CATALOGUE
from tests.live.conftest import FirstDay, OtherDay
from tests.live.desk import DAG_IDS, Desk, Run
from tests.live.param_values import at_the_edges, bad_values, good_values, schemas_of

every_dag = pytest.mark.parametrize("dag_id", DAG_IDS)
REFUSED = {400, 422}
SESSION_EXPIRY = "clearpath_session_expiry"


@every_dag
def test_bad_values(desk: Desk, dag_id: str) -> None:
    """Ruling 10: each bad value of each param gets a 4xx that names the param, and no run."""
    for name, schema in schemas_of(desk.api, dag_id).items():
        assert bad_values(schema)
        for bad in bad_values(schema):
            answer = desk.ask(dag_id, {name: bad})
            assert answer.status_code in REFUSED, (name, bad, answer.text)
            assert name in answer.text, (name, bad, answer.text)


@every_dag
def test_good_values(held: Any, dag_id: str, desk: Desk) -> None:
    """Ruling 10: what the schema allows is granted, at the edges too."""
    for name, schema in schemas_of(desk.api, dag_id).items():
        assert good_values(schema)
        for good in good_values(schema):
            answer = held(dag_id, {name: good})
            assert answer.is_success, (name, good, answer.text)


WANTED = {
    dag_id: [name for name, default in row["params"].items() if default == "required"]
    for dag_id, row in CATALOGUE.items()
}


@pytest.mark.parametrize("dag_id", [dag_id for dag_id, names in WANTED.items() if names])
def test_a_missing_required_param(desk: Desk, dag_id: str) -> None:
    """T2: without a param that it can't do without, a run is not granted."""
    answer = desk.api.call("POST", f"/api/v2/dags/{dag_id}/dagRuns", json={"logical_date": None, "conf": {}})
    assert answer.status_code in REFUSED, answer.text
    assert all(name in answer.text for name in WANTED[dag_id]), answer.text


@every_dag
def test_unknown_keys(desk: Desk, dag_id: str) -> None:
    """Ruling 10: a slip in a param's name would otherwise run the job with its default."""
    for key in ("unknown", "As_Of", "dry-run", "dry_run ", "", "a" * 5_000, "ключ"):
        answer = desk.ask(dag_id, {key: 1})
        assert answer.status_code in REFUSED, (key, answer.text)
        assert "unknown param" in answer.text
        assert len(answer.text) < 1_000


def test_a_conf_that_is_no_mapping(desk: Desk) -> None:
    """Garbage gets a 4xx, never a 500."""
    for conf in ([], "x", 7, True, [{"as_of": 1}]):
        answer = desk.api.call(
            "POST", f"/api/v2/dags/{SESSION_EXPIRY}/dagRuns", json={"logical_date": None, "conf": conf}
        )
        assert answer.status_code in REFUSED, (conf, answer.text)
    for body in (b"", b"{", b"\xff", b"[" * 100_000, b'{"conf": ' + b"[" * 100_000):
        answer = desk.api.call(
            "POST",
            f"/api/v2/dags/{SESSION_EXPIRY}/dagRuns",
            content=body,
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code in REFUSED, (body[:20], answer.text[:200])


def test_a_date_to_come(desk: Desk) -> None:
    """Airflow would take the run, start none of its tasks until then, and no other run of the DAG meanwhile."""
    coming = [datetime.now(UTC) + timedelta(minutes=5), datetime(9999, 12, 31, tzinfo=UTC)]
    for date in coming:
        for conf in ({}, {"dry_run": True}):
            answer = desk.api.call(
                "POST",
                f"/api/v2/dags/{SESSION_EXPIRY}/dagRuns",
                json={"logical_date": date.isoformat(), "conf": conf},
            )
            assert answer.status_code == 400, (date, conf, answer.text)
            assert "logical_date: " in answer.text


def test_a_conf_too_large_to_read(desk: Desk) -> None:
    """What the check can't hold it refuses, rather than let it pass unseen."""
    answer = desk.ask(SESSION_EXPIRY, {"unknown": "x" * 1_100_000})
    assert answer.status_code == 413


@every_dag
def test_an_as_of_that_is_to_come(held: Any, desk: Desk, dag_id: str) -> None:
    """Ruling 1: a run can't decide by an instant that is not there yet; a preview of it is of use."""
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    for conf in ({"as_of": tomorrow}, {"as_of": tomorrow, "dry_run": False}):
        answer = desk.ask(dag_id, conf)
        assert answer.status_code in REFUSED, answer.text
        assert "later than now" in answer.text
    assert held(dag_id, {"as_of": tomorrow, "dry_run": True}).is_success


@every_dag
def test_a_preview_at_the_edges_runs(
    desk: Desk, first_day: FirstDay, other_day: OtherDay, dag_id: str
) -> None:
    """Ruling 10: what is granted can also be run."""
    run = (first_day.early | other_day.previews)[dag_id]
    assert desk.states([run]) == {run: "success"}
    assert desk.api.run(*run)["conf"].items() >= at_the_edges(desk.api, dag_id).items()
    assert desk.preview(run)["state"] == "success"


@pytest.fixture
def held(desk: Desk) -> Iterator[Any]:
    """Return a function that asks for a run of a paused DAG, and takes back what was granted."""
    paused: set[str] = set()

    def ask(dag_id: str, conf: Mapping[str, Any]) -> httpx.Response:
        if not desk.api.dag(dag_id)["is_paused"]:
            desk.idle(dag_id)
            desk.api.pause(dag_id)
            paused.add(dag_id)
        answer = desk.ask(dag_id, conf)
        if answer.is_success:
            run_id = answer.json()["dag_run_id"]
            gone = desk.admin.call("DELETE", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")
            assert gone.is_success, gone.text
        return answer

    yield ask
    for dag_id in paused:
        desk.api.unpause(dag_id)


def _backfill(desk: Desk, conf: Mapping[str, Any], path: str = "") -> httpx.Response:
    body = {
        "dag_id": SESSION_EXPIRY,
        "from_date": "2026-03-10T00:00:00Z",
        "to_date": "2026-03-11T00:00:00Z",
        "dag_run_conf": dict(conf),
    }
    return desk.admin.call("POST", f"/api/v2/backfills{path}", json=body)


@pytest.mark.parametrize("path", ["", "/dry_run"])
@pytest.mark.parametrize(
    "conf",
    [
        {"unknown": 1},
        {"as_of": "yesterday"},
        {"as_of": "2100-01-01T00:00:00Z"},
        {"grace_days": "many"},
        {"grace_days": -1},
    ],
    ids=str,
)
def test_a_backfill_is_given_no_more(desk: Desk, conf: Mapping[str, Any], path: str) -> None:
    """Ruling 10: a backfill makes many runs at a time; a slip must be told before the first of them."""
    answer = _backfill(desk, conf, path)
    assert answer.status_code in REFUSED, answer.text
    assert next(iter(conf)) in answer.text


# What no schema can say; the rest Airflow refuses whichever way it comes.
ANOTHER_WAY: tuple[Mapping[str, Any], ...] = ({"unknown": 1}, {"as_of": "2100-01-01T00:00:00Z"})


@pytest.fixture(scope="module")
def intruders(desk: Desk, first_day: FirstDay) -> list[Run]:
    """Start a run past the API with each of these, and wait for their ends."""
    runs = [Run(SESSION_EXPIRY, f"another_way_{uuid.uuid4()}") for _ in ANOTHER_WAY]
    asked = [
        desk.start("probe_intruder", {"dag_id": run.dag_id, "run_id": run.run_id, "conf": dict(conf)})
        for run, conf in zip(runs, ANOTHER_WAY, strict=True)
    ]
    desk.succeed(*asked)
    desk.ended(*runs)
    return runs


@pytest.mark.parametrize("number", range(len(ANOTHER_WAY)), ids=lambda number: str(ANOTHER_WAY[number]))
def test_another_way_in(desk: Desk, intruders: list[Run], number: int) -> None:
    """Ruling 10: what comes past the API fails the first task at once, is tried once, and told of."""
    run = intruders[number]
    tasks = desk.tasks(run)
    assert tasks["check_run"]["state"] == "failed"
    assert tasks["check_run"]["try_number"] == 1
    assert {task["state"] for name, task in tasks.items() if name != "check_run"} == {"upstream_failed"}
    assert next(iter(ANOTHER_WAY[number])) in desk.told(run)["body"]
    assert desk.closed(run)["state"] == "failed"


@pytest.mark.parametrize(
    "path", [f"/api/v2/dags/{SESSION_EXPIRY}/dagRuns", "/api/v2/backfills", "/api/v2/backfills/dry_run"]
)
def test_a_stranger_learns_nothing(desk: Desk, path: str) -> None:
    """Who may not start a run gets the same answer whatever is asked, so the names of params stay unknown."""
    viewer = desk.stack.api("viewer")
    bodies: list[dict[str, Any]] = [
        {
            "logical_date": None,
            "conf": conf,
            "dag_id": SESSION_EXPIRY,
            "dag_run_conf": conf,
            "from_date": "2026-03-10T00:00:00Z",
            "to_date": "2026-03-11T00:00:00Z",
        }
        for conf in ({}, {"unknown": 1}, {"as_of": "2100-01-01T00:00:00Z"})
    ]
    if path.endswith("dagRuns"):
        bodies = [{"logical_date": None, "conf": body["conf"]} for body in bodies]
    else:
        bodies = [{k: v for k, v in body.items() if k not in ("conf", "logical_date")} for body in bodies]

    def answers(headers: Mapping[str, str]) -> set[tuple[int, str]]:
        with httpx.Client(base_url=desk.stack.url, trust_env=False, timeout=30) as http:
            return {
                (a.status_code, a.text) for a in (http.post(path, json=b, headers=headers) for b in bodies)
            }

    for headers, status in (
        ({}, 401),
        ({"Authorization": "Bearer nonsense"}, 403),
        ({"Cookie": "_token=nonsense"}, 403),
        ({"Authorization": f"Bearer {viewer.token()}"}, 403),
    ):
        (answer,) = answers(headers)
        assert answer[0] == status, answer
