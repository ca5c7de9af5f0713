"""The console's questions on a database that an application made, and on one that holds very much."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import Engine, text

from include import migrations
from include.clearpath import console
from include.clearpath.console import (
    CERTIFICATE_FILTERS,
    MAIL_STATUSES,
    UNKNOWN,
    ListedMail,
    MailFilter,
    Place,
)
from include.run import EngineDatabase
from tests.test_migrations import PRISMA, script

NOW = datetime(2027, 3, 10, 20, tzinfo=UTC)
MANY = 100_000


def test_every_filter_works_where_words_are_enum_types(empty_database: Engine) -> None:
    """Ruling 15: an adopted database has enum types, with which text can't be compared."""
    script(empty_database, PRISMA)
    migrations.upgrade("clearpath", empty_database)
    with EngineDatabase(empty_database).transaction() as tx:
        for status in (*MAIL_STATUSES, UNKNOWN, None):
            listed = console.mail_log(tx, MailFilter(status=status, email_type="day_30"), NOW)
            assert len(listed.rows) == (3 if status in ("sent", None) else 0)
        (first, *_) = console.mail_log(tx, MailFilter(), NOW).rows
        detail = console.mail_detail(tx, first.row.id, NOW)
        assert detail is not None
        assert detail.reason == "sent on 31 May 2026, 09:15"
        for shown in (*CERTIFICATE_FILTERS, None):
            listed = console.certificates(tx, "", shown)
            assert len(listed.rows) == (2 if shown in ("valid", "without_pdf", None) else 0)
        assert console.pdf_state(listed.rows[0]) == "none here: issued before this platform came"


@pytest.fixture
def large(clearpath: EngineDatabase) -> EngineDatabase:
    """Fill a log of which a fifth is still to come."""
    with clearpath.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO users (id, email, full_name) SELECT gen_random_uuid(), "
                "'person' || n || '@example.test', 'Person ' || n FROM generate_series(1, :many / 5) AS n"
            ),
            {"many": MANY},
        )
        connection.execute(
            text(
                "INSERT INTO email_log (user_id, email_type, status, scheduled_at) "
                "SELECT u.id, 'app_' || t, CASE WHEN t = 4 THEN 'queued' ELSE 'sent' END, "
                "       CAST(:now AS timestamptz) + (t - 4) * interval '30 days' + n * interval '1 minute' "
                "FROM (SELECT id, row_number() OVER () AS n FROM users) AS u, generate_series(0, 4) AS t"
            ),
            {"now": NOW},
        )
        connection.execute(text("ANALYZE"))
    return clearpath


@pytest.mark.parametrize(
    ("wanted", "within"),
    [
        (MailFilter(), 0.1),
        (MailFilter(due_until=date(2027, 3, 10)), 0.1),
        (MailFilter(status="queued"), 0.1),
        (MailFilter(search="person777@"), 1.0),
    ],
    ids=str,
)
def test_a_page_of_a_long_log_is_quick(large: EngineDatabase, wanted: MailFilter, within: float) -> None:
    """A page is read from the index: sorting the whole log for it would take as long as the log is long."""
    best = 9.0
    for _ in range(3):
        with large.transaction() as tx:
            started = time.perf_counter()
            listed = console.mail_log(tx, wanted, NOW)
            best = min(best, time.perf_counter() - started)
    assert listed.rows
    assert best < within


def test_a_deep_page_costs_what_the_first_costs(large: EngineDatabase) -> None:
    """Counting rows off from the start, as OFFSET does, would make the last page of a log the slowest."""
    with large.transaction() as tx:
        (last, *_) = console.mail_log(tx, MailFilter(due_until=date(2026, 11, 11)), NOW).rows
        after = Place(last.row.scheduled_at.isoformat(), last.row.id)
        plan = "\n".join(
            row[0]
            for row in tx.rows(
                text(
                    "EXPLAIN SELECT id FROM email_log WHERE (scheduled_at, id) < (:at, :id) "
                    "ORDER BY scheduled_at DESC, id DESC LIMIT 51"
                ),
                at=last.row.scheduled_at,
                id=last.row.id,
            )
        )
        assert "ix_email_log_listed" in plan
        assert "Sort" not in plan
        started = time.perf_counter()
        assert isinstance(console.mail_log(tx, MailFilter(), NOW, after).rows[0], ListedMail)
        assert time.perf_counter() - started < 0.5


def test_a_page_does_not_name_itself_as_the_next(clearpath: EngineDatabase) -> None:
    """A list that fills its page exactly ends there."""
    with clearpath.transaction() as tx:
        tx.execute(text("INSERT INTO users (email) VALUES ('one@example.test')"))
        tx.execute(
            text(
                "INSERT INTO email_log (user_id, email_type, status, scheduled_at) "
                "SELECT id, 'app', 'sent', now() FROM users, generate_series(1, :rows)"
            ),
            rows=console.PAGE,
        )
        listed = console.mail_log(tx, MailFilter(), NOW + timedelta(days=1))
        assert len(listed.rows) == console.PAGE
        assert listed.next is None
