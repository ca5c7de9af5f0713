"""Demo data: a day of registrations around a moment, in which every rule of the scheduler has a row."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, update
from sqlalchemy.dialects.postgresql import insert

from include.leadmetrics.enqueue import enqueue_alert, enqueue_reminders
from include.leadmetrics.tables import REGISTRATION_SESSION, SCHEDULED_TASK
from include.run import Transaction
from include.statements import statement

_PACKAGE = "include.leadmetrics"


class _Signup(NamedTuple):
    """A registration: how long ago it began, how far it came, and what became of it."""

    name: str
    company: str
    ago: timedelta
    stage: str
    broken_off: bool = True
    gone: bool = False


_SIGNUPS = (
    _Signup("Ana Núñez", "Núñez & Hijos", timedelta(minutes=90), "step_2"),
    _Signup("Bo Lindqvist", "Lindqvist AB", timedelta(hours=25), "step_1"),
    _Signup("Chidi Okafor", "Okafor Media", timedelta(hours=3), "step_4"),
    _Signup("Dana Levi", "Levi Growth", timedelta(hours=26), "complete"),
    _Signup("Elif Demir", "Demir Ltd", timedelta(hours=2), "step_2", gone=True),
    _Signup('<a href="https://evil.test">Reset</a> & Co', "<b>Bold</b>", timedelta(minutes=70), "step_3"),
    _Signup("Filip Novák", "Novák s.r.o.", timedelta(minutes=10), "step_1"),
    _Signup("Grace Hall", "Hall Partners", timedelta(minutes=1), "step_2", broken_off=False),
)


def seed(connection: Connection, now: datetime) -> None:
    """Put the day before `now` (aware) into a database; registrations of an earlier demo stay as they are."""
    tx = Transaction(connection)
    day = f"{now:%Y%m%d-%H%M}"
    for number, signup in enumerate(_SIGNUPS, start=1):
        _sign_up(connection, tx, f"demo-{day}-{number}", now, signup)
    # The tasks came in when their registration did, not now.
    tx.execute(statement(_PACKAGE, "move_demo_tasks"), sessions=f"demo-{day}-%")
    gone = [f"demo-{day}-{number}" for number, signup in enumerate(_SIGNUPS, start=1) if signup.gone]
    connection.execute(delete(REGISTRATION_SESSION).where(REGISTRATION_SESSION.c.id.in_(gone)))
    _odd_tasks(connection, day, now)


def _sign_up(connection: Connection, tx: Transaction, session: str, now: datetime, signup: _Signup) -> None:
    email = f"{session}@example.test"
    began = now - signup.ago
    row = {
        "id": session,
        "email": email,
        "currentStage": signup.stage,
        "createdAt": began,
        "updatedAt": began,
    }
    connection.execute(insert(REGISTRATION_SESSION).on_conflict_do_nothing(), [row])
    enqueue_alert(tx, session, email, signup.name, signup.company)
    if signup.broken_off:
        enqueue_reminders(tx, session, signup.name)


def _odd_tasks(connection: Connection, day: str, now: datetime) -> None:
    """Add what does not go by itself: an unknown type, a payload without a session, a claim that was lost."""
    first = f"demo-{day}-1"
    rows: list[dict[str, Any]] = [
        {"taskType": "signup.reminder.weekly", "payload": {"sessionId": first}},
        {"taskType": "signup.reminder.late", "payload": {"session": first}},
        {"taskType": "signup.reminder.late", "payload": {"sessionId": first}},
    ]
    for number, row in enumerate(rows, start=1):
        due = now - timedelta(minutes=5)
        given = row | {
            "id": f"demo-{day}-odd-{number}",
            "scheduledAt": due,
            "createdAt": due,
            "updatedAt": due,
        }
        connection.execute(insert(SCHEDULED_TASK).on_conflict_do_nothing(), [given])
    lost = {"attempts": 1, "claimed_by": "a worker that was killed", "heartbeat_at": now - timedelta(hours=1)}
    table = SCHEDULED_TASK
    connection.execute(
        update(table)
        .where(table.c.id == f"demo-{day}-odd-3", table.c.status == "pending", table.c.attempts == 0)
        .values(status="running", **lost)
    )
