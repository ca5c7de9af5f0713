"""`background_jobs` as an application knows it, and as the engine works on it: both see the same."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from include.ecocomply.access import act_as_service, act_as_user
from include.ecocomply.background_jobs import JOBS, STATUS_CHANNEL
from include.ecocomply.tables.jobs import JOB_STATUSES
from include.queues.engine import Failure, Queue
from include.run import EngineDatabase, Transaction
from tests.ecocomply.test_row_level_security import company, nested, one, state_of, user

VALID = {
    ("PENDING", "RUNNING"), ("PENDING", "CANCELLED"), ("RUNNING", "COMPLETED"), ("RUNNING", "FAILED"),
    ("RUNNING", "PENDING"), ("FAILED", "PENDING"),
}  # fmt: skip
"""The specification's table of 7.4."""

WAYS = {
    "PENDING": (), "RUNNING": ("RUNNING",), "COMPLETED": ("RUNNING", "COMPLETED"), "FAILED": ("RUNNING", "FAILED"),
    "CANCELLED": ("CANCELLED",),
}  # fmt: skip


@pytest.fixture
def tx(connection: Connection) -> Transaction:
    """Return the transaction of a database in which no other job waits."""
    connection.execute(text("DELETE FROM background_jobs"))
    return Transaction(connection)


def add(connection: Connection, job_type: str = "RISK_SCORE_CALCULATION", **columns: Any) -> UUID:
    """Insert a job as an application does, and return its id."""
    given = {"job_type": job_type} | columns
    names, binds = ", ".join(given), ", ".join(f":{name}" for name in given)
    statement = f"INSERT INTO background_jobs ({names}) VALUES ({binds}) RETURNING id"
    return connection.execute(text(statement), given).scalar_one()


def row(connection: Connection, job: UUID) -> Any:
    """Return a job's row."""
    return connection.execute(text("SELECT * FROM background_jobs WHERE id = :id"), {"id": job}).one()


def move(connection: Connection, job: UUID, status: str) -> None:
    """Change a job's status as an application's own code does."""
    connection.execute(
        text("UPDATE background_jobs SET status = :status WHERE id = :id"), {"status": status, "id": job}
    )


@pytest.mark.parametrize("before", JOB_STATUSES)
@pytest.mark.parametrize("after", JOB_STATUSES)
def test_the_database_allows_the_specifications_moves_alone(
    connection: Connection, before: str, after: str
) -> None:
    """7.4: whoever asks; and each is in the audit trail."""
    job = add(connection)
    for status in WAYS[before]:
        move(connection, job, status)
    trail = "SELECT count(*) FROM queue_audit WHERE row_key = :job"
    assert one(connection, trail, job=str(job)) == len(WAYS[before])
    if before == after or (before, after) in VALID:
        move(connection, job, after)
        assert one(connection, trail, job=str(job)) == len(WAYS[before]) + (before != after)
        return
    with pytest.raises(IntegrityError, match=f"can't go from {before} to {after}"):
        move(connection, job, after)


def test_a_job_begins_by_waiting(connection: Connection) -> None:
    """A row that is inserted as running was never claimed by anybody."""
    with pytest.raises(IntegrityError, match="can't go from nothing to RUNNING"):
        add(connection, status="RUNNING")


def test_the_engine_and_the_specification_count_alike(connection: Connection, tx: Transaction) -> None:
    """DLQ's condition is retry_count >= max_retries: the third attempt of three is the second retry."""
    job = add(connection)
    queue = Queue(JOBS)
    for attempt in (1, 2, 3):
        connection.execute(text("UPDATE background_jobs SET scheduled_for = now()"))
        (claim,) = queue.claim(tx, "worker", 10)
        found = row(connection, job)
        assert (found.attempts, found.retry_count, found.status) == (attempt, attempt - 1, "RUNNING")
        assert found.last_heartbeat == found.heartbeat_at is not None
        queue.fail(tx, [Failure(claim, "timeout")])
    found = row(connection, job)
    assert (found.status, found.health_status, found.error_message) == ("FAILED", "FAILED", "timeout")
    assert found.retry_count >= found.max_retries == 2


def test_the_service_works_the_queue_and_a_user_does_not(connection: Connection, tx: Transaction) -> None:
    """Bookkeeping is the service's: with its role the engine may do all it does, and a user only looks."""
    job = add(connection, company_id=company(connection, 3), created_by=user(connection, 20))
    queue = Queue(JOBS)
    with nested(connection):
        act_as_user(tx, user(connection, 20))
        assert row(connection, job).status == "PENDING"
        for refused in ("UPDATE background_jobs SET priority = 9", "DELETE FROM background_jobs",
                        "INSERT INTO background_jobs (job_type) VALUES ('X')", "TABLE queue_audit"):  # fmt: skip
            assert state_of(connection, refused)[0] == "42501"
    act_as_service(tx)
    (claim,) = queue.claim(tx, "worker", 10)
    assert queue.heartbeat(tx, "worker") == {job}
    queue.complete(tx, [claim])
    assert one(connection, "SELECT count(*) FROM queue_audit WHERE row_key = :job", job=str(job)) == 2
    queue.enqueue(tx, [{"job_type": "DEADLINE_ALERT", "dedupe_key": "one"}])


def test_a_rows_own_limit_of_retries_holds(connection: Connection, tx: Transaction) -> None:
    """max_retries is the application's to say, before and after."""
    job = add(connection, max_retries=0)
    assert row(connection, job).max_attempts == 1
    connection.execute(text("UPDATE background_jobs SET max_retries = 4"))
    assert row(connection, job).max_attempts == 5


def test_the_most_urgent_goes_first(connection: Connection, tx: Transaction) -> None:
    """Larger is more urgent; 0 means the job type's own."""
    for job_type, priority in (
        ("CROSS_SELL_TRIGGER_DETECTION", 0), ("RISK_SCORE_CALCULATION", 0), ("DEADLINE_ALERT", 0),
        ("RISK_SCORE_CALCULATION", 9),
    ):  # fmt: skip
        add(connection, job_type, priority=priority, scheduled_for="2026-01-01")
    claims = [claim for _ in range(4) for claim in Queue(JOBS).claim(tx, "worker", 1)]
    assert [(claim.row.job_type, claim.row.priority) for claim in claims] == [
        ("RISK_SCORE_CALCULATION", 9), ("DEADLINE_ALERT", 0), ("RISK_SCORE_CALCULATION", 0),
        ("CROSS_SELL_TRIGGER_DETECTION", 0),
    ]  # fmt: skip


def test_companies_take_turns(connection: Connection, tx: Transaction) -> None:
    """One company's thousand jobs don't make another's only one wait."""
    for _ in range(6):
        add(connection, company_id=company(connection, 2), scheduled_for="2026-01-01")
    last = add(connection, company_id=company(connection, 3), scheduled_for="2026-01-02")
    assert last in {claim.key for claim in Queue(JOBS).claim(tx, "worker", 2)}


def test_a_heart_beats_in_both_columns(connection: Connection) -> None:
    """7.3: the application's workers write last_heartbeat, the engine heartbeat_at; either revives a stale job."""
    job = add(connection)
    move(connection, job, "RUNNING")
    stale = "UPDATE background_jobs SET health_status = 'STALE'"
    for column, other in (("heartbeat_at", "last_heartbeat"), ("last_heartbeat", "heartbeat_at")):
        connection.execute(text(stale))
        connection.execute(
            text(f"UPDATE background_jobs SET {column} = clock_timestamp() WHERE id = :id"), {"id": job}
        )
        found = row(connection, job)
        assert getattr(found, column) == getattr(found, other) is not None
        assert found.health_status == "HEALTHY"
    assert one(connection, stale + " WHERE id = :id RETURNING health_status", id=job) == "STALE"


def test_a_job_belongs_to_the_company_of_who_asked(connection: Connection) -> None:
    """Not to the payload's: that one may name anybody's company."""
    payload = json.dumps({"company_id": str(company(connection, 2))})
    job = add(connection, created_by=user(connection, 20), payload=payload)
    assert row(connection, job).company_id == company(connection, 3)
    assert row(connection, add(connection, payload=payload)).company_id is None


def test_a_dedupe_key_adds_one_job(connection: Connection, tx: Transaction) -> None:
    """A cron's slot is one row, however many schedulers say so."""
    queue = Queue(JOBS)
    rows = [{"job_type": "DEADLINE_ALERT", "dedupe_key": "DEADLINE_ALERT/2026-11-27T06:00Z"}]
    for _ in range(2):
        queue.enqueue(tx, rows)
    assert one(connection, "SELECT count(*) FROM background_jobs") == 1


def test_a_job_has_one_open_dead_letter(connection: Connection) -> None:
    """Two sweeps that find the same dead job write it down once."""
    job = add(connection)
    statement = text("INSERT INTO dead_letter_queue (job_id, error_message) VALUES (:job, 'x')")
    connection.execute(statement, {"job": job})
    with pytest.raises(IntegrityError, match="uq_dead_letter_queue_unresolved"):
        connection.execute(statement, {"job": job})


def test_every_status_and_progress_is_broadcast(database_of: Any) -> None:
    """15.5: a client that listens sees each, in its order, and no repeats of what did not change."""
    database: EngineDatabase = database_of("ecocomply")
    url = database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as listener:
        listener.execute(sql.SQL("LISTEN {}").format(sql.Identifier(STATUS_CHANNEL)))
        listener.execute(sql.SQL("LISTEN {}").format(sql.Identifier(JOBS.channel)))
        with database.engine.begin() as connection:
            job = add(connection)
        for change in ("status = 'RUNNING'", "progress = '{\"current\": 1, \"total\": 2, \"note\": \"x\"}'",
                       "updated_at = now()", "status = 'COMPLETED'"):  # fmt: skip
            with database.engine.begin() as connection:
                connection.execute(text(f"UPDATE background_jobs SET {change}".replace(":", r"\:")))
        heard = list(listener.notifies(timeout=0.5))
    assert [notice.channel for notice in heard].count(JOBS.channel) == 1
    told = [json.loads(notice.payload) for notice in heard if notice.channel == STATUS_CHANNEL]
    assert [(each["status"], each["progress"]) for each in told] == [
        ("PENDING", None), ("RUNNING", None), ("RUNNING", {"current": 1, "total": 2}),
        ("COMPLETED", {"current": 1, "total": 2}),
    ]  # fmt: skip
    assert {each["job_id"] for each in told} == {str(job)}


def test_a_job_without_a_heartbeat_for_five_minutes_is_lost() -> None:
    """7.3's threshold."""
    assert JOBS.lost_after == timedelta(minutes=5)
