"""Every DAG, however its run was asked for: by hand, by an asset event, by the database itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select, text

from include.platform.tables import RUN_SUMMARY
from tests.live.conftest import FirstDay, OtherDay
from tests.live.desk import CLEARPATH_IDS, OTHER_IDS, Desk, Run, until
from tests.live.rows import add_certificate, put_off_mails, value

DISPATCH = "clearpath_email_queue_dispatch"
RENDERING = "clearpath_certificate_rendering"
LONG_AGO = "2020-01-01T00:00:00Z"
every_dag = pytest.mark.parametrize("dag_id", CLEARPATH_IDS)
DIGESTS = ("ecocomply_digest_delivery_daily", "ecocomply_digest_delivery_weekly")
SHARING = dict.fromkeys(DIGESTS, DIGESTS)
"""DAGs of which one, run beside the other, may send what the other one has claimed."""

every_other_dag = pytest.mark.parametrize("dag_id", OTHER_IDS)


@dataclass(frozen=True)
class Again:
    """A second run of every DAG when nothing is due, and jobs_state before and after."""

    runs: dict[str, Run]
    before: dict[str, Any]
    after: dict[str, Any]


@pytest.fixture(scope="module")
def again(desk: Desk, first_day: FirstDay) -> Again:
    """Run every DAG once more, with nothing said; the lab has nothing new."""
    # What other tests' certificates ask for, and the triggerer has yet to hear of, is not due any more.
    # A mail of the demo's customers that fell due since the first day is not either, and none falls due now.
    put_off_mails(desk.stack.database("clearpath"))
    desk.succeed(*(desk.start(dag_id) for dag_id in (DISPATCH, RENDERING)))
    desk.idle(*CLEARPATH_IDS)
    kept = desk.stack.home.lab.with_suffix(".kept")
    shutil.copy(desk.stack.home.lab, kept)
    desk.stack.home.lab.write_text("[]")
    try:
        before = _jobs_state(desk)
        runs = {dag_id: desk.start(dag_id) for dag_id in CLEARPATH_IDS}
        desk.succeed(*runs.values())
        return Again(runs, before, _jobs_state(desk))
    finally:
        kept.replace(desk.stack.home.lab)


def _jobs_state(desk: Desk) -> dict[str, Any]:
    with desk.stack.database("clearpath").connect() as connection:
        rows = connection.execute(text("SELECT job_name, last_run_at, last_poll_timestamp FROM jobs_state"))
        return {row.job_name: row for row in rows}


@every_dag
def test_as_of_comes_first(desk: Desk, first_day: FirstDay, dag_id: str) -> None:
    """T2: a run that was given an as_of decides by it, even where it has a logical date too."""
    run = first_day.early[dag_id]
    asked = desk.api.run(*run)
    assert desk.summary(run)["as_of"] == datetime.fromisoformat(asked["conf"]["as_of"])


@every_dag
def test_a_run_without_a_logical_date(desk: Desk, again: Again, dag_id: str) -> None:
    """T2: `ds` and its like are absent from such a run; it succeeds, and decides by its run_after."""
    run = again.runs[dag_id]
    asked = desk.api.run(*run)
    assert asked["logical_date"] is None
    assert desk.summary(run)["as_of"] == datetime.fromisoformat(asked["run_after"])
    assert {task["state"] for task in desk.tasks(run).values()} == {"success"}


@every_other_dag
def test_every_other_dag(desk: Desk, other_day: OtherDay, dag_id: str) -> None:
    """T2, ruling 8: without a logical date it succeeds on its demo data, with something done and a closed summary."""
    summary = desk.summary(other_day.runs[dag_id])
    assert summary["ended_at"] is not None
    assert summary["as_of"] == datetime.fromisoformat(desk.api.run(*other_day.runs[dag_id])["run_after"])
    # Where rows start a run by themselves, an earlier one may have left nothing to this one.
    with desk.stack.database("almanac").connect() as connection:
        runs = connection.execute(
            select(RUN_SUMMARY.c.counts).where(
                RUN_SUMMARY.c.dag_id.in_(SHARING.get(dag_id, (dag_id,))), ~RUN_SUMMARY.c.preview
            )
        )
        assert any(counts.get("processed", 0) > 0 for counts in runs.scalars())


@every_other_dag
def test_every_other_preview(desk: Desk, other_day: OtherDay, dag_id: str) -> None:
    """Ruling 9: the preview is all in the first task, and the others are skipped."""
    run = other_day.previews[dag_id]
    tasks = desk.tasks(run)
    assert tasks.pop("check_run")["state"] == "success"
    assert {task["state"] for task in tasks.values()} == {"skipped"}
    assert desk.summary(run)["preview"]


@every_dag
def test_nothing_is_due(desk: Desk, again: Again, dag_id: str) -> None:
    """R1: the run succeeds with processed 0, and its last step has run."""
    summary = desk.summary(again.runs[dag_id])
    assert summary["counts"].get("processed", 0) == 0
    assert summary["state"] == "success"
    assert summary["ended_at"] is not None
    line = next(line for line in _last_log(desk, again.runs[dag_id]) if "Job completed" in line)
    assert json.loads(line.partition("Job completed: ")[2])["processed"] == 0


def test_nothing_is_due_and_the_bookkeeping_stands(again: Again) -> None:
    """R1: every job notes its run; the lab's watermark stays where it is."""
    assert again.before["labPoll"].last_poll_timestamp is not None
    assert again.after["labPoll"].last_poll_timestamp == again.before["labPoll"].last_poll_timestamp
    for job in ("emailQueue", "sessionExpiry", "certificateExpiry", "cnrpp", "labPoll"):
        assert again.after[job].last_run_at > again.before[job].last_run_at, job


def _last_log(desk: Desk, run: Run) -> list[str]:
    tasks = desk.tasks(run)
    last = max(tasks.values(), key=lambda task: task["start_date"])["task_id"]
    return [json.loads(line)["event"] for line in desk.log(run, last).splitlines() if line.strip()]


@pytest.fixture
def new_runs(desk: Desk, first_day: FirstDay) -> Callable[[], Run]:
    """Return a function that waits for a run of a DAG that was not there before."""
    desk.idle(RENDERING)
    before = {run["dag_run_id"] for run in desk.api.runs(RENDERING)}

    def wait() -> Run:
        def look() -> Run | None:
            fresh = {run["dag_run_id"] for run in desk.api.runs(RENDERING)} - before
            return Run(RENDERING, min(fresh)) if fresh else None

        return until("a run that an event started", look)

    return wait


def test_an_asset_event(desk: Desk, new_runs: Any) -> None:
    """T2: a DAG that listens to an asset runs by an event of it, and decides by its run_after."""
    (asset,) = desk.api.call(
        "GET", "/api/v2/assets", params={"name_pattern": "clearpath_certificates"}
    ).json()["assets"]
    answer = desk.admin.call("POST", "/api/v2/assets/events", json={"asset_id": asset["id"], "extra": {}})
    assert answer.is_success, answer.text
    run = new_runs()
    desk.succeed(run)
    asked = desk.api.run(*run)
    assert asked["run_type"] == "asset_triggered"
    assert desk.summary(run)["as_of"] == datetime.fromisoformat(asked["logical_date"] or asked["run_after"])


def test_a_notification_of_the_database(desk: Desk, new_runs: Any) -> None:
    """T2: a certificate that an application inserts is rendered without anybody asking for it."""
    clearpath = desk.stack.database("clearpath")
    started = datetime.now(UTC)
    certificate = add_certificate(clearpath)
    desk.succeed(new_runs())
    path = until(
        "the certificate's PDF",
        lambda: value(
            clearpath, "SELECT coalesce(pdf_path, '') FROM certificates WHERE id = :id", id=certificate
        ),
    )
    assert (desk.stack.home.storage / path).read_bytes().startswith(b"%PDF")
    assert value(clearpath, "SELECT rendered_at FROM certificates WHERE id = :id", id=certificate) > started
