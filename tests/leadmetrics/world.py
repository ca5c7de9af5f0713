"""The smallest LeadMetrics in which every branch of its job has a row, and the world around it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, text, update

from include.leadmetrics import tables
from include.leadmetrics.mail_templates import mail_of
from include.mail import Message
from include.stored_message import pack
from tests.dags.states import EVERYTHING
from tests.fakes.world import FakeAlerts, FakeLab, FakeMail, FakeStorage, World

SETTINGS: Mapping[str, str | None] = {
    "DASHBOARD_URL": "https://app.leadmetrics.test",
    "SIGNUP_ALERT_EMAIL": "sales@leadmetrics.test",
    "ADMIN_ALERT_EMAIL": "ops@leadmetrics.test",
}
PARAMS: Mapping[str, Any] = {"max_tasks": 8}
BOOKKEEPING = {
    # A claim that was lost counts, and is due again at an instant of its own.
    "scheduled_task": {"attempts", "dueAgainAt"},
    "queue_audit": {"id", EVERYTHING},
}
"""Columns that count attempts, and so differ after a repeat."""

DAYLESS: set[str] = set()
"""DAGs that do the same whatever the day: they work on what waits."""

NAMES = {"recipient"}
"""Texts by which rows are known outside: copies of a row differ in them."""

HOSTILE = '<a href="https://evil.test">Reset</a> & Co'


def unit(table: str, row: Mapping[str, Any]) -> Any:
    """Return what stands or falls together: every row for itself."""
    return row["id"]


def time_passes(connection: Connection) -> None:
    """Let the claims of this test's run grow old; another worker's stay alive."""
    connection.execute(
        text(
            "UPDATE scheduled_task SET heartbeat_at = heartbeat_at - interval '1 hour' "
            "WHERE status = 'running' AND claimed_by LIKE 'run 1 %'"
        )
    )


def name(kind: str, number: int) -> uuid.UUID:
    """Return a stable id, so that two seeded databases hold the same rows."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"leadmetrics/{kind}/{number}")


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all times are relative to `now`."""
    _sessions(connection)
    _tasks(connection, now)
    _outbox(connection, now)


def _sessions(connection: Connection) -> None:
    stages = ["step_2", "step_1", "step_3", "step_4", "complete", None, "step_2", "step_2", "step_1"]
    rows = [
        {
            "id": f"s{n}",
            "email": "nowhere" if n == 7 else f"user{n}@example.test",
            "currentStage": stage,
        }
        for n, stage in enumerate(stages, start=1)
        if stage is not None
    ]
    connection.execute(insert(tables.REGISTRATION_SESSION), rows)


def _tasks(connection: Connection, now: datetime) -> None:
    early, late, alert = "signup.reminder.early", "signup.reminder.late", "signup.alert.internal"
    due: list[tuple[str, dict[str, Any]]] = [
        (early, {"sessionId": "s1", "name": "Ñandú"}),
        (late, {"sessionId": "s1", "name": "Ñandú"}),
        (early, {"sessionId": "s2"}),
        (early, {"sessionId": "s4"}),
        (late, {"sessionId": "s5"}),
        (early, {"sessionId": "s6"}),
        (alert, {"sessionId": "s1", "email": "user1@example.test", "companyName": HOSTILE}),
        (alert, {"sessionId": "s3", "email": "User1@Example.test"}),
        (alert, {"sessionId": "s2", "email": "user2@example.test"}),
        ("signup.reminder.never", {"sessionId": "s1"}),
        (early, {"session": "s1"}),
        (early, {"sessionId": "s7"}),
        (early, {"sessionId": "s9"}),
        (alert, {"sessionId": "s9", "email": "nobody"}),
    ]
    rows = [
        {
            "id": f"t{n:02}",
            "taskType": kind,
            "payload": payload,
            "scheduledAt": now - timedelta(minutes=40 - n),
        }
        for n, (kind, payload) in enumerate(due, start=1)
    ]
    rows.append(
        {
            "id": "t20",
            "taskType": early,
            "payload": {"sessionId": "s3"},
            "scheduledAt": now + timedelta(minutes=30),
        }
    )
    lost = {"attempts": 1, "claimed_by": "gone", "heartbeat_at": now - timedelta(hours=1)}
    claimed: dict[str, dict[str, Any]] = {
        "t21": {"attempts": 1},
        "t22": {"attempts": 1},
        "t23": lost,
        "t24": lost | {"attempts": 3},
        # The test may take its time, and this worker is alive all along.
        "t25": lost | {"claimed_by": "alive", "heartbeat_at": now + timedelta(days=1)},
    }
    sessions = ["s8", "s8", "s8", "s3", "s3"]
    rows += [
        {
            "id": task,
            "taskType": early,
            "payload": {"sessionId": session, "name": HOSTILE},
            "scheduledAt": now - timedelta(minutes=50),
        }
        for task, session in zip(claimed, sessions, strict=True)
    ]
    table = tables.SCHEDULED_TASK
    connection.execute(insert(table), rows)
    # Rows come in as pending: the database lets none be born as anything else.
    for task, values in claimed.items():
        connection.execute(update(table).where(table.c.id == task).values(status="running", **values))
    ends = {
        "t21": {"status": "completed", "completedAt": now - timedelta(minutes=1)},
        "t22": {"status": "failed", "errorMessage": "unknown"},
    }
    for task, values in ends.items():
        connection.execute(update(table).where(table.c.id == task).values(**values))


def _outbox(connection: Connection, now: datetime) -> None:
    early, late, alert = "signup-reminder-early", "signup-reminder-late", "signup-alert-internal"
    rows: list[dict[str, Any]] = [
        {"tenant_id": "s2", "template_slug": late},
        {"tenant_id": "s4", "template_slug": late},
        {"tenant_id": "s5", "template_slug": early},
        {"tenant_id": "s3", "template_slug": late, "sink": "email", "batch_id": name("batch", 1)},
        {"tenant_id": "s3", "template_slug": "signup-reminder-never"},
        {"tenant_id": "s9", "template_slug": early, "status": "sent", "sink": "email"},
        {"tenant_id": "s8", "template_slug": late, "status": "unknown", "sink": "email"},
        {"tenant_id": "s9", "template_slug": late, "recipient": "refused@example.test"},
        {"tenant_id": "s9", "template_slug": alert, "recipient": "sales@leadmetrics.test"},
    ]
    given: list[dict[str, Any]] = []
    for n, row in enumerate(rows, start=1):
        data = {
            "email": f"lead{n}@example.test",
            "name": f"Lead {n}",
            "resumeUrl": f"https://app.leadmetrics.test/signup?session={row['tenant_id']}",
        }
        defaults = {
            "id": name("notification", n),
            "dedupe_key": f"{row['template_slug']}__{row['tenant_id']}",
            "recipient": f"lead{n}@example.test",
            "data": data,
            "due_at": now - timedelta(minutes=30 - n),
            "status": "pending",
            "sink": None,
            "batch_id": None,
        }
        given.append(defaults | row)
    connection.execute(insert(tables.NOTIFICATION_OUTBOX), given)
    mail = mail_of(late, {"resumeUrl": "https://app.leadmetrics.test/signup?session=s3"})
    message = Message("LeadMetrics <hello@leadmetrics.test>", "lead4@example.test", mail.subject, mail.text)
    attempt = {
        "batch_id": name("batch", 1),
        "position": 1,
        "notification_id": name("notification", 4),
        "message": pack(message),
        "run_id": "run 0",
        "begun_at": now - timedelta(minutes=10),
    }
    connection.execute(insert(tables.NOTIFICATION_ATTEMPTS), [attempt])


@dataclass
class LeadMetricsWorld(World):
    """What LeadMetrics' job reaches beyond its database: without Redis, mail."""

    queue: Any = None


def world(now: datetime) -> LeadMetricsWorld:
    """Return the world around the seeded database, with one address that the provider refuses."""
    return LeadMetricsWorld(
        mail=FakeMail(refuse={"refused@example.test"}, default_sender="LeadMetrics <hello@leadmetrics.test>"),
        alerts=FakeAlerts(),
        lab=FakeLab([]),
        storage=FakeStorage(),
    )


def grow(around: LeadMetricsWorld, copies: int) -> None:
    """Let the world outside know of every copy of a row what it knows of the first."""
    around.mail.refuse |= {f"refused@example.test-{n}" for n in range(1, copies + 1)}


def outside(job: Any, around: LeadMetricsWorld) -> Any:
    """Return a job's collaborators from the world, by the names that it gives them."""
    fields = getattr(job.Outside, "_fields", ())
    return job.Outside(**{field: getattr(around, field) for field in fields})
