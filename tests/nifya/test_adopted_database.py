"""A database that NIFYA's own scheduler has used: its rows stay, its jobs go on, nothing old is told again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, text

from include import migrations
from include.as_of import local_date
from include.nifya import ZONE, digest_emails, job_runs, scheduled_jobs
from include.nifya.job_types import SendDigestEmails
from include.run import EngineDatabase, Run
from tests.fakes.world import FakeAlerts, FakeMail
from tests.nifya import world
from tests.nifya.test_job_runs import WELL

# The specification's own definition, beside the tables that it speaks of as a Node.js backend has them.
OURS_BEFORE = """
CREATE TABLE users (id varchar(128) PRIMARY KEY, email text NOT NULL,
    created_at timestamptz DEFAULT now() - interval '300 days', timezone text, digest_hour integer);
CREATE TABLE subscriptions (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id varchar(128) REFERENCES users (id),
    type_id varchar(50), prompts text[], active boolean DEFAULT true,
    created_at timestamptz DEFAULT now() - interval '300 days');
CREATE TABLE notifications (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id varchar(128),
    subscription_id uuid, title text, content text, source_url text, metadata jsonb, read boolean,
    created_at timestamptz DEFAULT now());
CREATE TABLE scheduled_jobs (
  id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
  type VARCHAR(255) NOT NULL,
  data JSONB NOT NULL DEFAULT '{}',
  status VARCHAR(50) NOT NULL DEFAULT 'pending',
  schedule JSONB,
  next_run_at TIMESTAMP WITH TIME ZONE NOT NULL,
  last_run_at TIMESTAMP WITH TIME ZONE,
  created_at TIMESTAMP WITH TIME ZONE DEFAULT NOW(),
  updated_at TIMESTAMP WITH TIME ZONE DEFAULT NOW(),
  created_by VARCHAR(128) REFERENCES users(id),
  error TEXT
);
CREATE INDEX idx_scheduled_jobs_status ON scheduled_jobs(status);
CREATE INDEX idx_scheduled_jobs_next_run_at ON scheduled_jobs(next_run_at);
INSERT INTO users VALUES ('ana', 'ana@example.test');
INSERT INTO subscriptions VALUES ('00000000-0000-4000-8000-000000000001', 'ana', 'boe', ARRAY['becas', 'ayudas']);
INSERT INTO notifications (user_id, subscription_id, title, source_url)
    SELECT 'ana', '00000000-0000-4000-8000-000000000001', 'Told', 'https://boe.test/1' FROM generate_series(1, 2);
INSERT INTO scheduled_jobs (type, data, schedule, next_run_at, status, error) VALUES
    ('process-subscription', '{"subscriptionId": "00000000-0000-4000-8000-000000000001", "userId": "ana"}',
     '{"type": "cron", "expression": "0 9 * * *", "timezone": "Europe/Madrid"}', now() - interval '9 days',
     'pending', NULL),
    ('send-digest-emails', '{"hourOfDay": "09"}', '{"type": "interval", "intervalMs": 86400000}',
     now() - interval '1 hour', 'processing', NULL),
    ('send-digest-emails', '{"hourOfDay": "09"}', NULL, now() - interval '2 days', 'failed', 'SMTP 421'),
    ('send-digest-emails', '{"hourOfDay": "09"}', NULL, now() - interval '3 days', 'completed', NULL);
"""


def adopted(engine: Engine, more: str = "", revision: str = "head") -> EngineDatabase:
    """Make the application's database and take it over."""
    with engine.begin() as connection:
        raw: Any = connection.connection.driver_connection
        raw.execute(OURS_BEFORE + more)
    migrations.upgrade("nifya", engine, revision)
    return EngineDatabase(engine)


def values(database: EngineDatabase, statement: str) -> list[Any]:
    """Return the rows of a query as tuples."""
    with database.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def test_the_jobs_go_on(empty_database: Engine) -> None:
    """What was due runs once and recurs; what the old scheduler died over is taken back; history stays history."""
    database = adopted(empty_database)
    run = Run(job="scheduledJobs", run_id="r", as_of=datetime.now(UTC), zone=ZONE, db=database)
    job_runs.take_back(run)
    job_runs.run_due(run, None, WELL)
    rows = values(
        database, "SELECT type, status, attempts, series_id IS NOT NULL FROM scheduled_jobs ORDER BY 1, 2, 3"
    )
    assert rows == [
        ("process-subscription", "completed", 1, False),
        ("process-subscription", "pending", 0, True),
        ("send-digest-emails", "completed", 0, False),
        ("send-digest-emails", "failed", 0, False),
        ("send-digest-emails", "pending", 0, False),
    ]
    assert values(database, "SELECT count(*) FROM scheduled_jobs WHERE retry_at > now()") == [(1,)]


def test_nothing_old_is_told_again(empty_database: Engine) -> None:
    """Ruling 15: what was notified before the platform came is in no digest of ours; doubles stay, and are named."""
    database = adopted(empty_database)
    assert values(database, "SELECT DISTINCT past_at_adoption FROM notifications") == [(True,)]
    assert values(database, "SELECT count(*) FROM notifications") == [(2,)]
    assert values(database, "SELECT name FROM baseline") == [("adoption",)]
    findings = values(
        database, "SELECT table_name, row_count FROM adoption_findings WHERE subject LIKE 'uq_notif%'"
    )
    assert findings == [("notifications", 1)]


def test_the_applications_columns_keep_their_types(empty_database: Engine) -> None:
    """The application's code goes on reading its columns: nothing is narrowed, prompts stay an array."""
    database = adopted(empty_database)
    found = {c["name"]: str(c["type"]) for c in inspect(database.engine).get_columns("scheduled_jobs")}
    assert (found["type"], found["status"], found["created_by"]) == (
        "VARCHAR(255)",
        "VARCHAR(50)",
        "VARCHAR(128)",
    )
    assert values(database, "SELECT prompts[1] FROM subscriptions") == [("becas",)]
    migrations.upgrade("nifya", database.engine)


FAILED_YESTERDAY = """
CREATE TABLE subscription_processing (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), subscription_id uuid,
    status text, last_run_at timestamptz, error text);
INSERT INTO subscription_processing (subscription_id, status, last_run_at, error)
    SELECT id, 'failed', now() - interval '1 day', 'boe 503' FROM subscriptions;
"""


def run_of(database: EngineDatabase, **params: Any) -> Run:
    """Return a run of the scheduler over the database."""
    return Run(
        job=scheduled_jobs.NAME, run_id="r", as_of=datetime.now(UTC), zone=ZONE, db=database, params=params,
        settings=dict(world.SETTINGS),
    )  # fmt: skip


@pytest.mark.parametrize(("more", "days"), [("", 0), (FAILED_YESTERDAY, 1)], ids=["no status", "failed"])
def test_the_gazettes_history_is_not_told(empty_database: Engine, more: str, days: int) -> None:
    """Ruling 15: an old subscription begins with the application's last look or the adoption, not with its making."""
    database = adopted(empty_database, more)
    gazettes = world.FakeGazettes({})
    outside = scheduled_jobs.Outside(gazettes, FakeMail(), FakeAlerts())
    run = run_of(database, job_id=None)
    scheduled_jobs.run_due_jobs(run, outside)
    today = local_date(datetime.now(UTC), ZONE)
    assert [since for _, _, since, _ in gazettes.asked] == [today - timedelta(days=days)]


def test_nulls_of_the_application(empty_database: Engine) -> None:
    """Ruling 6: a user without a zone or an hour has the defaults; what nobody wrote as read is unread."""
    database = adopted(empty_database)
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE users SET timezone = NULL, digest_hour = NULL"))
        connection.execute(text("INSERT INTO users (id, email, timezone, digest_hour) "
                                "VALUES ('bea', 'bea@example.test', 'Asia/Tokyo', 4)"))  # fmt: skip
        for user in ("ana", "bea"):
            connection.execute(
                text(
                    "INSERT INTO notifications (user_id, subscription_id, title, source_url, read) "
                    "SELECT :user, id, 'Becas', :url, NULL FROM subscriptions"
                ),
                {"user": user, "url": f"https://boe.test/of/{user}"},
            )
    mail = FakeMail()
    run = run_of(database)
    assert digest_emails.handle(run, [SendDigestEmails()]) == [None]
    digest_emails.send_waiting(run, mail, FakeAlerts())
    assert sorted(message.to for message in mail.delivered) == ["ana@example.test", "bea@example.test"]
    assert all("Becas" in message.text for message in mail.delivered)
    assert run.counts["failed"] == 0


def test_digests_of_before_get_their_date(empty_database: Engine) -> None:
    """One digest a local date holds for the day of the upgrade too; doubles of before stay, and are no obstacle."""
    database = adopted(empty_database, revision="0002")
    with database.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO users (id, email, timezone) VALUES ('tokyo', 't@example.test', 'Asia/Tokyo'), "
                "('mars', 'm@example.test', 'Mars/Olympus')"
            )
        )
        connection.execute(
            text(
                "INSERT INTO digests (user_id, due_at) VALUES ('ana', '2026-11-25 22:30Z'), "
                "('ana', '2026-11-25 23:30Z'), ('ana', '2026-11-26 08:00Z'), ('tokyo', '2026-11-25 22:30Z'), "
                "('mars', '2026-11-25 22:30Z')"
            )
        )
    migrations.upgrade("nifya", database.engine)
    found = values(database, "SELECT user_id, due_on::text FROM digests ORDER BY user_id, due_at")
    assert found == [
        ("ana", "2026-11-25"), ("ana", "2026-11-26"), ("ana", None), ("mars", "2026-11-25"),
        ("tokyo", "2026-11-26"),
    ]  # fmt: skip
