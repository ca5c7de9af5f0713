"""ClearPath's jobs on a database that an application made: its own types, its own history."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, text

from include import migrations
from include.clearpath import (
    ZONE,
    certificate_expiry,
    certificate_rendering,
    cnrpp_expiry_alert,
    email_queue_dispatch,
    lab_result_polling,
    session_expiry,
)
from include.clearpath.email_sequence import make_sequence
from include.job import perform
from include.run import EngineDatabase, Run
from tests.clearpath.world import PARAMS, SETTINGS, outside
from tests.fakes.world import FakeAlerts, FakeLab, FakeMail, FakeStorage, World

NOW = datetime.now(UTC)

# Every word is of an enum type; the mail is hours late, and many mails have failed today.
APPLICATION = """
CREATE TYPE session_status AS ENUM ('pending', 'active', 'mailed', 'results_pending', 'complete');
CREATE TYPE email_status AS ENUM ('queued', 'sent', 'failed');
CREATE TYPE email_type AS ENUM ('day_30', 'day_60', 'welcome');
CREATE TYPE certificate_status AS ENUM ('valid', 'expired');
CREATE TYPE contractor_status AS ENUM ('active', 'inactive');
CREATE TABLE users (id uuid PRIMARY KEY, email text NOT NULL, full_name text NOT NULL);
CREATE TABLE contractors (id uuid PRIMARY KEY, name text NOT NULL, cnrpp_id text, cnrpp_expiry_date date,
    status contractor_status NOT NULL);
CREATE TABLE test_sessions (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users (id), address text,
    status session_status NOT NULL, clearpath_order_id text, activated_at timestamp,
    expected_completion_date date);
CREATE TABLE results (id uuid PRIMARY KEY, test_session_id uuid NOT NULL UNIQUE, value_bq_m3 numeric);
CREATE TABLE certificates (id uuid PRIMARY KEY, test_session_id uuid NOT NULL UNIQUE,
    status certificate_status NOT NULL, certificate_number text, issued_on date, valid_until date);
CREATE TABLE email_log (id uuid PRIMARY KEY, user_id uuid NOT NULL, test_session_id uuid,
    email_type email_type NOT NULL, status email_status NOT NULL, scheduled_at timestamp NOT NULL,
    updated_at timestamp, retry_count int);
INSERT INTO users VALUES (gen_random_uuid(), 'ana@example.test', 'Ana Núñez');
INSERT INTO contractors VALUES (gen_random_uuid(), 'Gone', 'C-1', '2020-01-31', 'active'),
    (gen_random_uuid(), 'Soon', 'C-2', current_date + 20, 'active');
INSERT INTO test_sessions SELECT gen_random_uuid(), u.id, n || ' Main Street', s::session_status, 'O-' || n,
    now() AT TIME ZONE 'UTC' - make_interval(days => days), current_date - days + 91
    FROM users u, (VALUES (1, 'mailed', 100), (2, 'active', 31), (3, 'active', 300), (4, 'complete', 900),
        (5, 'active', 32))
    AS v (n, s, days);
INSERT INTO results SELECT gen_random_uuid(), id, 90 FROM test_sessions WHERE clearpath_order_id = 'O-4';
INSERT INTO certificates SELECT gen_random_uuid(), id, 'valid', 'N-4', current_date - 740, current_date - 10
    FROM test_sessions WHERE clearpath_order_id = 'O-4';
INSERT INTO email_log
    SELECT gen_random_uuid(), user_id, id, 'day_30', 'queued', activated_at + interval '30 days', NULL, 0
    FROM test_sessions WHERE clearpath_order_id IN ('O-2', 'O-4', 'O-5');
INSERT INTO email_log
    SELECT gen_random_uuid(), u.id, NULL, 'welcome', 'failed', now() AT TIME ZONE 'UTC' - interval '1 day',
           now() AT TIME ZONE 'UTC', 3
    FROM users u, generate_series(1, 20);
"""


@pytest.fixture
def adopted(empty_database: Engine) -> EngineDatabase:
    """Adopt the application's database."""
    with empty_database.begin() as connection:
        raw: Any = connection.connection.driver_connection
        raw.execute(APPLICATION)
    migrations.upgrade("clearpath", empty_database)
    return EngineDatabase(empty_database)


@pytest.fixture
def around() -> World:
    """Make a world in which everything works, and whose lab has one result."""
    made = (NOW - timedelta(hours=2)).isoformat()
    record = {"id": "L-1", "order_id": "O-1", "value": "148", "unit": "Bq/m3", "created_at": made}
    return World(FakeMail(), FakeAlerts(), FakeLab([record]), FakeStorage())


def run(job: Any, database: EngineDatabase, around: World, **params: Any) -> Counter[str]:
    """Run a job as of now and return its counts."""
    settings = {**getattr(job, "SETTINGS", {}), **SETTINGS}
    made = Run(job.NAME, "test", NOW, ZONE, database, params={**PARAMS, **params}, settings=settings)
    perform(job, made, outside(job, around))
    return made.counts


def values(database: EngineDatabase, statement: str) -> list[Any]:
    """Return the first column of a query, as text."""
    with database.transaction() as tx:
        return [str(row[0]) for row in tx.rows(text(statement))]


def test_every_job_works_on_enum_types(adopted: EngineDatabase, around: World) -> None:
    """Ruling 15: text or enum statuses; an enum is never equal to a text, and a job would fail on it."""
    assert run(lab_result_polling, adopted, around)["ingested"] == 1
    assert run(session_expiry, adopted, around)["expired"] == 1
    assert run(certificate_expiry, adopted, around)["expired"] == 1
    mail = run(email_queue_dispatch, adopted, around)
    assert (mail["sent"], mail["cancelled"]) == (2, 1)
    assert values(
        adopted, "SELECT DISTINCT status FROM email_log WHERE email_type = 'day_30' ORDER BY 1"
    ) == [
        "sent",
        "cancelled",
    ]
    # The one that has just got its result; what the application issued is not made anew in bulk.
    assert run(certificate_rendering, adopted, around)["rendered"] == 1


def test_a_sequence_is_made_in_enum_types(adopted: EngineDatabase) -> None:
    """The types that the application's enum lacked are there, and its own day_30 is not doubled."""
    with adopted.transaction() as tx:
        session = tx.value(text("SELECT id FROM test_sessions WHERE clearpath_order_id = 'O-2'"))
        assert make_sequence(tx, [session]) == 4
    assert len(values(adopted, "SELECT 1 FROM email_log WHERE email_type = 'results_prompt'")) == 1


def test_the_first_run_does_not_alert_about_history(adopted: EngineDatabase, around: World) -> None:
    """Ruling 15: mail that was late and had failed, and a contractor long expired, are no news."""
    around.mail.refuse = {"ana@example.test"}
    with adopted.transaction() as tx:
        tx.execute(
            text(
                "UPDATE email_log SET scheduled_at = scheduled_at - interval '1 year' WHERE status = 'queued'"
            )
        )
    # One of two late mails stays behind.
    run(email_queue_dispatch, adopted, around, batch_limit=1)
    assert around.alerts.told == {}
    assert run(cnrpp_expiry_alert, adopted, around)["sent"] == 1
    assert [message.subject for message in around.mail.delivered if "Soon" in message.subject + message.text]
    assert not [message for message in around.mail.delivered if "Gone" in message.subject + message.text]
    assert values(adopted, "SELECT name FROM contractors WHERE status = 'inactive'") == ["Gone"]


def test_what_fails_after_adoption_is_told(adopted: EngineDatabase, around: World) -> None:
    """The baseline covers the past alone: a queue that gets stuck now must be heard of."""
    with adopted.transaction() as tx:
        tx.execute(
            text("""
                INSERT INTO email_log (user_id, email_type, status, scheduled_at, updated_at)
                SELECT id, 'welcome', 'abandoned', clock_timestamp(), clock_timestamp()
                FROM users, generate_series(1, 11)
            """)
        )
    run(email_queue_dispatch, adopted, around)
    assert len(around.alerts.told) == 1
