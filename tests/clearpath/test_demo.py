"""The demo data: believable, complete, the same each time, and good for any number of sessions."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, func, select, text

from include.as_of import local_date
from include.clearpath import (
    ZONE,
    certificate_expiry,
    certificate_rendering,
    cnrpp_expiry_alert,
    demo,
    email_queue_dispatch,
    lab_result_polling,
    session_expiry,
)
from include.clearpath.tables import METADATA, SEQUENCED_TYPES, SESSION_STATUSES
from include.dates_in_words import instant
from include.job import perform
from include.preview import preview
from include.run import Database, EngineDatabase, Run
from stack.demo import AHEAD, PREVIEWED
from tests.clearpath.world import PARAMS, SETTINGS, outside
from tests.fakes.world import FakeAlerts, FakeLab, FakeMail, FakeStorage, World

MOMENTS = [
    # The first minute of a local month, whose UTC day is the second; a leap day; both changes of the clocks.
    "2027-03-01T06:00:00Z",
    "2028-02-29T20:00:00Z",
    "2025-03-09T09:30:00Z",
    "2025-11-02T08:30:00Z",
    # Late on the last evening of a year.
    "2028-01-01T05:59:59Z",
]

EMPTY_BY_DESIGN = {"email_frames", "baseline", "adoption_findings"}


def rows(connection: Connection) -> dict[str, list[str]]:
    """Return all rows of all tables as text, without what the insert itself stamps."""
    stamps = {"created_at", "updated_at", "claimed_at", "first_seen_at", "last_tried_at"}
    return {
        name: sorted(
            str({key: value for key, value in row.items() if key not in stamps})
            for row in connection.execute(select(table)).mappings()
        )
        for name, table in METADATA.tables.items()
    }


def counts(job: Any, database: EngineDatabase, around: World) -> Counter[str]:
    """Run a job now and return its counts."""
    run = Run(
        job=job.NAME,
        run_id="test",
        as_of=datetime.now(UTC),
        zone=ZONE,
        db=database,
        params=PARAMS,
        settings={**getattr(job, "SETTINGS", {}), **SETTINGS},
    )
    perform(job, run, outside(job, around))
    return run.counts


def around_demo(now: datetime) -> World:
    """Return a world in which everything works."""
    return World(
        FakeMail(batch_size=100), FakeAlerts(), FakeLab(demo.lab_records(now), page_size=5), FakeStorage()
    )


@pytest.mark.parametrize("moment", MOMENTS)
def test_seeding_again_adds_nothing(clearpath: EngineDatabase, moment: str) -> None:
    """The stack seeds at every start with demo data: days later the rows must not double."""
    now = datetime.fromisoformat(moment)
    with clearpath.engine.begin() as connection:
        demo.seed(connection, now)
        before = rows(connection)
        demo.seed(connection, now + timedelta(days=40))
        assert rows(connection) == before
    assert {name for name, found in before.items() if not found} == EMPTY_BY_DESIGN


def test_the_same_moment_gives_the_same_rows(database_of: Any) -> None:
    """A demo that differs from one start to the next can't be described or compared."""
    now = datetime.fromisoformat("2027-03-15T18:00:00Z")
    seen = []
    for zone in ("UTC", "Europe/Madrid"):
        with database_of("clearpath", timezone=zone).engine.begin() as connection:
            demo.seed(connection, now)
            connection.execute(text("SET timezone = 'UTC'"))
            seen.append(rows(connection))
    assert seen[0] == seen[1]
    assert demo.lab_records(now) == demo.lab_records(now)


@pytest.mark.parametrize("moment", MOMENTS)
def test_nothing_happened_after_now(clearpath: EngineDatabase, moment: str) -> None:
    """A mail sent tomorrow or an alert of next month would give the demo away."""
    now = datetime.fromisoformat(moment)
    past = {"sent_at", "created_at", "completed_at", "expired_at", "last_cnrpp_alert_sent_at", "activated_at"}
    past |= {
        "render_failed_at",
        "claimed_at",
        "begun_at",
        "last_run_at",
        "last_poll_timestamp",
        "first_seen_at",
    }
    with clearpath.engine.begin() as connection:
        demo.seed(connection, now)
        for table in METADATA.sorted_tables:
            for column in table.columns:
                if column.name in past and table.name not in EMPTY_BY_DESIGN:
                    latest = connection.scalar(select(func.max(column)))
                    stamped = column.server_default is not None
                    assert latest is None or latest <= now or stamped, f"{table.name}.{column.name}"
        stamps = connection.scalars(
            text("SELECT created_at FROM email_log UNION SELECT created_at FROM test_sessions")
        )
        assert max(stamps) <= now


@pytest.mark.parametrize("moment", MOMENTS)
def test_every_rule_has_a_row(clearpath: EngineDatabase, moment: str) -> None:
    """Each branch of the jobs must be there to see, on whatever day the demo is made."""
    now = datetime.fromisoformat(moment)
    today = local_date(now, ZONE)
    binds = {"now": now, "today": today, "types": list(SEQUENCED_TYPES), "month": today.replace(day=1)}
    with clearpath.engine.begin() as connection:
        demo.seed(connection, now)
        for what, condition in BRANCHES.items():
            statement = text(f"SELECT count(*) FROM {condition}")
            names = {name: value for name, value in binds.items() if f":{name}" in condition}
            assert connection.scalar(statement, names), what
        due = text(
            "SELECT DISTINCT email_type FROM email_log e JOIN test_sessions s ON s.id = e.test_session_id "
            "WHERE e.status = 'queued' AND scheduled_at <= :now AND s.status NOT IN ('cancelled', 'complete')"
        )
        assert set(connection.scalars(due, {"now": now})) == set(SEQUENCED_TYPES)
        found = set(connection.scalars(text("SELECT DISTINCT status FROM test_sessions")))
        assert found == set(SESSION_STATUSES)


BRANCHES = {
    "a hostile name with mail due": "email_log e JOIN users u ON u.id = e.user_id "
    "WHERE u.full_name LIKE '<a href%' AND e.status = 'queued' AND e.scheduled_at <= :now",
    "a name with Ñ": "users WHERE full_name LIKE '%Ñ%'",
    "a mail that fails in its template": "email_log e JOIN users u ON u.id = e.user_id "
    "WHERE u.full_name IS NULL AND e.status = 'queued' AND e.scheduled_at <= :now",
    "a failed mail due again": "email_log WHERE status = 'failed' AND retry_count = 1 "
    "AND next_attempt_at <= :now",
    "a failed mail at its last try": "email_log WHERE status = 'failed' AND retry_count = 2",
    "a failed mail not due yet": "email_log WHERE status = 'failed' AND next_attempt_at > :now",
    "a permanent failure": "email_log WHERE permanent AND NOT outcome_unknown",
    "an unknown outcome": "email_log WHERE outcome_unknown",
    "a copy of a sent mail": "email_log q JOIN email_log s USING (test_session_id, email_type) "
    "WHERE q.status = 'queued' AND s.status = 'sent'",
    "a copy without a session": "email_log q JOIN email_log s USING (user_id, email_type) "
    "WHERE q.status = 'queued' AND s.status = 'sent' "
    "AND q.test_session_id IS NULL AND s.test_session_id IS NULL",
    "two due at once": "email_log a JOIN email_log b USING (test_session_id, email_type) "
    "WHERE a.id < b.id AND a.status = 'queued' AND b.status = 'queued'",
    "mail of a cancelled session": "email_log e JOIN test_sessions s ON s.id = e.test_session_id "
    "WHERE e.status = 'queued' AND s.status = 'cancelled' AND e.scheduled_at <= :now",
    "mail of an application's own": "email_log WHERE email_type <> ALL (:types)",
    "a stuck queue": "(SELECT 1 FROM email_log WHERE status = 'abandoned' AND updated_at > "
    "CAST(:now AS timestamptz) - interval '24 hours' OFFSET 10) AS eleven",
    "a claim never begun": "email_attempts WHERE begun_at IS NULL",
    "a claim whose key has expired": "email_attempts "
    "WHERE begun_at < CAST(:now AS timestamptz) - interval '24 hours'",
    "a session one day past its grace": "test_sessions WHERE status = 'active' "
    "AND expected_completion_date = CAST(:today AS date) - 91",
    "a session on the last day of its grace": "test_sessions WHERE status = 'mailed' "
    "AND expected_completion_date = CAST(:today AS date) - 90",
    "a session past its grace with a result": "test_sessions s JOIN results r ON r.test_session_id = s.id "
    "WHERE s.status = 'results_pending' AND expected_completion_date < CAST(:today AS date) - 90",
    "retryable mail of a session to expire": "email_log e JOIN test_sessions s ON s.id = e.test_session_id "
    "WHERE e.status = 'failed' AND s.expected_completion_date = CAST(:today AS date) - 91",
    "a certificate that ended yesterday": "certificates WHERE status = 'valid' "
    "AND valid_until = CAST(:today AS date) - 1",
    "a certificate on its last day": "certificates WHERE status = 'valid' AND valid_until = :today",
    "an expired certificate": "certificates WHERE status = 'expired' AND pdf_needs_regeneration",
    "a certificate that failed to print": "certificates WHERE render_error IS NOT NULL",
    "a contractor at 60 days": "contractors WHERE cnrpp_expiry_date = CAST(:today AS date) + 60",
    "a contractor at 61 days": "contractors WHERE cnrpp_expiry_date = CAST(:today AS date) + 61",
    "an active contractor who has expired": "contractors WHERE status = 'active' "
    "AND cnrpp_expiry_date < :today",
    "an alert sent this month": "cnrpp_alerts WHERE alert_month = :month AND sent_at IS NOT NULL",
    "an alert sent before this month": "cnrpp_alerts a JOIN contractors c ON c.id = a.contractor_id "
    "WHERE alert_month < :month AND sent_at IS NOT NULL AND c.status = 'active'",
    "an unsent alert of an inactive contractor": "cnrpp_alerts a "
    "JOIN contractors c ON c.id = a.contractor_id WHERE a.sent_at IS NULL AND c.status = 'inactive'",
    "a session that waits for the lab": "test_sessions s LEFT JOIN results r ON r.test_session_id = s.id "
    "WHERE s.status = 'results_pending' AND r.id IS NULL AND expected_completion_date < :today",
    "an open record set aside": "lab_set_aside WHERE resolved_at IS NULL",
    "a resolved record": "lab_set_aside WHERE resolved_at IS NOT NULL",
}


def test_every_job_has_something_to_do(clearpath: EngineDatabase) -> None:
    """The demo runs every DAG once: each main count must be above zero, and each branch must be taken."""
    now = datetime.now(UTC)
    with clearpath.engine.begin() as connection:
        demo.seed(connection, now)
    around = around_demo(now)
    mail = counts(email_queue_dispatch, clearpath, around)
    assert mail["sent"] >= 8
    assert {
        name for name in ("cancelled", "duplicate", "failed", "unknown", "alerts") if not mail[name]
    } == set()
    assert counts(email_queue_dispatch, clearpath, around)["sent"] == 0
    assert counts(session_expiry, clearpath, around)["expired"] == 4
    assert counts(certificate_expiry, clearpath, around)["expired"] == 2
    assert counts(cnrpp_expiry_alert, clearpath, around)["sent"] == 7
    polled = counts(lab_result_polling, clearpath, around)
    # Six as the lab has them now, and one that was set aside before its order was entered.
    assert (polled["ingested"], polled["set_aside"]) == (7, 9)
    assert counts(certificate_rendering, clearpath, around)["rendered"] > polled["ingested"]


def test_lab_records_cover_what_a_lab_sends() -> None:
    """S1, S2: the loopback lab of the demo must show every way in which a record is saved or set aside."""
    records = demo.lab_records(datetime.fromisoformat("2027-03-15T18:00:00Z"))
    form = {"id", "order_id", "kit_serial_number", "value", "unit", "measured_at", "created_at"}
    assert {frozenset(record) for record in records} == {frozenset(form)}
    assert len({record["id"] for record in records}) == len(records)
    times = [record["created_at"] for record in records]
    assert times == sorted(times)
    assert len(set(times)) < len(times)
    assert {"NaN", "<0.3", "-4"} <= {record["value"] for record in records}
    assert {None, "pCi/L", "Bq/m3"} == {record["unit"] for record in records}


def test_any_number_of_sessions(clearpath: EngineDatabase) -> None:
    """Benchmarks and the tests of large databases stand on this: every job finds its rows, in proportion."""
    now = datetime.now(UTC)
    with clearpath.engine.begin() as connection:
        demo.generate(connection, now, sessions=3_000)
        connection.execute(text("ANALYZE"))
        before = rows(connection)
        demo.generate(connection, now, sessions=3_000)
        assert rows(connection) == before
        found = Counter(connection.scalars(text("SELECT status FROM test_sessions")))
        late = text(
            "SELECT count(*) FROM email_log WHERE status = 'queued' AND scheduled_at <= :now AND NOT EXISTS ("
            "SELECT 1 FROM test_sessions s WHERE s.id = test_session_id AND s.status = 'cancelled')"
        )
        due = connection.scalar(late, {"now": now})
    assert set(found) == set(SESSION_STATUSES)
    assert found["complete"] == 2_100
    assert 30 <= (due or 0) <= 60
    around = around_demo(now)
    for job, name in (
        (email_queue_dispatch, "sent"),
        (email_queue_dispatch, "duplicate"),
        (session_expiry, "expired"),
        (certificate_expiry, "expired"),
        (cnrpp_expiry_alert, "sent"),
        (certificate_rendering, "rendered"),
    ):
        if name != "duplicate":
            seen = counts(job, clearpath, around)
        assert seen[name] > 0, (job.NAME, name)
        assert seen[name] < 300, (job.NAME, name)


def test_more_sessions_add_the_rest(clearpath: EngineDatabase) -> None:
    """A benchmark grows its database step by step; what is there must stay."""
    now = datetime.fromisoformat("2027-03-15T18:00:00Z")
    with clearpath.engine.begin() as connection:
        demo.generate(connection, now, sessions=50)
        before = rows(connection)
        demo.generate(connection, now, sessions=120)
        after = rows(connection)
    assert len(after["test_sessions"]) == 120
    assert all(set(before[table]) <= set(after[table]) for table in before)


def test_the_preview_that_the_demo_proposes_shows_rows(clearpath: EngineDatabase) -> None:
    """The runs use the demo data up: what a person is told to look at next must not be empty."""
    now = datetime.now(UTC)
    with clearpath.engine.begin() as connection:
        demo.seed(connection, now)
    around = around_demo(now)
    for job in (email_queue_dispatch, session_expiry, lab_result_polling):
        counts(job, clearpath, around)
    assert PREVIEWED == "clearpath_session_expiry"
    run_settings = {**getattr(session_expiry, "SETTINGS", {}), **SETTINGS}

    def ahead(database: Database) -> Run:
        return Run(
            session_expiry.NAME, "test", now + AHEAD, ZONE, database, PARAMS, run_settings, preview=True
        )

    found = preview(clearpath.engine, session_expiry, ahead, outside(session_expiry, around))
    assert found["counts"]["expired"] > 20
    assert {"test_sessions", "email_log"} <= {table["table"] for table in found["tables"]}


def test_every_try_has_its_claim(clearpath: EngineDatabase) -> None:
    """The page of a mail that was refused must show by whom and when, or it contradicts itself."""
    tried = text(
        "SELECT e.id, greatest(e.retry_count, e.outcome_unknown::int), count(a.batch_id) FROM email_log e "
        "LEFT JOIN email_attempts a ON a.email_id = e.id AND a.outcome IN ('rejected', 'unknown') "
        "WHERE e.retry_count > 0 OR e.outcome_unknown GROUP BY e.id"
    )
    with clearpath.engine.begin() as connection:
        demo.seed(connection, datetime.now(UTC))
        found = connection.execute(tried).all()
    assert len(found) > 15
    assert [row for row in found if row[1] != row[2]] == []


def test_what_is_written_of_a_lost_claim_is_told_in_local_time(clearpath: EngineDatabase) -> None:
    """The sentence stands on a page whose other times are Edmonton's."""
    now = datetime.now(UTC)
    with clearpath.engine.begin() as connection:
        demo.seed(connection, now)
    counts(email_queue_dispatch, clearpath, around_demo(now))
    with clearpath.engine.begin() as connection:
        said = connection.scalars(
            text("SELECT last_error FROM email_log WHERE last_error LIKE 'begun on%'")
        ).all()
    begun = instant(now - timedelta(hours=30), ZONE)
    assert f"begun on {begun} and never answered; its key has expired" in said
