"""The smallest ClearPath in which every branch of every job has a row, and the world around it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert

from include.as_of import local_date, local_midnight
from include.clearpath import ZONE, tables
from tests.fakes.world import FakeAlerts, FakeLab, FakeMail, FakeStorage, World

SETTINGS: Mapping[str, str | None] = {
    "ADMIN_ALERT_EMAIL": "ops@clearpath.test",
    "APP_URL": "https://app.clearpath.test",
    "LAB_INTEGRATION_MODEL": "api",
}
PARAMS: Mapping[str, Any] = {
    "batch_limit": 50,
    "grace_days": 90,
    "window_days": 60,
    "since": None,
    "certificate_id": None,
}
BOOKKEEPING = {"lab_set_aside": {"tries", "last_tried_at"}}
"""Columns that count attempts, and so differ after a repeat."""

DAYLESS = {"clearpath_certificate_rendering"}
"""DAGs that do the same whatever the day: they work on what waits."""

NAMES = {"email", "clearpath_order_id", "kit_serial_number"}
"""Texts by which rows are known outside: copies of a row differ in them."""


def unit(table: str, row: Mapping[str, Any]) -> Any:
    """Return what stands or falls together: a session with its mail, results and certificate."""
    return row["id"] if table == "test_sessions" else row.get("test_session_id") or row["id"]


HOSTILE = '<a href="https://evil.test">Reset</a> & Co'


def name(kind: str, number: int) -> uuid.UUID:
    """Return a stable id, so that two seeded databases hold the same rows."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{kind}/{number}")


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all dates are relative to the local day of `now`."""
    today = local_date(now, ZONE)
    _people(connection, today)
    _sessions(connection, now, today)
    _mail(connection, now)
    _certificates(connection, today)
    _rows(
        connection,
        tables.JOBS_STATE,
        [{"id": name("state", 1), "job_name": "labPoll", "last_poll_timestamp": now - timedelta(days=2)}],
    )


def _rows(connection: Connection, table: Any, rows: list[dict[str, Any]]) -> None:
    columns = {column for row in rows for column in row}
    connection.execute(insert(table), [{column: row.get(column) for column in columns} for row in rows])


def _people(connection: Connection, today: date) -> None:
    _rows(
        connection,
        tables.USERS,
        [
            {
                "id": name("user", n),
                "email": f"user{n}@example.test",
                "full_name": HOSTILE if n == 3 else f"Ñandú {n}",
            }
            for n in range(1, 9)
        ],
    )
    month = local_midnight(today.replace(day=1), ZONE)
    contractors = [
        ("ends at the window's edge", "active", today + timedelta(days=60), None),
        ("ends a day beyond the window", "active", today + timedelta(days=61), None),
        ("ends today", "active", today, month - timedelta(seconds=1)),
        ("ended yesterday", "active", today - timedelta(days=1), None),
        ("ended, alerted this month", "active", today - timedelta(days=3), month),
        ("alerted this month", "active", today + timedelta(days=9), month),
        ("inactive", "inactive", today - timedelta(days=9), None),
        ("no date", "active", None, None),
    ]
    _rows(
        connection,
        tables.CONTRACTORS,
        [
            {
                "id": name("contractor", n),
                "name": words,
                "cnrpp_id": f"CRT-{n}",
                "status": status,
                "cnrpp_expiry_date": expiry,
                "last_cnrpp_alert_sent_at": alerted,
            }
            for n, (words, status, expiry, alerted) in enumerate(contractors, start=1)
        ],
    )


def _sessions(connection: Connection, now: datetime, today: date) -> None:
    sessions = [
        ("active", today + timedelta(days=20)),
        ("active", today - timedelta(days=91)),
        ("mailed", today - timedelta(days=90)),
        ("results_pending", today - timedelta(days=120)),
        ("cancelled", today - timedelta(days=200)),
        ("complete", today - timedelta(days=200)),
        ("mailed", today - timedelta(days=2)),
        ("results_pending", today - timedelta(days=4)),
        ("retrieval_due", today - timedelta(days=300)),
        ("mailed", today - timedelta(days=6)),
        ("complete", today - timedelta(days=800)),
        ("complete", today - timedelta(days=10)),
    ]
    _rows(
        connection,
        tables.TEST_SESSIONS,
        [
            {
                "id": name("session", n),
                "user_id": name("user", 1 + n % 8),
                "status": status,
                "clearpath_order_id": f"ORD-{n}",
                "kit_serial_number": f"KIT-{n}",
                "address": f"{n} Rue Ñ",
                "activated_at": now - timedelta(days=100),
                "expected_completion_date": done,
            }
            for n, (status, done) in enumerate(sessions, start=1)
        ],
    )
    _rows(
        connection,
        tables.RESULTS,
        [
            {
                "id": name("result", n),
                "test_session_id": name("session", n),
                "value_bq_m3": 148,
                "reported_value": "4.0",
                "reported_unit": "pCi/L",
                "source": "user",
            }
            for n in (5, 6, 9, 11, 12)
        ],
    )


def _mail(connection: Connection, now: datetime) -> None:
    due = now - timedelta(minutes=30)
    mails: list[dict[str, Any]] = [
        {"session": 1, "email_type": "day_30", "status": "queued", "scheduled_at": due},
        {"session": 1, "email_type": "day_60", "status": "queued", "scheduled_at": now + timedelta(days=9)},
        {"session": 2, "email_type": "day_88", "status": "queued", "scheduled_at": due},
        {
            "session": 2,
            "email_type": "results_prompt",
            "status": "failed",
            "retry_count": 1,
            "scheduled_at": due,
            "next_attempt_at": now - timedelta(minutes=5),
        },
        {
            "session": 3,
            "email_type": "day_80",
            "status": "failed",
            "retry_count": 2,
            "scheduled_at": due,
            "next_attempt_at": now - timedelta(minutes=5),
        },
        {
            "session": 3,
            "email_type": "day_88",
            "status": "failed",
            "retry_count": 1,
            "scheduled_at": due,
            "next_attempt_at": now + timedelta(minutes=12),
        },
        {"session": 4, "email_type": "day_30", "status": "queued", "scheduled_at": due},
        {"session": 5, "email_type": "day_30", "status": "queued", "scheduled_at": due},
        {"session": 6, "email_type": "results_prompt", "status": "queued", "scheduled_at": due},
        {"session": 7, "email_type": "day_30", "status": "sent", "scheduled_at": due, "sent_at": due},
        {"session": 7, "email_type": "day_30", "status": "queued", "scheduled_at": due},
        {"session": 7, "email_type": "day_60", "status": "queued", "scheduled_at": due},
        {
            "session": 7,
            "email_type": "day_60",
            "status": "queued",
            "scheduled_at": due + timedelta(minutes=1),
        },
        {"session": 8, "email_type": "newsletter", "status": "queued", "scheduled_at": due},
        {"session": 8, "email_type": "day_30", "status": "failed", "permanent": True, "scheduled_at": due},
        {"session": 8, "email_type": "day_60", "status": "abandoned", "retry_count": 3, "scheduled_at": due},
        {"session": None, "email_type": "day_30", "status": "queued", "scheduled_at": due},
        {"session": 10, "email_type": "results_prompt", "status": "queued", "scheduled_at": due},
        {"session": 3, "email_type": "day_60", "status": "queued", "scheduled_at": due},
    ]
    defaults = {"retry_count": 0, "permanent": False}
    _rows(
        connection,
        tables.EMAIL_LOG,
        [
            defaults
            | {k: v for k, v in mail.items() if k != "session"}
            | {
                "id": name("mail", n),
                "user_id": name("user", 1 + (mail["session"] or 0) % 8),
                "test_session_id": name("session", mail["session"]) if mail["session"] else None,
            }
            for n, mail in enumerate(mails, start=1)
        ],
    )


def _certificates(connection: Connection, today: date) -> None:
    certificates = [
        (6, "valid", today - timedelta(days=1), "certificates/6.pdf", False),
        (9, "valid", today, None, False),
        (11, "expired", today - timedelta(days=40), "certificates/11.pdf", True),
        (12, "valid", today + timedelta(days=700), None, False),
        (5, "valid", today - timedelta(days=2), None, False),
    ]
    _rows(
        connection,
        tables.CERTIFICATES,
        [
            {
                "id": name("certificate", n),
                "test_session_id": name("session", n),
                "certificate_number": f"CP-{n}",
                "status": status,
                "issued_on": until - timedelta(days=730),
                "valid_until": until,
                "pdf_path": path,
                "current_pdf_path": path,
                "pdf_needs_regeneration": flag,
            }
            for n, status, until, path, flag in certificates
        ],
    )


def lab_records(now: datetime) -> list[Any]:
    """Return what the lab tells: every way in which a record can be saved, skipped or set aside."""
    at = (now - timedelta(hours=3)).isoformat()
    record = {"unit": "Bq/m3", "measured_at": at, "created_at": at}
    return [
        record | {"id": "r1", "order_id": "ORD-7", "kit_serial_number": "KIT-7", "value": 148},
        record | {"id": "r2", "kit_serial_number": "KIT-8", "value": "4.0", "unit": "pCi/L"},
        record | {"id": "r3", "order_id": "ORD-3", "value": "<0.3", "unit": "pCi/L"},
        record | {"id": "r4", "order_id": "ORD-9", "value": 90},
        record | {"id": "r5", "order_id": "ORD-7", "kit_serial_number": "KIT-8", "value": 90},
        record | {"id": "r6", "order_id": "ORD-404", "value": 90},
        record | {"id": "r7", "order_id": "ORD-10", "value": "NaN"},
        record | {"id": "r8", "order_id": "ORD-10", "value": 12, "unit": None},
        record | {"id": "r9", "order_id": "ORD-1", "value": 12},
        "not a record",
        record | {"id": "r1", "order_id": "ORD-7", "kit_serial_number": "KIT-7", "value": 148},
    ]


def world(now: datetime) -> World:
    """Return the world around the seeded database, with one address that the provider refuses."""
    return World(
        mail=FakeMail(refuse={"user4@example.test"}),
        alerts=FakeAlerts(),
        lab=FakeLab(lab_records(now)),
        storage=FakeStorage(files={"certificates/6.pdf": b"six", "certificates/11.pdf": b"eleven"}),
    )


def grow(around: World, copies: int) -> None:
    """Let the lab tell of every copy of a session what it tells of the first."""
    known = [dict(record) for record in around.lab.records if isinstance(record, dict)]
    around.lab.records = [
        *around.lab.records,
        *(
            {k: f"{v}-{n}" if k in {"id", "order_id", "kit_serial_number"} else v for k, v in record.items()}
            for n in range(1, copies + 1)
            for record in known
        ),
    ]


def outside(job: Any, around: World) -> Any:
    """Return a job's collaborators from the world, by the names that it gives them."""
    fields = getattr(job.Outside, "_fields", ())
    return job.Outside(**{field: getattr(around, field) for field in fields})
