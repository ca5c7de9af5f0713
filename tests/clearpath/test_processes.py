"""Real processes: killed without a word, and two beside each other (E1, R4)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from include.clearpath.tables import CNRPP_ALERTS, EMAIL_ATTEMPTS, EMAIL_LOG
from include.platform.tables import ALERT
from include.run import EngineDatabase
from stack.fakes.resend_server import Fault, ResendServer
from stack.fakes.smtp_server import SmtpServer
from tests.clearpath.processes import begin, ended, kill, until
from tests.clearpath.rows import AS_OF, Rows

QUEUE = "email_queue_dispatch"
CNRPP = "cnrpp_expiry_alert"


@pytest.fixture
def rows(own_rows: Rows) -> Rows:
    """Return rows in a database of the test's own: a killed process may leave sessions behind for a moment."""
    return own_rows


def alerts(almanac: EngineDatabase) -> int:
    """Return how many alerts operators got."""
    with almanac.transaction() as tx:
        return tx.value(select(func.count()).select_from(ALERT))


@pytest.mark.parametrize("accepted", [True, False])
def test_killed_while_sending(
    rows: Rows, connections: dict[str, str], resend: Callable[..., ResendServer], almanac: EngineDatabase,
    *, accepted: bool,
) -> None:  # fmt: skip
    """E1: the provider accepts and the process dies before the row is updated, a second worker beside it: one mail."""
    server = resend(latency=0.7)
    mail = rows.mail(rows.session())
    first = begin(QUEUE, connections, datetime.now(UTC))
    until(lambda: server.requests)
    # While the answer is under way nothing can be written down.
    with rows.database.engine.connect() as holder:
        holder.exec_driver_sql("LOCK TABLE email_attempts IN EXCLUSIVE MODE")
        second = begin(QUEUE, connections, datetime.now(UTC), patience=90)
        if accepted:
            until(lambda: server.delivered)
        kill(first)
        holder.rollback()
    assert ended(second) == 0
    # The provider may still be at the killed worker's request, and refuses the key until it is through.
    until(lambda: server.delivered)
    assert ended(begin(QUEUE, connections, datetime.now(UTC))) == 0
    assert len(server.delivered) == 1
    assert len({request.key for request in server.requests}) == 1
    row = rows.one(EMAIL_LOG, mail)
    assert (row.status, row.retry_count, row.provider_message_id) == ("sent", 0, server.delivered[0].id)
    assert alerts(almanac) == 0


def test_killed_while_writing_files(rows: Rows, connections: dict[str, str], tmp_path: Path) -> None:
    """E1 with the outbox: the file is there, the row says nothing yet; the next run finds the file and writes none."""
    mail = rows.mail(rows.session())
    # The commit after the file is the one that records the answer.
    commits = [None, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    for number in commits[1:]:
        process = begin(QUEUE, connections, datetime.now(UTC), dies_at_commit=number)
        died = ended(process) == -9
        if not died or list((tmp_path / "outbox").glob("*.eml")):
            break
    assert died
    assert rows.mail_status(mail) == "queued"
    assert ended(begin(QUEUE, connections, datetime.now(UTC))) == 0
    assert rows.mail_status(mail) == "sent"
    assert len(list((tmp_path / "outbox").glob("*.eml"))) == 1


def test_killed_while_sending_over_smtp(rows: Rows, connections: dict[str, str]) -> None:
    """E1 over SMTP, which has no keys: at most once: the one in doubt is for a person, the others go out."""
    mails = [rows.mail(rows.session(user_id=rows.user(f"{n}@x.test")), late=9 - n) for n in range(3)]
    with SmtpServer() as server:
        extra = {"provider": "smtp", "security": "none", "from": "ClearPath <hello@clearpath.test>"}
        said = {"conn_type": "almanac_email", "host": "127.0.0.1", "port": server.port, "extra": extra}
        connections["AIRFLOW_CONN_CLEARPATH_EMAIL"] = json.dumps(said)
        with rows.database.engine.connect() as holder:
            process = begin(QUEUE, connections, datetime.now(UTC))
            until(lambda: any(row.begun_at for row in rows.all(EMAIL_ATTEMPTS)))
            holder.exec_driver_sql("LOCK TABLE email_attempts IN EXCLUSIVE MODE")
            until(lambda: server.received)
            kill(process)
            holder.rollback()
        assert ended(begin(QUEUE, connections, datetime.now(UTC), patience=90)) == 0
        received = [one.recipients[0] for one in server.received]
    assert len(received) == len(set(received))
    found = [rows.one(EMAIL_LOG, mail) for mail in mails]
    unknown = [row for row in found if row.outcome_unknown]
    assert len(unknown) <= 1
    assert {row.status for row in found if not row.outcome_unknown} == {"sent"}
    # Whatever is marked as sent was received, and nothing twice.
    assert len(received) >= len([row for row in found if row.status == "sent"])


def test_two_processes_with_delivery_paused(
    rows: Rows, connections: dict[str, str], resend: Callable[..., ResendServer], almanac: EngineDatabase
) -> None:
    """R4: run ten times each by two processes while the provider is down: afterwards, one alert a contractor."""
    server = resend()
    server.fail_always(Fault(status=503))
    today = datetime.now(UTC).date()
    contractors = {rows.contractor(today + timedelta(days=n - 1)) for n in range(4)}
    both = [begin(CNRPP, connections, datetime.now(UTC), times=10, patience=90) for _ in range(2)]
    assert [ended(process) for process in both] == [0, 0]
    assert server.delivered == []
    assert sorted(row.contractor_id for row in rows.all(CNRPP_ALERTS)) == sorted(contractors)
    assert alerts(almanac) == 1
    server.fail_always(None)
    both = [begin(CNRPP, connections, datetime.now(UTC), times=2, patience=90) for _ in range(2)]
    assert [ended(process) for process in both] == [0, 0]
    assert len(server.delivered) == 4
    assert len({delivery.message["subject"] for delivery in server.delivered}) == 4


def test_two_processes_at_one_queue(
    rows: Rows, connections: dict[str, str], resend: Callable[..., ResendServer]
) -> None:
    """R4, E1: two processes at the mail queue, each several times, with twins in it: one mail a key."""
    server = resend()
    keys = set()
    for n in range(12):
        session = rows.session(user_id=rows.user(f"{n}@x.test"))
        for _ in range(2):
            rows.mail(session)
        keys.add(f"{n}@x.test")
    both = [
        begin(QUEUE, connections, datetime.now(UTC), times=3, patience=90, batch_limit=5) for _ in range(2)
    ]
    assert [ended(process) for process in both] == [0, 0]
    assert sorted(delivery.to for delivery in server.delivered) == sorted(keys)
    assert sorted(row.status for row in rows.all(EMAIL_LOG)) == ["duplicate"] * 12 + ["sent"] * 12


def test_a_hold_ends_with_its_process(rows: Rows, connections: dict[str, str]) -> None:
    """A process that is killed while it holds the queue leaves nobody waiting for it."""
    rows.mail(rows.session())
    with rows.database.engine.connect() as holder:
        holder.exec_driver_sql("LOCK TABLE email_log IN EXCLUSIVE MODE")
        process = begin(QUEUE, connections, datetime.now(UTC))
        busy = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        until(lambda: _value(rows, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"))
        until(lambda: _value(rows, busy))
        kill(process)
        holder.rollback()
    until(lambda: not _value(rows, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"))
    assert ended(begin(QUEUE, connections, datetime.now(UTC))) == 0
    assert rows.all(EMAIL_LOG)[0].status == "sent"


def _value(rows: Rows, statement: str) -> Any:
    with rows.database.engine.begin() as connection:
        return connection.exec_driver_sql(statement).scalar()


def test_what_fails_in_a_process_is_seen(connections: dict[str, str]) -> None:
    """Else every test here could pass on processes that do nothing."""
    assert ended(begin("no_such_job", connections, AS_OF)) == 1
