"""What the job API tells, to whom, and that a client sees every status of a job."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx
import pytest

from include.ecocomply.job_records.attempts import attempt
from include.ecocomply.job_records.dag_runs import DagRun, TaskTry
from include.errors import Transient
from tests.ecocomply.jobs_world import DAG, ago, dead
from tests.ecocomply_api.conftest import Api

PATHS = ("/jobs/metrics", "/health", "/jobs/events")


@pytest.mark.parametrize("path", PATHS)
def test_nobody_who_is_not_signed_in(api: Api, path: str) -> None:
    """Ruling 19: everything but a signed link wants one of Airflow's users."""
    assert api.as_user(None).get(path).status_code == 401


def done(api: Api, run_id: str) -> None:
    """Let a job come to its end."""
    with attempt(api.records.run(), TaskTry(DagRun(DAG, run_id), "work", 1)) as job:
        job.complete({})


def test_metrics(api: Api) -> None:
    """18.4: by type, over the window; a job of yesterday is none of the hour's."""
    done(api, "scheduled__1")
    done(api, "scheduled__2")
    dead(api.records, "scheduled__3")
    api.records.execute(
        "UPDATE background_jobs SET created_at = :at WHERE dag_run_id LIKE '%\\_\\_1'", at=ago(hours=2)
    )
    for window, total, done_jobs in (("hour", 2, 1), ("day", 3, 2), ("week", 3, 2)):
        answer = api.as_user().get("/jobs/metrics", params={"window": window})
        said = answer.raise_for_status().json()
        (metrics,) = said["metrics"]
        assert (said["period"], metrics["job_type"]) == (window, "RISK_SCORE_CALCULATION")
        assert (metrics["total_jobs"], metrics["successful_jobs"]) == (total, done_jobs)
        assert (metrics["failed_jobs"], metrics["dlq_count"]) == (1, 1)
        assert metrics["success_rate"] == round(done_jobs / total * 100, 2)
        assert 0 <= metrics["p95_duration_ms"] <= metrics["p99_duration_ms"]


def test_a_window_that_is_none(api: Api) -> None:
    """A 422 that names the part."""
    answer = api.as_user().get("/jobs/metrics", params={"window": "year"})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("window: ")


def test_health(api: Api) -> None:
    """18.4: one stale job makes it degraded; the numbers say why."""
    assert api.as_user().get("/health").json()["status"] == "healthy"
    api.records.add()
    api.records.execute("UPDATE background_jobs SET status = 'RUNNING'")
    api.records.execute("UPDATE background_jobs SET health_status = 'STALE'")
    said = api.as_user().get("/health").raise_for_status().json()
    details = said["details"]
    assert (said["status"], details["stale_jobs"], details["unresolved_dlq"]) == ("degraded", 1, 0)


@dataclass
class Listener:
    """A client that listens, in a thread of its own."""

    events: list[dict[str, Any]] = field(default_factory=list)
    listening: threading.Event = field(default_factory=threading.Event)

    def read(self, client: httpx.Client, params: dict[str, Any]) -> None:
        with client.stream("GET", "/jobs/events", params=params) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            name = ""
            try:
                for line in answer.iter_lines():
                    self.listening.set()
                    name = line.removeprefix("event: ") if line.startswith("event: ") else name
                    if line.startswith("data: "):
                        assert name == "job_status"
                        self.events.append(json.loads(line.removeprefix("data: ")))
            except httpx.HTTPError:
                return

    def of(self, job_id: UUID) -> list[tuple[str, Any]]:
        """Return what was said of a job: its status, and how far it was."""
        return [(one["status"], one["progress"]) for one in self.events if one["job_id"] == str(job_id)]

    def until(self, job_id: UUID, status: str) -> None:
        """Wait for a job's status."""
        deadline = time.monotonic() + 10
        while status not in [said for said, _ in self.of(job_id)]:
            assert time.monotonic() < deadline, self.events
            time.sleep(0.02)


@contextmanager
def listening(api: Api, **params: Any) -> Generator[Listener]:
    """Listen until the end."""
    listener, client = Listener(), api.as_user()
    thread = threading.Thread(target=listener.read, args=(client, params), daemon=True)
    thread.start()
    assert listener.listening.wait(10)
    yield listener


def test_a_client_sees_every_status_of_a_job(api: Api) -> None:
    """15.5: waiting, at work, how far it is, waiting again, and done, in their order."""
    with listening(api) as client:
        job_id = api.records.add()
        run = DagRun(DAG, f"job__{job_id}")
        api.records.execute("UPDATE background_jobs SET dag_run_id = :run", run=run.key)
        with suppress(Transient), attempt(api.records.run(), TaskTry(run, "work", 1)) as job:
            job.progress(20, 45)
            raise Transient("storage: 503")
        with attempt(api.records.run(), TaskTry(run, "work", 2)) as job:
            job.complete({})
        client.until(job_id, "COMPLETED")
    half = {"current": 20, "total": 45}
    assert client.of(job_id) == [
        ("PENDING", None),
        ("RUNNING", None),
        ("RUNNING", half),
        ("PENDING", half),
        ("RUNNING", half),
        ("COMPLETED", half),
    ]
    assert all(one["updated_at"] for one in client.events)


def test_a_client_that_asks_for_one_job(api: Api) -> None:
    """It hears how the job stands, and then of that job alone."""
    wanted, other = api.records.add(), api.records.add()
    with listening(api, job_id=str(wanted)) as client:
        for job_id in (other, wanted):
            api.records.execute("UPDATE background_jobs SET status = 'CANCELLED' WHERE id = :id", id=job_id)
        client.until(wanted, "CANCELLED")
    assert client.of(wanted) == [("PENDING", None), ("CANCELLED", None)]
    assert client.of(other) == []


def test_several_clients_share_one_connection(api: Api) -> None:
    """A browser's tab must not cost the database a connection."""
    with listening(api) as one, listening(api) as two:
        job_id = api.records.add()
        one.until(job_id, "PENDING")
        two.until(job_id, "PENDING")
        (found,) = api.records.rows(
            "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'almanac ecocomply_job_status'"
        )
        assert found.n == 1


def test_a_connection_that_is_lost_ends_the_stream(api: Api) -> None:
    """What was said meanwhile is missed, so the client has to come again; it does so by itself."""
    with listening(api) as first:
        api.records.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'almanac ecocomply_job_status'"
        )
        time.sleep(0.5)
        with listening(api) as second:
            job_id = api.records.add()
            second.until(job_id, "PENDING")
    assert first.of(job_id) == []
