"""`job_queue` under the engine and under the application's own function, side by side."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from include import migrations
from include.arcvest import tables
from include.arcvest.jobs import JOBS, QUEUE
from include.queues.engine import Failure
from include.run import EngineDatabase
from tests.arcvest.rows import Rows

# The specification's own migration, as an application has run it.
PLAN = """
CREATE TABLE job_queue (
  id UUID PRIMARY KEY DEFAULT gen_random_uuid(), job_type TEXT NOT NULL, payload JSONB DEFAULT '{}',
  priority INTEGER DEFAULT 0, status TEXT DEFAULT 'pending', attempts INTEGER DEFAULT 0,
  max_attempts INTEGER DEFAULT 5, last_error TEXT, next_run_at TIMESTAMPTZ DEFAULT now(),
  created_at TIMESTAMPTZ DEFAULT now(), started_at TIMESTAMPTZ, completed_at TIMESTAMPTZ,
  correlation_id UUID, parent_job_id UUID REFERENCES job_queue(id));
CREATE INDEX idx_job_queue_pending ON job_queue(priority DESC, next_run_at ASC) WHERE status = 'pending';
CREATE INDEX idx_job_queue_processing ON job_queue(started_at) WHERE status = 'processing';
CREATE TABLE idea_queue (
  id UUID PRIMARY KEY DEFAULT gen_random_uuid(), source TEXT, title TEXT, url TEXT, status TEXT,
  updated_at TIMESTAMPTZ DEFAULT now());
CREATE TABLE activity_log (
  id UUID PRIMARY KEY DEFAULT gen_random_uuid(), type TEXT NOT NULL, metadata JSONB, created_at TIMESTAMPTZ);
CREATE FUNCTION claim_next_job(p_worker_id TEXT DEFAULT 'default') RETURNS SETOF job_queue AS $$
BEGIN
  RETURN QUERY UPDATE job_queue SET status = 'processing', started_at = now(), attempts = attempts + 1
  WHERE id = (SELECT id FROM job_queue WHERE status = 'pending' AND next_run_at <= now()
    ORDER BY priority DESC, next_run_at ASC LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *;
END; $$ LANGUAGE plpgsql;
INSERT INTO job_queue (job_type) VALUES ('news_scan'), ('process_pipeline');
INSERT INTO job_queue (job_type, status, started_at) VALUES ('email_scan', 'processing', '2026-01-01');
INSERT INTO idea_queue (source, title, url, status) VALUES
  ('news', 'A', 'https://a.test/', 'processing'), ('news', 'A again', 'https://a.test/', 'archived');
"""


def claim_next(database: EngineDatabase, worker: str = "node") -> Any:
    """Claim as the application does."""
    with database.engine.begin() as connection:
        return connection.execute(
            text("SELECT * FROM claim_next_job(:worker)"), {"worker": worker}
        ).one_or_none()


def test_1_run_migration(empty_database: Engine) -> None:
    """Verification plan 1: the migration runs against the application's database, and loses nothing of it.

    Duplicates are reported, unknown words stay, the function is the one that keeps to batches.
    """
    with empty_database.begin() as connection:
        connection.exec_driver_sql(PLAN)
    migrations.upgrade("arcvest", empty_database)
    assert migrations.current("arcvest", empty_database) == migrations.revisions("arcvest")[-1]
    with empty_database.begin() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM job_queue").scalar() == 3
        subjects = set(
            connection.exec_driver_sql("SELECT table_name || ' ' || subject FROM adoption_findings").scalars()
        )
        assert subjects == {"idea_queue uq_idea_queue_url", "idea_queue status"}
        assert connection.exec_driver_sql("SELECT name FROM baseline").scalar() == "adoption"
    database = EngineDatabase(empty_database)
    claimed = claim_next(database)
    assert (claimed.status, claimed.attempts, claimed.claimed_by) == ("processing", 1, "node")
    with database.transaction() as tx:
        assert QUEUE.take_back(tx) == (1, 0)


def test_a_function_of_another_form_stays(empty_database: Engine) -> None:
    """Ruling 15: what an application calls is not replaced under it; the finding says so."""
    with empty_database.begin() as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION claim_next_job(worker TEXT) RETURNS TEXT LANGUAGE sql AS 'SELECT worker'"
        )
    migrations.upgrade("arcvest", empty_database)
    with empty_database.begin() as connection:
        assert connection.exec_driver_sql("SELECT claim_next_job('x')").scalar() == "x"
        found = connection.exec_driver_sql("SELECT subject, finding FROM adoption_findings").one()
    assert found.subject == "claim_next_job(text)"
    assert "stays as it is" in found.finding


_FUNCTIONS = """
SELECT proname, pg_get_functiondef(oid) FROM pg_proc
WHERE pronamespace = current_schema()::regnamespace AND starts_with(proname, 'job_queue') ORDER BY proname
"""
_TRIGGERS = """
SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'job_queue'::regclass ORDER BY tgname
"""


def test_an_older_guard_is_made_anew(empty_database: Engine) -> None:
    """A database that was made earlier gets what the engine's guard, trail and calls say now; its rows stay."""
    migrations.upgrade("arcvest", empty_database, "0004")
    with empty_database.begin() as connection:
        said = [connection.exec_driver_sql(query).all() for query in (_FUNCTIONS, _TRIGGERS)]
        assert [len(each) > 2 for each in said] == [True, True]
        connection.exec_driver_sql("INSERT INTO job_queue (job_type) VALUES ('news_scan')")
        for name, _ in said[0]:
            connection.exec_driver_sql(
                f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
            )
        connection.exec_driver_sql("DROP TRIGGER queue_guard_updates ON job_queue")
    migrations.upgrade("arcvest", empty_database)
    with empty_database.begin() as connection:
        assert [connection.exec_driver_sql(query).all() for query in (_FUNCTIONS, _TRIGGERS)] == said
        assert connection.exec_driver_sql("SELECT count(*) FROM job_queue").scalar() == 1


BATCH = uuid.UUID(int=1)


@pytest.mark.parametrize(
    ("status", "other", "next_type"),
    [
        ("pending", {"next_run_at": datetime.now(UTC) + timedelta(hours=1)}, "other"),
        ("processing", {"started_at": datetime.now(UTC)}, "other"),
        ("completed", {}, "score_ideas"),
        ("failed", {}, "score_ideas"),
        ("cancelled", {}, "score_ideas"),
    ],
)
def test_a_batch_keeps_its_order(rows: Rows, status: str, other: dict[str, Any], next_type: str) -> None:
    """Ruling: no job is due while one of its batch with a higher priority is pending or processing."""
    rows.job("news_scan", priority=10, status=status, correlation_id=BATCH, **other)
    rows.job("score_ideas", priority=8, correlation_id=BATCH)
    rows.job("other", priority=1)
    with rows.db.transaction() as tx:
        (claim,) = QUEUE.claim(tx, "worker", 1)
        assert claim.row.job_type == next_type
        QUEUE.fail(tx, [Failure(claim, "again")])
        tx.execute(text("UPDATE job_queue SET next_run_at = now() WHERE job_type = :type"), type=next_type)
    assert claim_next(rows.db).job_type == next_type


def test_delays(rows: Rows) -> None:
    """Specification: 30, 60, 120, 240 s; a row that allows more goes on doubling, an hour at most."""
    assert [JOBS.delay(n) for n in range(1, 11)] == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert JOBS.attempt_limit == 5


def test_a_claim_of_the_application_counts_from_its_start(rows: Rows) -> None:
    """Ruling: rows claimed by claim_next_job have no heartbeat, so started_at counts, not a worker's old one."""
    rows.job("news_scan", heartbeat_at=datetime.now(UTC) - timedelta(hours=1))
    claimed = claim_next(rows.db)
    with rows.db.transaction() as tx:
        assert QUEUE.take_back(tx) == (0, 0)
        tx.execute(text("UPDATE job_queue SET started_at = now() - interval '599 s'"))
        assert QUEUE.take_back(tx) == (0, 0)
        tx.execute(text("UPDATE job_queue SET started_at = now() - interval '601 s'"))
        assert QUEUE.take_back(tx) == (1, 0)
    row = rows.one(tables.JOB_QUEUE, claimed.id)
    assert (row.status, row.attempts, row.claimed_by) == ("pending", 1, None)


def test_what_the_applications_code_does_is_allowed(rows: Rows) -> None:
    """Ruling: the guard allows every change of status of the specification's code, whoever makes it."""
    job = rows.job("news_scan")
    moves = [("pending", "processing"), ("processing", "pending"), ("pending", "processing"),
             ("processing", "failed"), ("failed", "pending"), ("pending", "cancelled")]  # fmt: skip
    with rows.db.transaction() as tx:
        for before, after in moves:
            changed = tx.execute(
                text("UPDATE job_queue SET status = :after WHERE id = :id AND status = :before"),
                id=job,
                before=before,
                after=after,
            )
            assert changed == 1
    trail = rows.all(tables.QUEUE_AUDIT, tables.QUEUE_AUDIT.c.id)
    assert [(row.from_status, row.to_status) for row in trail] == moves


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("completed", "pending"),
        ("completed", "processing"),
        ("cancelled", "processing"),
        ("pending", "completed"),
    ],
)
def test_no_other_change_is(rows: Rows, before: str, after: str) -> None:
    """Ruling: what was done is not done again by a slip of an UPDATE."""
    job = rows.job("news_scan", status=before)
    with pytest.raises(DBAPIError, match="can't go from"), rows.db.transaction() as tx:
        tx.execute(text("UPDATE job_queue SET status = :after WHERE id = :id"), id=job, after=after)
