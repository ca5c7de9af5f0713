"""Rows of the systems' queues for the console's pages: some that wait, run, are done, failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, insert

from include.arcvest.jobs import JOBS
from include.arcvest.tables import JOB_QUEUE
from include.leadmetrics.tables import SCHEDULED_TASK, TASK_QUEUE
from include.nifya.job_queue import JOBS as NIFYA_JOBS
from include.queues.engine import Failure, Queue
from include.queues.table import QueueTable
from include.run import EngineDatabase
from tests.console.sample import HOSTILE, number

RUN = "scheduled__2027-03-10T09:00:00+00:00"
OWNER = f"{RUN} 0190ab2c-0000-7000-8000-000000000001"
SECRET = "hunter2-of-the-sample"


def fill_arcvest(engine: Engine, now: datetime) -> None:
    """Put in jobs: done, two failed of one cause and one of another, one running, one due, one to come."""
    payload = {"note": HOSTILE, "api_key": SECRET, "of": {"Password": SECRET, "n": [1, {"token": SECRET}]}}
    jobs = {
        "job done": {},
        "job failed 1": {},
        "job failed 2": {},
        "job failed hostile": {"job_type": HOSTILE, "payload": payload},
        "job running": {"job_type": "score_ideas"},
    }
    add(engine, now, *[{"id": number(name), **more} for name, more in jobs.items()])
    end(
        engine,
        JOBS,
        {
            number("job done"): None,
            number("job failed 1"): "HTTP 503 from feed 17",
            number("job failed 2"): "HTTP 502 from feed 4",
            number("job failed hostile"): HOSTILE,
        },
    )
    add(engine, now, {"id": number("job due")})
    add(engine, now + timedelta(days=1), {"id": number("job to come"), "job_type": "select_daily"})


def add(engine: Engine, due: datetime, *rows: Mapping[str, Any]) -> None:
    """Put jobs in ArcVest's queue, each due a minute after the one before, the last at `due`."""
    with engine.begin() as connection:
        for n, row in enumerate(rows):
            at = due - timedelta(minutes=len(rows) - n)
            connection.execute(insert(JOB_QUEUE).values({"job_type": "news_scan", "next_run_at": at, **row}))


def fill_leadmetrics(engine: Engine, now: datetime) -> None:
    """Put in a failed task, whose key is hostile, and one that is due."""
    for key, kind, payload in (
        (f"{HOSTILE}?/#%", "signup.reminder.early", {"a": 1}),
        ("task due", "signup.alert.internal", {}),
    ):
        row = {"id": key, "taskType": kind, "payload": payload, "scheduledAt": now - timedelta(hours=1)}
        with engine.begin() as connection:
            connection.execute(insert(SCHEDULED_TASK).values(row))
        if key != "task due":
            end(engine, TASK_QUEUE, {key: "no such session"})


def fill_nifya(engine: Engine, now: datetime) -> None:
    """Put in one failed job."""
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO scheduled_jobs (id, type, data, next_run_at) VALUES (%s, 'send_digest_emails', '{}', %s)",
            (number("digest"), now - timedelta(minutes=3)),
        )
    end(engine, NIFYA_JOBS, {number("digest"): "mail server refused"})


def end(
    engine: Engine, table: QueueTable, ends: Mapping[Any, str | None], kinds: Sequence[str] | None = None
) -> None:
    """Claim what is due, and let rows end: done, or failed for good with a reason. Others stay claimed."""
    queue = Queue(table)
    with EngineDatabase(engine).transaction() as tx:
        claims = {claim.key: claim for claim in queue.claim(tx, OWNER, 1_000, kinds=kinds)}
        queue.complete(tx, [claims[key] for key, why in ends.items() if why is None])
        queue.fail(
            tx, [Failure(claims[key], why, permanent=True) for key, why in ends.items() if why is not None]
        )


def many_failed(engine: Engine, count: int, reason: str) -> Sequence[Any]:
    """Put in failed jobs, as many as wanted, all of one reason; return their keys."""
    now = datetime.now(UTC)
    with EngineDatabase(engine).transaction() as tx:
        queue = Queue(JOBS)
        rows = [{"job_type": "bulk", "next_run_at": now - timedelta(days=9)} for _ in range(count)]
        keys = queue.enqueue(tx, rows)
        claims = queue.claim(tx, OWNER, count, kinds=["bulk"])
        queue.fail(tx, [Failure(claim, reason, permanent=True) for claim in claims])
    return keys
