"""A session's five mails: when each is due, and that each is made once."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from typing import Any

import pytest
from sqlalchemy import insert, select, text, update

from include.clearpath.email_sequence import due_times, make_sequence
from include.clearpath.tables import EMAIL_LOG, SEQUENCED_TYPES, TEST_SESSIONS, USERS
from include.errors import BadInput
from include.odd_dates import OddDate
from include.run import EngineDatabase


def session(database: EngineDatabase, **values: Any) -> uuid.UUID:
    """Make a session that was activated on a summer morning, unless `values` say otherwise."""
    values = {
        "status": "active",
        "activated_at": datetime.fromisoformat("2026-05-01T15:30:00Z"),
        "expected_completion_date": date(2026, 7, 30),
    } | values
    with database.transaction() as tx:
        user = tx.value(insert(USERS).values(email="ana@example.test").returning(USERS.c.id))
        return tx.value(insert(TEST_SESSIONS).values(user_id=user, **values).returning(TEST_SESSIONS.c.id))


def mails(database: EngineDatabase, of: uuid.UUID) -> dict[str, datetime]:
    """Return the mails of a session: when each type is due."""
    with database.transaction() as tx:
        found = tx.rows(
            select(EMAIL_LOG.c.email_type, EMAIL_LOG.c.scheduled_at).where(EMAIL_LOG.c.test_session_id == of)
        )
    assert len({row.email_type for row in found}) == len(found)
    return {row.email_type: row.scheduled_at for row in found}


@pytest.mark.parametrize(
    ("activated_at", "name", "due"),
    [
        # Summer to summer, and the day count itself.
        ("2026-05-01T15:30:00Z", "day_30", "2026-05-31T15:30:00Z"),
        ("2026-05-01T15:30:00Z", "day_88", "2026-07-28T15:30:00Z"),
        # 08:30 in winter is 15:30Z, in summer 14:30Z: the local time stays, the instant moves.
        ("2025-02-20T15:30:00Z", "day_30", "2025-03-22T14:30:00Z"),
        ("2025-09-01T14:30:00Z", "day_80", "2025-11-20T15:30:00Z"),
        # 02:30 on 9 March 2025 was skipped: an hour later, the same day.
        ("2025-02-07T09:30:00Z", "day_30", "2025-03-09T09:30:00Z"),
        # 01:30 on 2 November 2025 came twice: the first time.
        ("2025-10-03T07:30:00Z", "day_30", "2025-11-02T07:30:00Z"),
        # Activated in the second of two 01:30: the local time counts, not that it was the second.
        ("2025-11-02T08:30:00Z", "day_30", "2025-12-02T08:30:00Z"),
        # Alberta keeps UTC-6 from 8 March 2026 on (T7): no shift in November.
        ("2026-10-03T14:30:00Z", "day_60", "2026-12-02T14:30:00Z"),
        # Late in the evening the local day is not the UTC day.
        ("2026-05-02T04:30:00Z", "day_30", "2026-06-01T04:30:00Z"),
        # A leap day counts as a day.
        ("2028-01-31T18:00:00Z", "day_30", "2028-03-01T18:00:00Z"),
    ],
)
def test_day_mails_keep_the_local_time_of_the_activation(activated_at: str, name: str, due: str) -> None:
    """Calendar days at the same local time (T4, T7): adding hours instead is wrong twice a year."""
    assert due_times(datetime.fromisoformat(activated_at), None)[name] == datetime.fromisoformat(due)


@pytest.mark.parametrize(
    ("day", "due"),
    [
        ("2026-01-15", "2026-01-15T16:00:00Z"),
        ("2026-03-08", "2026-03-08T15:00:00Z"),
        ("2026-07-30", "2026-07-30T15:00:00Z"),
        ("2027-01-15", "2027-01-15T15:00:00Z"),
    ],
)
def test_the_prompt_for_results_is_due_at_nine_local(day: str, due: str) -> None:
    """Nine in the morning where the customer is, on the day of a change of clocks too."""
    activated_at = datetime.fromisoformat("2026-01-01T15:30:00Z")
    found = due_times(activated_at, date.fromisoformat(day))
    assert found["results_prompt"] == datetime.fromisoformat(due)


def test_a_session_gets_its_five_mails(clearpath: EngineDatabase) -> None:
    """All five types, queued, for the session's own user."""
    made = session(clearpath)
    with clearpath.transaction() as tx:
        assert make_sequence(tx, [made]) == 5
        rows = tx.rows(select(EMAIL_LOG, TEST_SESSIONS.c.user_id.label("owner")).join(TEST_SESSIONS))
    assert {row.email_type for row in rows} == set(SEQUENCED_TYPES)
    assert {(row.status, row.retry_count, row.user_id == row.owner) for row in rows} == {("queued", 0, True)}
    assert mails(clearpath, made) == due_times(
        datetime.fromisoformat("2026-05-01T15:30:00Z"), date(2026, 7, 30)
    )


def test_made_twice_is_made_once(clearpath: EngineDatabase) -> None:
    """Ruling 2: an activation that is handled twice, in one call or two, must not double the mail."""
    made = session(clearpath)
    with clearpath.transaction() as tx:
        assert make_sequence(tx, [made, made]) == 5
    with clearpath.transaction() as tx:
        tx.execute(update(EMAIL_LOG).where(EMAIL_LOG.c.email_type == "day_30").values(status="sent"))
        assert make_sequence(tx, [made]) == 0
    assert len(mails(clearpath, made)) == 5


def test_made_by_two_at_once_is_made_once(clearpath: EngineDatabase) -> None:
    """Neither sees the other's rows, so a look before the leap is not enough: the key must hold."""
    made = session(clearpath)

    def second() -> int:
        with clearpath.transaction() as tx:
            return make_sequence(tx, [made])

    with ThreadPoolExecutor(1) as pool:
        with clearpath.transaction() as tx:
            assert make_sequence(tx, [made]) == 5
            other = pool.submit(second)
            # The first commits only when the second has looked, and waits for it.
            while not other.done() and not tx.value(text("SELECT 1 FROM pg_locks WHERE NOT granted LIMIT 1")):
                time.sleep(0.01)
        assert other.result(timeout=30) == 0
    assert len(mails(clearpath, made)) == 5


def test_a_mail_that_an_application_made_is_left_alone(clearpath: EngineDatabase) -> None:
    """An adopted database holds sequences under ids of the application's: they must not be doubled."""
    made = session(clearpath)
    at = datetime.fromisoformat("2026-06-02T10:00:00Z")
    with clearpath.transaction() as tx:
        owner = tx.value(select(TEST_SESSIONS.c.user_id))
        own = {"user_id": owner, "test_session_id": made, "email_type": "day_30", "scheduled_at": at}
        tx.execute(insert(EMAIL_LOG).values(own))
        assert make_sequence(tx, [made]) == 4
    assert mails(clearpath, made)["day_30"] == at


def test_a_date_that_comes_later_brings_its_mail(clearpath: EngineDatabase) -> None:
    """A session may be activated before its completion date is known; the fifth mail follows then."""
    made = session(clearpath, expected_completion_date=None)
    with clearpath.transaction() as tx:
        assert make_sequence(tx, [made]) == 4
        tx.execute(update(TEST_SESSIONS).values(expected_completion_date=date(2026, 7, 30)))
        assert make_sequence(tx, [made]) == 1


def test_a_session_that_is_not_activated_gets_none(clearpath: EngineDatabase) -> None:
    """A pending session has no day to count from, and an unknown id must not stop the others."""
    waiting, active = session(clearpath, activated_at=None, status="pending"), session(clearpath)
    with clearpath.transaction() as tx:
        assert make_sequence(tx, [waiting, uuid.uuid4(), active]) == 5
    assert mails(clearpath, waiting) == {}


def test_more_sessions_than_a_statement_takes(clearpath: EngineDatabase) -> None:
    """A chunk is at most 1,000 sessions; the last one must not be dropped."""
    with clearpath.transaction() as tx:
        user = tx.value(insert(USERS).values(email="ana@example.test").returning(USERS.c.id))
        values = {"user_id": user, "activated_at": datetime.fromisoformat("2026-05-01T15:30:00Z")}
        made = [uuid.uuid4() for _ in range(1_001)]
        tx.execute(insert(TEST_SESSIONS).values([{"id": one} | values for one in made]))
        assert make_sequence(tx, made) == 4 * 1_001


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("activated_at", OddDate("infinity")),
        ("activated_at", datetime.fromisoformat("0001-01-01T00:00:00Z")),
        ("activated_at", datetime.fromisoformat("9999-12-01T00:00:00Z")),
        ("expected_completion_date", OddDate("0044-03-15 BC")),
    ],
    ids=str,
)
def test_dates_from_which_no_mail_follows_are_named(
    clearpath: EngineDatabase, column: str, value: Any
) -> None:
    """The caller learns which session it is, and which of its columns."""
    odd = session(clearpath, **{column: value})
    with pytest.raises(BadInput, match=f"test_sessions {odd}: {column} "), clearpath.transaction() as tx:
        make_sequence(tx, [odd])
