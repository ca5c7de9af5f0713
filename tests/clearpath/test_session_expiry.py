"""Abandoned tests expire, no day too early and none too late, and their mail with them."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from include.clearpath import session_expiry
from include.clearpath.tables import EMAIL_LOG, EMAIL_STATUSES, SESSION_STATUSES, TEST_SESSIONS
from include.run import EngineDatabase, Run
from tests.clearpath.rows import AS_OF, Rows, noon

NOTHING = session_expiry.Outside()
LONG_AGO = date(2026, 1, 1)


def expire(rows: Rows, as_of: datetime = AS_OF, **changed: Any) -> Run:
    """Run the job once."""
    return rows.perform(session_expiry, NOTHING, as_of, **changed)


@pytest.mark.parametrize(
    ("completion", "today", "grace", "status"),
    [
        # 90 days of grace end on 10 March: expired on the 11th, not before.
        ("2026-12-10", "2027-03-09", 90, "active"),
        ("2026-12-10", "2027-03-10", 90, "active"),
        ("2026-12-10", "2027-03-11", 90, "expired"),
        # The same day counted from the other side.
        ("2026-12-09", "2027-03-10", 90, "expired"),
        ("2026-12-11", "2027-03-10", 90, "active"),
        # Ends of months of 30 and 31 days, and of February.
        ("2026-11-30", "2027-02-28", 90, "active"),
        ("2026-11-30", "2027-03-01", 90, "expired"),
        ("2027-01-31", "2027-05-01", 90, "active"),
        ("2027-01-31", "2027-05-02", 90, "expired"),
        # A leap day is a day, as the end of the grace and as the completion date.
        ("2027-12-01", "2028-02-29", 90, "active"),
        ("2027-12-01", "2028-03-01", 90, "expired"),
        ("2028-02-29", "2028-05-29", 90, "active"),
        ("2028-02-29", "2028-05-30", 90, "expired"),
        # Over a new year.
        ("2026-10-02", "2026-12-31", 90, "active"),
        ("2026-10-02", "2027-01-01", 90, "expired"),
        # Another grace; none at all; a whole year.
        ("2027-03-09", "2027-03-10", 0, "expired"),
        ("2027-03-10", "2027-03-10", 0, "active"),
        ("2027-03-02", "2027-03-10", 7, "expired"),
        ("2027-03-03", "2027-03-10", 7, "active"),
        ("2026-03-09", "2027-03-10", 365, "expired"),
        ("2026-03-10", "2027-03-10", 365, "active"),
        # A test that is not over.
        ("2027-06-01", "2027-03-10", 90, "active"),
    ],
)
def test_the_day(rows: Rows, completion: str, today: str, grace: int, status: str) -> None:
    """`expected_completion_date + grace_days < today`: strictly, in days, whatever the calendar does."""
    session = rows.session(expected_completion_date=date.fromisoformat(completion))
    expire(rows, noon(today), grace_days=grace)
    assert rows.status(TEST_SESSIONS, session) == status


@pytest.mark.parametrize(
    ("as_of", "status"),
    [
        ("2027-03-11T05:59:59Z", "active"),
        ("2027-03-11T06:00:00Z", "expired"),
        # Alberta keeps UTC-6 (T7): 06:00Z is midnight in winter too.
        ("2027-01-15T05:59:59Z", "active"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Madrid"])
def test_the_local_day_decides(
    database_of: Callable[..., EngineDatabase], as_of: str, status: str, zone: str
) -> None:
    """T4: the day begins at midnight in Edmonton, not in UTC and not where the database thinks it is."""
    rows = Rows(database_of("clearpath", zone))
    session = rows.session(expected_completion_date=date(2026, 12, 10))
    expire(rows, datetime.fromisoformat(as_of))
    assert rows.status(TEST_SESSIONS, session) == status


@pytest.mark.parametrize("zone", ["UTC", "Europe/Madrid"])
def test_two_in_the_morning_utc_is_the_day_before(
    database_of: Callable[..., EngineDatabase], zone: str
) -> None:
    """T4 as it is told: at 2027-03-10T02:00Z it is the 9th, so what is due on the 10th waits."""
    rows = Rows(database_of("clearpath", zone))
    ninth = rows.session(expected_completion_date=date(2027, 3, 8))
    tenth = rows.session(expected_completion_date=date(2027, 3, 9))
    expire(rows, datetime(2027, 3, 10, 2, tzinfo=UTC), grace_days=0)
    assert rows.status(TEST_SESSIONS, ninth) == "expired"
    assert rows.status(TEST_SESSIONS, tenth) == "active"


@pytest.mark.parametrize("status", SESSION_STATUSES)
def test_the_status(rows: Rows, status: str) -> None:
    """Only tests that are under way expire: what has ended stays ended, what has not begun can't be abandoned."""
    session = rows.session(status, expected_completion_date=LONG_AGO)
    run = expire(rows)
    goes = status in ("active", "retrieval_due", "mailed", "results_pending")
    assert rows.status(TEST_SESSIONS, session) == ("expired" if goes else status)
    assert run.counts["expired"] == int(goes)
    assert (rows.one(TEST_SESSIONS, session).expired_at is not None) is goes


def test_a_session_without_a_date_stays(rows: Rows) -> None:
    """A test that never said when it ends can't be past its end."""
    session = rows.session(expected_completion_date=None)
    expire(rows)
    assert rows.status(TEST_SESSIONS, session) == "active"


def test_a_session_with_a_result_stays(rows: Rows) -> None:
    """A result that came makes a test anything but abandoned, whatever its status still says."""
    session = rows.session("results_pending", expected_completion_date=LONG_AGO)
    rows.result(session)
    run = expire(rows)
    assert rows.status(TEST_SESSIONS, session) == "results_pending"
    assert run.counts["processed"] == 0


def test_expired_at_is_the_real_time(rows: Rows) -> None:
    """A stamp of what happened tells when it happened, not what day the run decided by."""
    session = rows.session(expected_completion_date=date(2020, 1, 1))
    before = datetime.now(UTC)
    expire(rows, noon("2021-01-01"))
    expired_at = rows.one(TEST_SESSIONS, session).expired_at
    assert before - timedelta(seconds=5) <= expired_at <= datetime.now(UTC) + timedelta(seconds=5)


@pytest.mark.parametrize(
    ("mail", "after"),
    [
        ({"status": "queued"}, "cancelled"),
        ({"status": "queued", "late": -60 * 24 * 9}, "cancelled"),
        ({"status": "queued", "email_type": "results_prompt"}, "cancelled"),
        ({"status": "queued", "email_type": "reminder of the application"}, "cancelled"),
        ({"status": "failed", "retry_count": 0}, "cancelled"),
        ({"status": "failed", "retry_count": 1}, "cancelled"),
        ({"status": "failed", "retry_count": 2}, "cancelled"),
        ({"status": "failed", "retry_count": 3}, "failed"),
        ({"status": "failed", "retry_count": 1, "permanent": True}, "failed"),
        *(({"status": status}, status) for status in EMAIL_STATUSES if status not in ("queued", "failed")),
    ],
    ids=str,
)
def test_its_mail(rows: Rows, mail: dict[str, Any], after: str) -> None:
    """Cancelling covers what is queued and what would be tried again, and leaves history as it is."""
    session = rows.session(expected_completion_date=LONG_AGO)
    row = rows.mail(session, **mail)
    before = rows.one(EMAIL_LOG, row)
    run = expire(rows)
    now = rows.one(EMAIL_LOG, row)
    assert now.status == after
    assert run.counts["cancelled"] == int(after == "cancelled" and mail["status"] != "cancelled")
    if run.counts["cancelled"]:
        assert now.status_reason == "session expired on 2027-03-10"
    else:
        assert now == before


def test_nobody_elses_mail(rows: Rows) -> None:
    """Another session's mail goes out, the same user's and that of no session included."""
    user = rows.user()
    gone = rows.session(user_id=user, expected_completion_date=LONG_AGO)
    kept = rows.session(user_id=user)
    rows.mail(gone)
    others = [rows.mail(kept), rows.mail(None, user_id=user), rows.mail(rows.session())]
    run = expire(rows)
    assert run.counts["cancelled"] == 1
    assert [rows.mail_status(mail) for mail in others] == ["queued"] * 3


def test_a_session_and_its_mail_are_one_transaction(rows: Rows) -> None:
    """A session whose mail can't be cancelled does not expire: no expired test may remind anybody."""
    session = rows.session(expected_completion_date=LONG_AGO)
    other = rows.session(expected_completion_date=LONG_AGO)
    rows.refuse(EMAIL_LOG, rows.mail(session))
    run = expire(rows)
    assert rows.status(TEST_SESSIONS, session) == "active"
    assert rows.status(TEST_SESSIONS, other) == "expired"
    assert (run.counts["expired"], run.counts["failed"]) == (1, 1)


def test_one_bad_session_stops_no_other(rows: Rows, caplog: pytest.LogCaptureFixture) -> None:
    """The batch goes on; the log names the row and the error, and the next run finds it again."""
    sessions = [rows.session(expected_completion_date=LONG_AGO) for _ in range(7)]
    rows.refuse(TEST_SESSIONS, sessions[3], sessions[4])
    with caplog.at_level(logging.WARNING, "almanac"):
        run = expire(rows)
    assert (run.counts["expired"], run.counts["failed"], run.counts["processed"]) == (5, 2, 7)
    assert [rows.status(TEST_SESSIONS, one) for one in sessions].count("expired") == 5
    warned = {vars(record)["recordId"]: vars(record)["err"] for record in caplog.records}
    assert warned == {str(sessions[3]): "this row is bad", str(sessions[4]): "this row is bad"}


@pytest.mark.parametrize("change", ["result", "status", "date"])
def test_the_world_moves(rows: Rows, change: str) -> None:
    """A session that changed between the look and the change is left alone and counted as skipped."""
    session = rows.session("mailed", expected_completion_date=LONG_AGO)
    changes: dict[str, Callable[[], Any]] = {
        "result": lambda: rows.result(session),
        "status": lambda: rows.change(TEST_SESSIONS, session, status="complete"),
        "date": lambda: rows.change(TEST_SESSIONS, session, expected_completion_date=date(2027, 3, 9)),
    }
    with rows.meanwhile("a row is a session that is past", changes[change]):
        run = expire(rows)
    assert rows.status(TEST_SESSIONS, session) == ("complete" if change == "status" else "mailed")
    assert (run.counts["expired"], run.counts["skipped"]) == (0, 1)


def test_nothing_due(rows: Rows) -> None:
    """R1: a run without work succeeds with processed 0, and its last step notes it all the same."""
    rows.session()
    run = expire(rows)
    assert (run.state, run.counts["processed"], run.counts["expired"]) == ("success", 0, 0)
    state = rows.state("sessionExpiry")
    assert state is not None
    assert state.last_run_at == AS_OF


def test_the_same_day_again(rows: Rows) -> None:
    """Running twice on one day finds nothing new, and touches nothing again."""
    session = rows.session(expected_completion_date=LONG_AGO)
    mail = rows.mail(session)
    expire(rows)
    once = rows.one(TEST_SESSIONS, session), rows.one(EMAIL_LOG, mail)
    run = expire(rows)
    assert run.counts["processed"] == 0
    assert (rows.one(TEST_SESSIONS, session), rows.one(EMAIL_LOG, mail)) == once


def test_a_missed_night_is_made_up(rows: Rows) -> None:
    """T6: the scheduler was down on the day; the next run finds what became due meanwhile."""
    session = rows.session(expected_completion_date=date(2026, 12, 9))
    expire(rows, noon("2027-03-17"))
    assert rows.status(TEST_SESSIONS, session) == "expired"


def test_a_late_run_says_so(rows: Rows) -> None:
    """T3: a run of a past day comes after a newer one: it moves no mark back, and says what it is."""
    expire(rows)
    run = expire(rows, AS_OF - timedelta(days=3))
    state = rows.state("sessionExpiry")
    assert state is not None
    assert state.last_run_at == AS_OF
    (note,) = [note for note in run.notes if "older than the latest one" in note]
    # As a person says it, in the business's own time, as the console does beside it.
    assert note.endswith("(America/Edmonton): what that one did stands")
    assert not re.search(r"\d{4}-\d\d-\d\dT", note)
    assert not expire(rows).notes


def test_more_than_one_statement_changes(rows: Rows) -> None:
    """A batch size is a chunk, not a cap: 2,345 abandoned sessions all expire in one run."""
    user = rows.user()
    rows.insert_many(
        TEST_SESSIONS,
        [
            {"id": uuid.uuid4(), "user_id": user, "status": "mailed", "expected_completion_date": LONG_AGO}
            for _ in range(2_345)
        ],
    )
    run = expire(rows)
    assert run.counts["expired"] == 2_345
    with rows.database.transaction() as tx:
        left = select(func.count()).select_from(TEST_SESSIONS).where(TEST_SESSIONS.c.status != "expired")
        assert tx.value(left) == 0
