"""Tasks come in by the database's own functions, in the transaction of whoever calls them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql

from include.leadmetrics import tables
from include.leadmetrics.enqueue import enqueue_alert, enqueue_reminders
from include.run import Transaction
from tests.leadmetrics.rows import ALERT, EARLY, LATE, Rows

DELAYS = {EARLY: timedelta(hours=1), LATE: timedelta(hours=24), ALERT: timedelta(0)}


def enqueue(rows: Rows, session: str = "abc") -> int:
    """Enqueue all that a session brings, in one transaction; return how many tasks are new."""
    with rows.db.transaction() as tx:
        return enqueue_reminders(tx, session, "Ana") + enqueue_alert(tx, session, "a@b.test", "Ana", "Acme")


def test_delays_and_payloads(rows: Rows) -> None:
    """+1 hour, +24 hours, at once: said in one place, which applications and the demo share."""
    assert enqueue(rows) == 3
    found = {row.taskType: row for row in rows.all(tables.SCHEDULED_TASK)}
    assert {kind: row.scheduledAt - row.createdAt for kind, row in found.items()} == DELAYS
    assert found[EARLY].payload == found[LATE].payload == {"sessionId": "abc", "name": "Ana"}
    assert found[ALERT].payload == {
        "sessionId": "abc",
        "email": "a@b.test",
        "name": "Ana",
        "companyName": "Acme",
    }
    assert {row.status for row in found.values()} == {"pending"}


def test_a_second_time_adds_nothing(rows: Rows) -> None:
    """An application that tries its request again reminds nobody twice."""
    enqueue(rows)
    assert enqueue(rows) == 0
    assert enqueue(rows, "other") == 3


def test_in_the_applications_own_transaction(rows: Rows) -> None:
    """A signup that is rolled back leaves no task."""
    with rows.db.engine.connect() as connection:
        assert enqueue_reminders(Transaction(connection), "abc") == 2
        connection.rollback()
    assert rows.all(tables.SCHEDULED_TASK) == []


def test_the_platform_hears_of_it_at_once(rows: Rows) -> None:
    """The insert notifies the channel on which the DAG's trigger listens, an application's own INSERT too."""
    url = rows.db.engine.url
    where: dict[str, Any] = {"host": url.query["host"], "port": url.query["port"], "dbname": url.database}
    with psycopg.connect(user=url.username, autocommit=True, **where) as listener:
        listener.execute(sql.SQL("LISTEN {}").format(sql.Identifier(tables.CHANNEL)))
        enqueue(rows)
        assert [one.channel for one in listener.notifies(timeout=5, stop_after=1)] == [tables.CHANNEL]
        rows.execute(
            "INSERT INTO scheduled_task (id, \"taskType\", \"updatedAt\") VALUES ('t1', 'signup.alert.internal', now())"
        )
        assert [one.channel for one in listener.notifies(timeout=5, stop_after=1)]
