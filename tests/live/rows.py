"""Rows that a live test adds to ClearPath's database for itself, as an application would."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, insert, text

from include.as_of import local_date
from include.clearpath import ZONE, tables


def add_session(
    connection: Connection, status: str, completion_days_ago: int, **fields: Any
) -> dict[str, Any]:
    """Add a user and a session of a status whose expected completion was some local days ago; return the session."""
    now = datetime.now(UTC)
    user, session = uuid.uuid4(), uuid.uuid4()
    connection.execute(
        insert(tables.USERS),
        {"id": user, "email": f"live-{user}@example.test", "full_name": "Live Ñandú"},
    )
    row = {
        "id": session,
        "user_id": user,
        "status": status,
        "kit_serial_number": f"KIT-{session}",
        "address": "1 Whyte Avenue, Edmonton, AB",
        "activated_at": now - timedelta(days=completion_days_ago + 91),
        "expected_completion_date": local_date(now, ZONE) - timedelta(days=completion_days_ago),
    } | fields
    connection.execute(insert(tables.TEST_SESSIONS), row)
    return row


def queue_mails(engine: Engine, types: Sequence[str] = ("day_30",), people: int = 1) -> list[str]:
    """Queue mails that are due for new people, one of each type a person; return their addresses."""
    due = datetime.now(UTC) - timedelta(minutes=5)
    with engine.begin() as connection:
        sessions = [add_session(connection, "active", -10) for _ in range(people)]
        connection.execute(
            insert(tables.EMAIL_LOG),
            [
                {
                    "id": uuid.uuid4(),
                    "user_id": session["user_id"],
                    "test_session_id": session["id"],
                    "email_type": kind,
                    "scheduled_at": due,
                }
                for session in sessions
                for kind in types
            ],
        )
    return [f"live-{session['user_id']}@example.test" for session in sessions]


def put_off_mails(engine: Engine) -> None:
    """Let no mail of the demo's customers fall due, or be tried again, within the hour."""
    with engine.begin() as connection:
        for column in ("scheduled_at", "next_attempt_at"):
            connection.execute(
                text(
                    f"UPDATE email_log SET {column} = {column} + interval '1 hour'"
                    f" WHERE status IN ('queued', 'failed') AND {column} BETWEEN now() AND now() + interval '1 hour'"
                )
            )


def add_certificate(engine: Engine) -> uuid.UUID:
    """Save a result with its certificate, which waits for its PDF; return the certificate's id."""
    certificate, today = uuid.uuid4(), local_date(datetime.now(UTC), ZONE)
    with engine.begin() as connection:
        session = add_session(connection, "complete", 5)
        connection.execute(
            insert(tables.RESULTS),
            {
                "test_session_id": session["id"],
                "value_bq_m3": 93,
                "reported_value": "93",
                "reported_unit": "Bq/m3",
            },
        )
        connection.execute(
            insert(tables.CERTIFICATES),
            {
                "id": certificate,
                "test_session_id": session["id"],
                "certificate_number": f"LIVE-{certificate}",
                "status": "valid",
                "issued_on": today,
                "valid_until": today.replace(year=today.year + 2, day=min(today.day, 28)),
            },
        )
    return certificate


def statuses(engine: Engine, address: str) -> list[str]:
    """Return the statuses of a person's mails in the log, sorted."""
    with engine.connect() as connection:
        found = connection.execute(
            text(
                "SELECT l.status::text FROM email_log l JOIN users u ON u.id = l.user_id WHERE u.email = :address"
            ),
            {"address": address},
        )
        return sorted(found.scalars())


def value(engine: Engine, sql: str, **binds: Any) -> Any:
    """Return the one value that a query gives."""
    with engine.connect() as connection:
        return connection.execute(text(sql), binds).scalar_one()
