"""A database that LeadMetrics' application made with Prisma is taken over as it is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine, text

from include import migrations
from include.leadmetrics.tables import SCHEDULED_TASK
from include.run import EngineDatabase
from tests.leadmetrics.rows import Rows

PRISMA = """
CREATE TYPE "TaskStatus" AS ENUM ('pending', 'running', 'completed', 'failed');
CREATE TYPE "Stage" AS ENUM ('step_1', 'step_2', 'step_3', 'step_4', 'complete');
CREATE TABLE scheduled_task (
    id TEXT NOT NULL, "taskType" TEXT NOT NULL, payload JSONB NOT NULL,
    status "TaskStatus" NOT NULL DEFAULT 'pending', "scheduledAt" TIMESTAMP(3) NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, "completedAt" TIMESTAMP(3), "errorMessage" TEXT,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "updatedAt" TIMESTAMP(3) NOT NULL,
    CONSTRAINT scheduled_task_pkey PRIMARY KEY (id)
);
CREATE INDEX "scheduled_task_status_scheduledAt_idx" ON scheduled_task (status, "scheduledAt");
CREATE TABLE registration_session (
    id TEXT NOT NULL, email TEXT NOT NULL, "currentStage" "Stage" NOT NULL DEFAULT 'step_1', data JSONB,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "updatedAt" TIMESTAMP(3) NOT NULL,
    CONSTRAINT registration_session_pkey PRIMARY KEY (id)
);
INSERT INTO registration_session (id, email, "currentStage", "updatedAt")
    VALUES ('s1', 's1@example.test', 'step_2', now()), ('s2', 's2@example.test', 'step_4', now());
INSERT INTO scheduled_task (id, "taskType", payload, status, "scheduledAt", "updatedAt") VALUES
    ('old', 'signup.reminder.late', '{"sessionId": "s1"}', 'pending', '2020-01-01 00:00', now() AT TIME ZONE 'UTC'),
    ('due', 'signup.reminder.early', '{"sessionId": "s1"}', 'pending',
     now() AT TIME ZONE 'UTC' - interval '5 minutes', now() AT TIME ZONE 'UTC'),
    ('far', 'signup.reminder.early', '{"sessionId": "s2"}', 'pending',
     now() AT TIME ZONE 'UTC' - interval '5 minutes', now() AT TIME ZONE 'UTC'),
    ('done', 'signup.alert.internal', '{}', 'completed', now(), now()),
    ('bad', 'signup.alert.internal', '{}', 'failed', now(), now());
"""


@pytest.fixture
def adopted(empty_database: Engine) -> Rows:
    """Make the application's database and take it over."""
    with empty_database.begin() as connection:
        connection.execute(text(PRISMA.replace(": ", r"\: ")))
    migrations.upgrade("leadmetrics", empty_database)
    return Rows(EngineDatabase(empty_database))


def statuses(rows: Rows) -> dict[str, str]:
    """Return every task's status."""
    with rows.db.engine.connect() as connection:
        found = connection.execute(text("SELECT id, status::text FROM scheduled_task"))
        return {row[0]: row[1] for row in found}


def test_the_rows_are_worked_on_and_history_is_not(adopted: Rows) -> None:
    """Ruling 15: no row is lost, enum words serve, and nobody is reminded of what was due years ago."""
    run = adopted.perform()
    assert statuses(adopted) == {
        "old": "completed", "due": "completed", "far": "completed", "done": "completed", "bad": "failed",
    }  # fmt: skip
    assert [(row.dedupe_key, row.status) for row in adopted.outbox()] == [
        ("signup-reminder-early__s1", "sent")
    ]
    assert run.counts["skipped"] == 2


def test_the_application_goes_on_as_before(adopted: Rows) -> None:
    """Its own scheduler's statements are allowed, its INSERT needs no column that it does not know."""
    adopted.execute(
        'INSERT INTO scheduled_task (id, "taskType", payload, "scheduledAt", "updatedAt") '
        "VALUES ('new', 'signup.alert.internal', '{}', now(), now())"
    )
    adopted.execute(
        "UPDATE scheduled_task SET status = 'running', attempts = attempts + 1 WHERE id = 'new' AND status = 'pending'"
    )
    adopted.execute(
        "UPDATE scheduled_task SET status = 'completed', \"completedAt\" = now() WHERE id = 'new'"
    )
    assert statuses(adopted)["new"] == "completed"
    with pytest.raises(Exception, match="can't go from completed to pending"):
        adopted.execute("UPDATE scheduled_task SET status = 'pending' WHERE id = 'new'")


def test_instants_without_a_zone_are_utc(adopted: Rows) -> None:
    """Prisma writes UTC into columns without a zone; the same instants stand there afterwards, and it is reported."""
    (row,) = [row for row in adopted.all(SCHEDULED_TASK) if row.id == "old"]
    assert row.scheduledAt == datetime(2020, 1, 1, tzinfo=UTC)
    with adopted.db.engine.connect() as connection:
        subjects = set(connection.execute(text("SELECT subject FROM adoption_findings")).scalars())
    assert {"scheduledAt", "updatedAt"} <= subjects
