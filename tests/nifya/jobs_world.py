"""Scheduled jobs of every kind: due, to come, recurring, broken, lost, failing, and what is history."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, text

from include.nifya import tables
from include.nifya.job_runs import QUEUE
from include.run import Transaction

PROCESS, DIGEST = "process-subscription", "send-digest-emails"
DAILY = {"type": "daily", "hourOfDay": 9, "timezone": "Europe/Madrid"}
CRON = {"type": "cron", "expression": "30 7 * * MON-FRI", "timezone": "Europe/Madrid"}
WEEKLY = {"type": "weekly", "daysOfWeek": [1, 4], "hourOfDay": 18, "timezone": "America/Winnipeg"}
INTERVAL = {"type": "interval", "intervalMs": 43_200_000}
NEVER = {"type": "cron", "expression": "0 0 31 2 *"}


def job(number: int) -> uuid.UUID:
    """Return a job's stable id."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"nifya/job/{number}")


def seed_jobs(connection: Connection, now: datetime, subscriptions: dict[int, uuid.UUID]) -> None:
    """Insert the jobs, those that have ended as they ended; `subscriptions` gives ids by number."""
    hour, day = timedelta(hours=1), timedelta(days=1)

    def of(number: int, **more: Any) -> dict[str, Any]:
        return {"subscriptionId": str(subscriptions[number]), **more}

    # Ten of each row must not write more changes than a preview shows.
    jobs: list[dict[str, Any]] = [
        {"type": PROCESS, "data": of(1, userId="ana"), "schedule": DAILY, "created_by": "ana", "series_id": job(21)},
        {"type": PROCESS, "data": of(2), "schedule": INTERVAL, "next_run_at": now - 30 * hour},
        {"type": PROCESS, "data": of(1, userId="bea"), "schedule": CRON, "next_run_at": now - 9 * day},
        {"type": PROCESS, "data": {"subscriptionId": str(uuid.UUID(int=4))}, "schedule": DAILY},
        {"type": DIGEST, "data": {"hourOfDay": "09"}, "schedule": WEEKLY},
        {"type": DIGEST, "data": {"hourOfDay": 9}, "schedule": NEVER},
        {"type": "reticulate-splines", "data": {}, "schedule": DAILY, "series_id": job(23), "failures_in_row": 2,
         "failing_since": now - 3 * day},
        {"type": PROCESS, "data": of(1), "schedule": DAILY, "next_run_at": now + 5 * hour},
        {"type": DIGEST, "data": {"hourOfDay": 4}, "retry_at": now + hour, "attempts": 1, "error": "HTTP 503"},
        {"type": PROCESS, "data": of(2), "schedule": DAILY, "status": "processing", "attempts": 1,
         "claimed_by": "gone", "heartbeat_at": now - hour, "last_run_at": now - hour},
        {"type": PROCESS, "data": of(2), "schedule": DAILY, "status": "processing", "attempts": 3,
         "claimed_by": "gone", "heartbeat_at": now - hour, "last_run_at": now - hour},
    ]  # fmt: skip
    history: list[dict[str, Any]] = [
        {"type": PROCESS, "data": of(1), "schedule": DAILY, "status": "completed", "next_run_at": now - 2 * day,
         "attempts": 1, "finished_at": now - 2 * day},
        {"type": PROCESS, "data": of(1), "schedule": DAILY, "status": "failed", "next_run_at": now - day,
         "attempts": 3, "finished_at": now - day, "error": "HTTP 500", "series_id": job(21)},
        {"type": "reticulate-splines", "data": {}, "status": "failed", "next_run_at": now - 3 * day,
         "attempts": 1, "finished_at": now - 3 * day, "error": "no handler"},
    ]  # fmt: skip
    # The guard lets in none but waiting jobs; some of these, and of their copies, have come a way.
    connection.execute(text("ALTER TABLE scheduled_jobs DISABLE TRIGGER queue_guard_inserts"))
    for number, row in [*enumerate(jobs, start=1), *enumerate(history, start=21)]:
        due = {"id": job(number), "next_run_at": now - timedelta(minutes=number)}
        connection.execute(insert(tables.SCHEDULED_JOBS), [due | row])


def time_passes(connection: Connection) -> None:
    """Let what a killed run holds be taken back and be due: its claims, and no older ones."""
    held = connection.execute(
        text(
            "UPDATE scheduled_jobs SET heartbeat_at = now() - interval '1 hour' "
            "WHERE status = 'processing' AND heartbeat_at > now() - interval '1 minute' RETURNING id"
        )
    ).scalars()
    ids = list(held)
    if not ids:
        # The killed run was of another job; the older claims are none of its business.
        return
    QUEUE.take_back(Transaction(connection))
    connection.execute(
        text(
            "UPDATE scheduled_jobs SET retry_at = now() WHERE id = ANY (CAST(:ids AS uuid[])) AND status = 'pending'"
        ),
        {"ids": ids},
    )
