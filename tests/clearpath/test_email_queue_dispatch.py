"""What is due goes out once; every row that doesn't says why, and loses no attempt that is not its own."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Row, insert, select

from include.clearpath import email_queue_dispatch
from include.clearpath.tables import (
    BASELINE,
    EMAIL_ATTEMPTS,
    EMAIL_FRAMES,
    EMAIL_LOG,
    EMAIL_STATUSES,
    JOBS_STATE,
    SEQUENCED_TYPES,
    SESSION_STATUSES,
    TEST_SESSIONS,
    USERS,
)
from include.errors import BadInput, Busy
from include.mail import Accepted, Deferred, Rejected
from include.odd_dates import OddDate
from include.platform.alert_ledger import AlertLedger
from include.platform.tables import ALERT, OUTAGE
from include.preview import preview
from include.run import EngineDatabase, Run
from include.stored_message import undamaged, unpack
from tests.clearpath.rows import Rows
from tests.fakes.world import FakeAlerts, FakeMail

DOWN = Deferred("503 over capacity", certain=True)
MINUTE = timedelta(minutes=1)


def dispatch(
    rows: Rows, mail: FakeMail | None = None, alerts: Any = None, *, given: bool = False, **changed: Any
) -> Run:
    """Run the job once; without an as-of, as of now."""
    outside = email_queue_dispatch.Outside(mail or FakeMail(), alerts or FakeAlerts())
    as_of = changed.pop("as_of", datetime.now(UTC))
    return rows.perform(email_queue_dispatch, outside, as_of, given=given, **changed)


def now() -> datetime:
    """Return the real time."""
    return datetime.now(UTC)


def mail_row(rows: Rows, mail: uuid.UUID) -> Row[Any]:
    """Return a mail as it stands."""
    return rows.one(EMAIL_LOG, mail)


def age(rows: Rows, column: str, by: str, table: str = "email_log") -> None:
    """Let instants lie further back, as if the time had passed."""
    with rows.database.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE {table} SET {column} = {column} - interval '{by}'")


# What is due


@pytest.mark.parametrize(
    ("values", "sent"),
    [
        ({}, True),
        ({"late": 0.02}, True),
        ({"late": -1}, False),
        ({"late": -60 * 24}, False),
        ({"scheduled_at": None}, False),
        ({"status": "failed", "retry_count": 0}, True),
        ({"status": "failed", "retry_count": 1}, True),
        ({"status": "failed", "retry_count": 2}, True),
        ({"status": "failed", "retry_count": 3}, False),
        ({"status": "failed", "retry_count": 1, "permanent": True}, False),
        ({"status": "failed", "retry_count": 1, "next_in": -0.02}, True),
        ({"status": "failed", "retry_count": 1, "next_in": 1}, False),
        *(({"status": status}, False) for status in EMAIL_STATUSES if status not in ("queued", "failed")),
    ],
    ids=str,
)
def test_what_is_due(rows: Rows, values: dict[str, Any], *, sent: bool) -> None:
    """`queued`, or `failed` with attempts left and not permanent; `scheduled_at` reached, and the wait over."""
    if "next_in" in values:
        values = values | {"next_attempt_at": now() + values["next_in"] * MINUTE}
        del values["next_in"]
    row = rows.mail(rows.session(), **values)
    before = mail_row(rows, row)
    mail = FakeMail()
    run = dispatch(rows, mail)
    assert len(mail.delivered) == run.counts["sent"] == int(sent)
    if sent:
        after = mail_row(rows, row)
        assert after.status == "sent"
        assert abs(after.sent_at - now()) < 5 * MINUTE
        assert after.provider_message_id == f"id of ana@example.test {mail.delivered[0].subject}"
        assert (after.last_error, after.next_attempt_at) == (None, None)
    else:
        assert mail_row(rows, row) == before


@pytest.mark.parametrize("email_type", SEQUENCED_TYPES)
def test_every_sequenced_mail(rows: Rows, email_type: str) -> None:
    """This is the way out for all five."""
    row = rows.mail(rows.session(), email_type)
    mail = FakeMail()
    dispatch(rows, mail)
    assert rows.mail_status(row) == "sent"
    assert mail.delivered[0].html


@pytest.mark.parametrize(("as_of_minutes", "sent"), [(-31, 0), (-29, 1), (0, 1)])
def test_an_as_of_only_narrows(rows: Rows, as_of_minutes: int, sent: int) -> None:
    """A person's as-of leaves out what was due later; it never makes due what the clock does not."""
    rows.mail(rows.session(), late=30)
    rows.mail(rows.session(), late=-30)
    mail = FakeMail()
    dispatch(rows, mail, as_of=now() + as_of_minutes * MINUTE, given=True)
    assert len(mail.delivered) == sent


def test_a_schedules_own_date_narrows_nothing(rows: Rows) -> None:
    """A run that starts late sends what became due meanwhile: the database's clock decides."""
    rows.mail(rows.session(), late=5)
    mail = FakeMail()
    dispatch(rows, mail, as_of=now() - timedelta(days=3))
    assert len(mail.delivered) == 1


def test_an_as_of_to_come_widens_nothing(rows: Rows) -> None:
    """A preview may look ahead; the queue still asks the clock, before it finds fault with a row, too."""
    mails = [rows.mail(rows.session(), late=-30), rows.mail(rows.session(address=None), late=-30)]
    assert dispatch(rows, as_of=now() + timedelta(days=9), given=True).counts["processed"] == 0
    assert [rows.mail_status(mail) for mail in mails] == ["queued", "queued"]


def test_oldest_first_and_at_most_the_limit(rows: Rows) -> None:
    """`batch_limit` is the one real cap: the oldest go, the rest wait for the next run."""
    mails = [rows.mail(rows.session(), late=minutes) for minutes in (10, 40, 20, 50, 30)]
    mail = FakeMail()
    run = dispatch(rows, mail, batch_limit=2)
    assert [rows.mail_status(one) for one in mails] == ["queued", "sent", "queued", "sent", "queued"]
    assert run.counts["processed"] == 2
    dispatch(rows, mail, batch_limit=2)
    assert [rows.mail_status(one) for one in mails] == ["queued", "sent", "sent", "sent", "sent"]


def test_cancelled_and_duplicate_rows_cost_nothing(rows: Rows) -> None:
    """The limit counts attempts: rows that are only settled leave room for those that are sent."""
    for _ in range(3):
        rows.mail(rows.session("cancelled"), late=90)
    twice = rows.session()
    for minutes in (80, 70, 60):
        rows.mail(twice, late=minutes)
    other = rows.mail(rows.session(), late=10)
    run = dispatch(rows, batch_limit=2)
    assert rows.mail_status(other) == "sent"
    assert (run.counts["cancelled"], run.counts["duplicate"], run.counts["sent"]) == (3, 2, 2)
    assert (run.counts["skipped"], run.counts["processed"]) == (5, 7)


def test_what_is_still_under_way_counts_toward_the_limit(rows: Rows) -> None:
    """A batch whose answer is outstanding is attempted again, so less is claimed beside it."""
    for minutes in (30, 29, 28):
        rows.mail(rows.session(), late=minutes)
    mail = FakeMail(down=Deferred("no answer", certain=False))
    dispatch(rows, mail, batch_limit=2)
    run = dispatch(rows, FakeMail(), batch_limit=2)
    assert (run.counts["sent"], run.counts["processed"]) == (2, 2)


def test_nothing_due(rows: Rows) -> None:
    """R1: processed 0 is a success, nobody is asked, and the last step notes the run."""
    rows.mail(rows.session(), late=-60)
    mail, as_of = FakeMail(), now()
    run = dispatch(rows, mail, as_of=as_of)
    assert (run.state, run.counts["processed"], mail.requests) == ("success", 0, 0)
    state = rows.state("emailQueue")
    assert state is not None
    assert state.last_run_at == as_of


# Sessions that have ended


@pytest.mark.parametrize("status", SESSION_STATUSES)
@pytest.mark.parametrize("row", [{"status": "queued"}, {"status": "failed", "retry_count": 2}], ids=str)
def test_the_session_decides(rows: Rows, status: str, row: dict[str, Any]) -> None:
    """A session cancelled, expired or complete makes its sequenced mail `cancelled`."""
    one = rows.mail(rows.session(status), **row)
    mail = FakeMail()
    run = dispatch(rows, mail)
    ended = status in ("cancelled", "expired", "complete")
    assert rows.mail_status(one) == ("cancelled" if ended else "sent")
    assert (run.counts["cancelled"], len(mail.delivered)) == (int(ended), int(not ended))
    if ended:
        assert mail_row(rows, one).status_reason == f"session {status}"


def test_mail_to_come_of_an_ended_session_waits(rows: Rows) -> None:
    """Only what is due is settled here; the rest is settled when it is due."""
    one = rows.mail(rows.session("cancelled"), late=-60)
    dispatch(rows)
    assert rows.mail_status(one) == "queued"


def test_an_applications_own_mail_outlives_the_session(rows: Rows) -> None:
    """The end of a test cancels the mail that its course brings, not what an application writes about it."""
    one = rows.mail(rows.session("complete"), "your certificate")
    run = dispatch(rows)
    assert run.counts["cancelled"] == 0
    assert rows.mail_status(one) == "failed"
    assert "no such template" in mail_row(rows, one).last_error


def test_other_sessions_of_the_user_are_left_alone(rows: Rows) -> None:
    """The session's end is the session's."""
    user = rows.user()
    rows.mail(rows.session("cancelled", user_id=user))
    one = rows.mail(rows.session(user_id=user))
    dispatch(rows)
    assert rows.mail_status(one) == "sent"


@pytest.mark.parametrize("when", ["a row is a due mail with", "a row is a due mail that would be"])
def test_a_session_that_ends_meanwhile(rows: Rows, when: str) -> None:
    """Ended between the look and the claim: the claim looks again, and the next run cancels."""
    session = rows.session()
    one = rows.mail(session)
    mail = FakeMail()
    with rows.meanwhile(when, lambda: rows.change(TEST_SESSIONS, session, status="cancelled")):
        dispatch(rows, mail)
    assert mail.delivered == []
    dispatch(rows, mail)
    assert (mail.delivered, rows.mail_status(one)) == ([], "cancelled")


def test_a_session_that_comes_back_meanwhile(rows: Rows) -> None:
    """A session that is under way again by the time of the change keeps its mail."""
    session = rows.session("cancelled")
    one = rows.mail(session)
    with rows.meanwhile(
        "a row is a due mail whose test session has ended",
        lambda: rows.change(TEST_SESSIONS, session, status="active"),
    ):
        dispatch(rows)
    assert rows.mail_status(one) == "sent"


# Duplicates


def one_twice(rows: Rows, session: uuid.UUID | None, user: uuid.UUID, **twin: Any) -> list[uuid.UUID]:
    """Insert a mail and, five minutes younger, its twin."""
    first = rows.mail(session, user_id=user, late=30)
    values: dict[str, Any] = {"user_id": user, "late": 25}
    return [first, rows.mail(session, **values | twin)]


@pytest.mark.parametrize(
    ("change", "second"),
    [
        ({}, "duplicate"),
        ({"email_type": "day_60"}, "sent"),
        ({"user_id": "another"}, "sent"),
        ({"session": "another"}, "sent"),
        ({"late": -60}, "queued"),
        ({"status": "failed", "retry_count": 1}, "duplicate"),
        ({"status": "cancelled"}, "cancelled"),
        ({"status": "failed", "permanent": True}, "failed"),
    ],
    ids=str,
)
def test_two_due_at_once(rows: Rows, change: dict[str, Any], second: str) -> None:
    """Of the same (user, session, type) one goes out, the older one; another key is another mail."""
    user = rows.user()
    session = rows.session(user_id=user)
    change = dict(change)
    if change.get("user_id"):
        change["user_id"] = rows.user()
    other = rows.session(user_id=user) if change.pop("session", None) else session
    first = rows.mail(session, user_id=user, late=30)
    values: dict[str, Any] = {"user_id": user, "late": 25}
    twin = rows.mail(other, **values | change)
    mail = FakeMail()
    dispatch(rows, mail)
    assert rows.mail_status(first) == "sent"
    assert rows.mail_status(twin) == second
    assert len(mail.delivered) == (2 if second == "sent" else 1)


@pytest.mark.parametrize("status", ["queued", "failed"])
def test_sent_before(rows: Rows, status: str) -> None:
    """What is sent is not sent again, when the twin was sent long ago just as when it was due this minute."""
    session = rows.session()
    user = rows.one(TEST_SESSIONS, session).user_id
    rows.mail(session, user_id=user, status="sent", late=60 * 24 * 30, sent_at=now() - timedelta(days=30))
    twin = rows.mail(session, user_id=user, status=status)
    mail = FakeMail()
    run = dispatch(rows, mail)
    assert (mail.delivered, run.counts["duplicate"]) == ([], 1)
    assert rows.mail_status(twin) == "duplicate"
    assert mail_row(rows, twin).status_reason == "the same mail was sent before"
    dispatch(rows, mail)
    assert (mail.delivered, rows.mail_status(twin)) == ([], "duplicate")


@pytest.mark.parametrize("email_type", [*SEQUENCED_TYPES, "newsletter"])
def test_without_a_session(rows: Rows, email_type: str) -> None:
    """Two NULL sessions are equal for the five sequenced types, and for them alone."""
    user = rows.user()
    rows.mail(None, email_type, user_id=user, status="sent", sent_at=now())
    twin = rows.mail(None, email_type, user_id=user)
    run = dispatch(rows)
    sequenced = email_type in SEQUENCED_TYPES
    assert run.counts["duplicate"] == int(sequenced)
    # There is no template for what is not sequenced, which is another reason.
    assert rows.mail_status(twin) == ("duplicate" if sequenced else "failed")


def test_an_applications_own_type_of_a_session(rows: Rows) -> None:
    """With a session the key is whole, so the guard holds for every type."""
    session = rows.session()
    rows.mail(session, "newsletter", status="sent", sent_at=now())
    twin = rows.mail(session, "newsletter")
    dispatch(rows)
    assert rows.mail_status(twin) == "duplicate"


@pytest.mark.parametrize("status", ["cancelled", "duplicate", "abandoned"])
def test_what_never_went_out_is_no_twin(rows: Rows, status: str) -> None:
    """A copy that was cancelled or given up reached nobody."""
    session = rows.session()
    user = rows.one(TEST_SESSIONS, session).user_id
    rows.mail(session, user_id=user, status=status)
    one = rows.mail(session, user_id=user)
    dispatch(rows)
    assert rows.mail_status(one) == "sent"


def test_one_that_waits_for_another_try_is_the_first_copy(rows: Rows) -> None:
    """A mail that failed and will be tried again is still the one that goes out."""
    session = rows.session()
    user = rows.one(TEST_SESSIONS, session).user_id
    waits = rows.mail(
        session, user_id=user, status="failed", retry_count=1, late=60, next_attempt_at=now() + 9 * MINUTE
    )
    twin = rows.mail(session, user_id=user)
    mail = FakeMail()
    dispatch(rows, mail)
    assert (mail.delivered, rows.mail_status(twin)) == ([], "duplicate")
    age(rows, "next_attempt_at", "10 minutes")
    dispatch(rows, mail)
    assert (len(mail.delivered), rows.mail_status(waits)) == (1, "sent")


def test_a_claimed_mail_is_the_first_copy(rows: Rows) -> None:
    """A mail whose answer is outstanding may be out: its twin waits for nothing, it is a duplicate."""
    session = rows.session()
    user = rows.one(TEST_SESSIONS, session).user_id
    first = rows.mail(session, user_id=user)
    dispatch(rows, FakeMail(down=Deferred("no answer", certain=False)))
    twin = rows.mail(session, user_id=user, late=99)
    mail = FakeMail()
    dispatch(rows, mail)
    assert len(mail.delivered) == 1
    assert (rows.mail_status(first), rows.mail_status(twin)) == ("sent", "duplicate")


def test_a_copy_of_a_mail_that_may_be_out(rows: Rows) -> None:
    """Nobody knows whether the first one arrived: its twin is not sent by itself either; a person sets it free."""
    session = rows.session()
    user = rows.one(TEST_SESSIONS, session).user_id
    unknown: dict[str, Any] = {"status": "failed", "permanent": True, "outcome_unknown": True}
    first, twin = rows.mail(session, user_id=user, **unknown), rows.mail(session, user_id=user)
    mail = FakeMail()
    dispatch(rows, mail)
    assert (mail.delivered, rows.mail_status(twin)) == ([], "duplicate")
    rows.change(EMAIL_LOG, first, status="queued", permanent=False, outcome_unknown=False)
    dispatch(rows, mail)
    assert (len(mail.delivered), rows.mail_status(first)) == (1, "sent")


def test_the_first_copy_is_cancelled_meanwhile(rows: Rows) -> None:
    """A twin is no duplicate of a mail that the application withdrew between the look and the change."""
    session = rows.session()
    first, twin = one_twice(rows, session, rows.one(TEST_SESSIONS, session).user_id)
    mail = FakeMail()
    with rows.meanwhile(
        "a row is a due mail that would be a second copy",
        lambda: rows.change(EMAIL_LOG, first, status="cancelled"),
    ):
        dispatch(rows, mail)
    assert (len(mail.delivered), rows.mail_status(twin)) == (1, "sent")


# Templates


@pytest.mark.parametrize(
    ("session", "person", "reason"),
    [
        ({"address": None}, {}, "address is missing"),
        ({"activated_at": None}, {}, "activated_on is missing"),
        ({"expected_completion_date": None}, {}, "expected_completion_date is missing"),
        ({}, {"full_name": None}, "full_name is missing"),
        ({}, {"full_name": " \u200b\n"}, "full_name is missing"),
        ({}, {"email": None}, "the user has no e-mail address"),
        ({}, {"email": " "}, "the user has no e-mail address"),
    ],
    ids=str,
)
def test_a_template_error(
    rows: Rows, session: dict[str, Any], person: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """`failed`, permanent and logged with the row's id: a later run can't do better. The others go out."""
    broken = rows.mail(rows.session(user_id=rows.user(**person), **session), late=60)
    other = rows.mail(rows.session())
    mail = FakeMail()
    with caplog.at_level(logging.WARNING, "almanac"):
        run = dispatch(rows, mail)
    after = mail_row(rows, broken)
    assert (after.status, after.permanent, after.retry_count) == ("failed", True, 0)
    assert reason in after.last_error
    assert (run.counts["failed"], run.counts["sent"]) == (1, 1)
    assert rows.mail_status(other) == "sent"
    assert [vars(record)["recordId"] for record in caplog.records] == [str(broken)]
    dispatch(rows, mail)
    assert len(mail.delivered) == 1
    assert mail_row(rows, broken) == after


def test_a_wrong_setting_is_no_fault_of_a_row(rows: Rows) -> None:
    """An APP_URL that is no address fails the run, and every row keeps waiting."""
    one = rows.mail(rows.session())
    with pytest.raises(BadInput, match="APP_URL"):
        dispatch(rows, APP_URL="javascript:alert(1)")
    assert rows.mail_status(one) == "queued"
    dispatch(rows)
    assert rows.mail_status(one) == "sent"


HOSTILE = '<a href="https://evil.test">Reset</a> & Co'


@pytest.mark.parametrize("email_type", SEQUENCED_TYPES)
def test_hostile_names(rows: Rows, email_type: str) -> None:
    """E4: a name that is markup is text in HTML, and as written in the subject and the text part."""
    user = rows.user(full_name=HOSTILE)
    rows.mail(rows.session(user_id=user, address=HOSTILE, kit_serial_number=HOSTILE), email_type)
    mail = FakeMail()
    dispatch(rows, mail, APP_URL="https://app.clearpath.test/")
    (message,) = mail.delivered
    assert message.html is not None
    assert '<a href="https://evil.test"' not in message.html
    assert "&lt;a href=" in message.html
    assert "evil.test" not in [part.partition('"')[0] for part in message.html.split('href="')[1:]]
    assert HOSTILE in message.text
    assert "&lt;" not in message.subject + message.text
    links = [part.partition('"')[0] for part in message.html.split('href="')[1:]]
    assert all(link.startswith("https://app.clearpath.test/sessions/") for link in links)


# The provider's answers


def test_a_rejected_message_is_tried_three_times(rows: Rows) -> None:
    """The queue's exception: an answer about the message counts; 15 minutes on at the earliest; then abandoned."""
    one = rows.mail(rows.session())
    other = rows.mail(rows.session(user_id=rows.user("bo@example.test")))
    mail = FakeMail(refuse={"ana@example.test"})
    for attempt in (1, 2, 3):
        run = dispatch(rows, mail)
        after = mail_row(rows, one)
        last = attempt == 3
        assert (after.status, after.retry_count) == ("abandoned" if last else "failed", attempt)
        assert after.last_error == "invalid address"
        assert run.counts["failed"] == 1
        assert run.counts["abandoned"] == int(last)
        assert run.state == "success"
        wait = after.next_attempt_at - now()
        assert 14 * MINUTE < wait <= 15 * MINUTE
        # Before that, nothing; a moment early is early.
        requests = mail.requests
        age(rows, "next_attempt_at", "14 minutes 30 seconds")
        dispatch(rows, mail)
        assert mail.requests == requests
        age(rows, "next_attempt_at", "31 seconds")
    requests = mail.requests
    dispatch(rows, mail)
    assert mail.requests == requests
    assert rows.mail_status(other) == "sent"


def test_a_rejected_message_that_is_mended_goes_out(rows: Rows) -> None:
    """An address that was corrected before the third try is one that mail reaches."""
    one = rows.mail(rows.session())
    mail = FakeMail(refuse={"ana@example.test"})
    dispatch(rows, mail)
    user = mail_row(rows, one).user_id
    rows.change(USERS, user, email="ana@right.test")
    age(rows, "next_attempt_at", "16 minutes")
    dispatch(rows, mail)
    assert [message.to for message in mail.delivered] == ["ana@right.test"]
    after = mail_row(rows, one)
    assert (after.status, after.retry_count, after.last_error) == ("sent", 1, None)


@pytest.mark.parametrize("certain", [True, False])
def test_an_outage_is_no_fault_of_the_row(rows: Rows, almanac: EngineDatabase, *, certain: bool) -> None:
    """Nothing is counted, the run is deferred, and operators hear of it once, from first failure to success."""
    mails = [rows.mail(rows.session()) for _ in range(3)]
    mail = FakeMail(down=Deferred("no answer", certain=certain))
    ledger = AlertLedger(almanac)
    for _ in range(4):
        run = dispatch(rows, mail, ledger)
        assert (run.state, run.counts["deferred"], run.counts["failed"]) == ("deferred", 3, 0)
        assert run.notes == ["clearpath_email is out of reach: no answer"]
    assert {(mail_row(rows, one).status, mail_row(rows, one).retry_count) for one in mails} == {("queued", 0)}
    assert [row.subject for row in table(almanac, ALERT)] == ["clearpath_email is out of reach"]
    assert ledger.in_outage("clearpath_email")
    mail.down = None
    run = dispatch(rows, mail, ledger)
    assert (run.state, run.counts["sent"]) == ("success", 3)
    assert not ledger.in_outage("clearpath_email")
    # The next outage is another one, and told of anew.
    rows.mail(rows.session())
    mail.down = DOWN
    dispatch(rows, mail, ledger)
    assert len(table(almanac, ALERT)) == 2
    assert [row.closed_at is None for row in table(almanac, OUTAGE)].count(True) == 1


def table(database: EngineDatabase, which: Any) -> list[Row[Any]]:
    """Return all rows of a table."""
    with database.transaction() as tx:
        return list(tx.rows(select(which)))


def test_a_run_with_nothing_to_send_ends_no_outage(rows: Rows) -> None:
    """Only an answer of the provider says that it answers again."""
    one = rows.mail(rows.session())
    alerts = FakeAlerts()
    mail = FakeMail(down=Deferred("no answer", certain=False))
    dispatch(rows, mail, alerts)
    age(rows, "begun_at", "25 hours", "email_attempts")
    dispatch(rows, mail, alerts)
    assert mail_row(rows, one).outcome_unknown
    dispatch(rows, mail, alerts)
    assert alerts.outages


def test_a_quota_pauses_the_queue(rows: Rows) -> None:
    """A quota's 429 uses up no attempt, and nothing is claimed or sent before its reset."""
    one = rows.mail(rows.session())
    until = now().replace(microsecond=0) + timedelta(hours=5)
    mail = FakeMail(down=Deferred("429 daily_quota_exceeded", certain=True, retry_at=until, quota=True))
    alerts = FakeAlerts()
    assert dispatch(rows, mail, alerts).state == "deferred"
    state = rows.state("emailQueue")
    assert state is not None
    assert state.paused_until == until
    assert state.pause_reason == "the provider's quota is used up (429 daily_quota_exceeded)"
    mail.down, requests = None, mail.requests
    run = dispatch(rows, mail, alerts)
    assert (run.state, mail.requests) == ("deferred", requests)
    assert any(note.startswith("mail waits until") for note in run.notes)
    assert len(rows.all(EMAIL_ATTEMPTS)) == 1
    rows.unpause()
    assert dispatch(rows, mail, alerts).state == "success"
    after = mail_row(rows, one)
    assert (after.status, after.retry_count) == ("sent", 0)


def test_a_batch_in_doubt_waits_for_the_quota_too(rows: Rows) -> None:
    """What was begun before the pause is sent again after it, under its own key."""
    rows.mail(rows.session())
    mail = FakeMail(down=Deferred("503", certain=False, retry_at=now() + timedelta(hours=1)))
    dispatch(rows, mail)
    mail.down, requests = None, mail.requests
    dispatch(rows, mail)
    assert mail.requests == requests
    rows.unpause()
    dispatch(rows, mail)
    assert len(mail.delivered) == 1
    assert len(rows.all(EMAIL_ATTEMPTS)) == 1


def test_killed_between_the_pause_and_its_alert(rows: Rows) -> None:
    """Ruling 3: a run that comes to a pause that nobody was told of tells of it."""
    rows.mail(rows.session())
    alerts = FakeAlerts()

    def die(event: str) -> None:
        if event.startswith("outage"):
            raise KeyboardInterrupt

    alerts.tick = die
    mail = FakeMail(down=Deferred("429", certain=True, retry_at=now() + timedelta(hours=1), quota=True))
    with pytest.raises(KeyboardInterrupt):
        dispatch(rows, mail, alerts)
    alerts.tick = lambda event: None
    dispatch(rows, mail, alerts)
    assert "clearpath_email" in alerts.outages


# What may be out already


def test_an_answer_that_was_lost(rows: Rows) -> None:
    """E1: the provider took it and the answer was lost: the same bytes under the same key, one delivery."""
    one = rows.mail(rows.session())
    lost = LosesAnswers()
    dispatch(rows, lost)
    assert rows.mail_status(one) == "queued"
    rows.change(USERS, mail_row(rows, one).user_id, full_name="Renamed", email="new@example.test")
    lost.loses = False
    dispatch(rows, lost)
    assert [message.to for message in lost.delivered] == ["ana@example.test"]
    assert len(lost.keys) == 1
    assert rows.mail_status(one) == "sent"


class LosesAnswers(FakeMail):
    """Takes every message and says nothing."""

    loses = True

    def _take(self, batch: Any) -> Any:
        outcomes = super()._take(batch)
        return [Deferred("no answer", certain=False)] * len(batch.messages) if self.loses else outcomes


def test_in_doubt_once_is_in_doubt_until_answered(rows: Rows) -> None:
    """E1: what may be out already is not set free by an outage that comes later, however certain that one is."""
    one = rows.mail(rows.session())
    mail = LosesAnswers()
    dispatch(rows, mail)
    mail.down = Deferred("connection refused", certain=True)
    mail.loses = False
    for _ in range(2):
        assert dispatch(rows, mail).state == "deferred"
    mail.down = None
    dispatch(rows, mail)
    assert (len(mail.delivered), len(mail.keys), rows.mail_status(one)) == (1, 1, "sent")


@pytest.mark.parametrize(("hours", "unknown"), [(22.9, False), (23.1, True), (25, True)])
def test_after_a_day_the_outcome_is_unknown(rows: Rows, hours: float, *, unknown: bool) -> None:
    """The provider forgets keys after 24 hours: from an hour before that on, a person decides."""
    one = rows.mail(rows.session())
    mail = LosesAnswers()
    dispatch(rows, mail)
    age(rows, "begun_at", f"{hours} hours", "email_attempts")
    requests, mail.loses = mail.requests, False
    run = dispatch(rows, mail)
    after = mail_row(rows, one)
    assert len(mail.delivered) == 1
    if unknown:
        assert mail.requests == requests
        assert (after.status, after.permanent, after.outcome_unknown, after.retry_count) == (
            "failed", True, True, 0,
        )  # fmt: skip
        assert "its key has expired" in after.last_error
        assert (run.counts["unknown"], run.counts["failed"], run.counts["sent"]) == (1, 1, 0)
        dispatch(rows, mail)
        assert mail.requests == requests
    else:
        assert after.status == "sent"


def test_a_batch_that_the_provider_is_still_at(rows: Rows) -> None:
    """E1: a 409 for a request in progress is no outage: nobody is alerted, and the batch waits under its key."""
    one = rows.mail(rows.session())
    mail, alerts = FakeMail(), FakeAlerts()
    mail.down = Deferred("409 concurrent_idempotent_requests", certain=False, in_progress=True)
    run = dispatch(rows, mail, alerts)
    assert (run.state, run.counts["deferred"], alerts.outages) == ("deferred", 1, {})
    assert run.notes == ["clearpath_email is still at an earlier sending of 1 mails"]
    mail.down = None
    dispatch(rows, mail, alerts)
    assert (len(mail.keys), rows.mail_status(one)) == (1, "sent")


def test_a_key_whose_messages_changed(rows: Rows) -> None:
    """A 409 for a changed payload: nobody can tell what went out under that key, so a person decides."""
    one = rows.mail(rows.session())
    mail = LosesAnswers()
    dispatch(rows, mail)
    mail.loses = False
    mail.keys = dict.fromkeys(mail.keys, ())
    run = dispatch(rows, mail)
    after = mail_row(rows, one)
    assert (after.status, after.permanent, after.outcome_unknown) == ("failed", True, True)
    assert run.counts["unknown"] == 1


@pytest.mark.parametrize("status", ["cancelled", "abandoned", "failed"])
def test_what_was_accepted_is_sent_whatever_the_row_says(rows: Rows, status: str) -> None:
    """An application may change a row while its mail is on the way; the truth is that it went out."""
    one = rows.mail(rows.session())
    mail = FakeMail()

    def meanwhile(event: str) -> None:
        if event == "mail after":
            rows.change(EMAIL_LOG, one, status=status, status_reason="changed")

    mail.tick = meanwhile
    dispatch(rows, mail)
    after = mail_row(rows, one)
    assert (after.status, after.sent_at is not None, after.provider_message_id is not None) == (
        "sent", True, True,
    )  # fmt: skip
    assert after.status_reason is None


def test_a_rejection_leaves_what_was_cancelled_meanwhile(rows: Rows) -> None:
    """Only an acceptance overrides: a mail that was withdrawn and then refused stays withdrawn."""
    one = rows.mail(rows.session())
    mail = FakeMail(refuse={"ana@example.test"})
    mail.tick = lambda event: (
        rows.change(EMAIL_LOG, one, status="cancelled") if event == "mail after" else None
    )
    dispatch(rows, mail)
    assert rows.mail_status(one) == "cancelled"


def test_a_row_that_is_deleted_meanwhile(rows: Rows) -> None:
    """An application that deletes its own row does not stumble over a claim, nor the claim over that."""
    one, other = rows.mail(rows.session()), rows.mail(rows.session(), "day_60")
    mail = FakeMail(batch_size=10)

    def delete(event: str) -> None:
        if event == "mail after":
            with rows.database.engine.begin() as connection:
                connection.execute(EMAIL_LOG.delete().where(EMAIL_LOG.c.id == one))

    mail.tick = delete
    dispatch(rows, mail)
    assert rows.mail_status(other) == "sent"
    mail.tick = lambda event: None
    assert dispatch(rows, mail).counts["processed"] == 0


class Smtp(FakeMail):
    """A provider without keys, one message a batch."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(batch_size=1, key_lifetime=timedelta(0), **parts)


def test_without_keys_what_had_begun_is_unknown(rows: Rows) -> None:
    """SMTP promises at most once: killed while sending, the one that had begun is for a person, the rest goes out."""
    mails = [rows.mail(rows.session(), late=40 - n) for n in range(3)]
    mail = Smtp()

    def die(event: str) -> None:
        if event == "mail after":
            raise KeyboardInterrupt

    mail.tick = die
    with pytest.raises(KeyboardInterrupt):
        dispatch(rows, mail)
    assert [row.begun_at is not None for row in rows.all(EMAIL_ATTEMPTS)].count(True) == 1
    mail.tick = lambda event: None
    run = dispatch(rows, mail)
    assert [rows.mail_status(one) for one in mails] == ["failed", "sent", "sent"]
    first = mail_row(rows, mails[0])
    assert (first.outcome_unknown, first.permanent) == (True, True)
    assert "no keys" in first.last_error
    assert (run.counts["unknown"], run.counts["sent"], len(mail.delivered)) == (1, 2, 3)
    assert dispatch(rows, mail).counts["processed"] == 0


def test_without_keys_what_had_not_begun_is_sent(rows: Rows) -> None:
    """Killed after the claim and before the first message: nothing can be out, so all of it goes out."""
    mails = [rows.mail(rows.session()) for _ in range(2)]
    mail = Smtp()
    run = rows.run(email_queue_dispatch, now())
    outside = email_queue_dispatch.Outside(mail, FakeAlerts())
    email_queue_dispatch.claim_due(run, outside)
    dispatch(rows, mail)
    assert [rows.mail_status(one) for one in mails] == ["sent", "sent"]
    assert len(mail.delivered) == 2


def test_a_resumed_batch_is_the_claimed_one(rows: Rows) -> None:
    """Ruling 3: claimed, then killed: what goes out later is byte for byte what was claimed, in its order."""
    mails = [rows.mail(rows.session(), late=40 - n) for n in range(3)]
    run = rows.run(email_queue_dispatch, now())
    mail = FakeMail(batch_size=10)
    outside = email_queue_dispatch.Outside(mail, FakeAlerts())
    email_queue_dispatch.claim_due(run, outside)
    frames = undamaged((row.name, row.content) for row in rows.all(EMAIL_FRAMES))
    stored = {row.position: unpack(row.message, row.frame, frames) for row in rows.all(EMAIL_ATTEMPTS)}
    for one in mails:
        rows.change(USERS, mail_row(rows, one).user_id, full_name="Renamed")
        rows.change(TEST_SESSIONS, mail_row(rows, one).test_session_id, address="Moved")
    dispatch(rows, mail)
    assert mail.delivered == [stored[place] for place in sorted(stored)]
    assert {message.text.count("Renamed") for message in mail.delivered} == {0}
    assert list(mail.keys) == [str({row.batch_id for row in rows.all(EMAIL_ATTEMPTS)}.pop())]


def test_batches_are_as_large_as_the_provider_takes(rows: Rows) -> None:
    """Resend takes 100 messages a request: 5 mails in batches of 2 are three requests."""
    for minutes in range(5):
        rows.mail(rows.session(), late=minutes + 1)
    mail = FakeMail(batch_size=2)
    dispatch(rows, mail)
    assert sorted(len(messages) for messages in mail.keys.values()) == [1, 2, 2]


def test_answers_with_what_no_database_holds(rows: Rows) -> None:
    """A provider's words are hostile input: a null character in them must not keep an answer from being kept."""
    accepted, rejected = rows.mail(rows.session()), rows.mail(rows.session(user_id=rows.user("bo@x.test")))

    class Garbled(FakeMail):
        def _take(self, batch: Any) -> Any:
            return [
                Accepted("id\x00\ud800") if message.to == "ana@example.test" else Rejected("no\x00\ud800")
                for message in batch.messages
            ]

    dispatch(rows, Garbled())
    assert mail_row(rows, accepted).provider_message_id == "id?"
    assert mail_row(rows, rejected).last_error == "no?"


# One bad row


@pytest.mark.parametrize("number", [1, 3])
def test_a_row_that_cant_be_claimed_stops_no_other(rows: Rows, number: int) -> None:
    """The database refuses some rows: they are counted and stay; the others are claimed, in the same batches."""
    mails = [rows.mail(rows.session(), late=40 - n) for n in range(8)]
    rows.refuse(EMAIL_LOG, *mails[:number])
    mail = FakeMail(batch_size=100)
    run = dispatch(rows, mail)
    assert (run.counts["failed"], run.counts["sent"]) == (number, 8 - number)
    assert {rows.mail_status(one) for one in mails[:number]} == {"queued"}


@pytest.mark.parametrize("end", ["cancelled", "duplicate"])
def test_a_row_that_cant_be_settled_stops_no_other(rows: Rows, end: str) -> None:
    """Likewise where a mail is only to be cancelled or marked."""
    session = rows.session("cancelled" if end == "cancelled" else "active")
    user = rows.one(TEST_SESSIONS, session).user_id
    rows.mail(session, user_id=user, status="sent" if end == "duplicate" else "cancelled", sent_at=now())
    bad, good = rows.mail(session, user_id=user), rows.mail(session, user_id=user, late=20)
    rows.refuse(EMAIL_LOG, bad)
    run = dispatch(rows)
    assert (rows.mail_status(bad), rows.mail_status(good)) == ("queued", end)
    assert run.counts["failed"] >= 1


def test_two_runs_at_once(rows: Rows) -> None:
    """E1: one run is at the queue at a time; the other is told to come again, and nothing goes out twice."""
    rows.mail(rows.session())
    mail = FakeMail()
    with rows.database.alone(email_queue_dispatch.ALONE), pytest.raises(Busy, match="another run"):
        dispatch(rows, mail)
    assert mail.requests == 0
    dispatch(rows, mail)
    assert len(mail.delivered) == 1


def test_the_summary_counts_and_the_log_names_rows(rows: Rows, caplog: pytest.LogCaptureFixture) -> None:
    """One line a bad row, at warning; skips at debug; sent mail is a count, and no address is in the log."""
    rows.mail(rows.session(user_id=rows.user("secret-address@example.test")))
    rows.mail(rows.session("cancelled"))
    broken = rows.mail(rows.session(address=None))
    with caplog.at_level(logging.DEBUG, "almanac"):
        run = dispatch(rows)
    assert {k: run.counts[k] for k in ("processed", "sent", "skipped", "failed")} == {
        "processed": 3, "sent": 1, "skipped": 1, "failed": 1,
    }  # fmt: skip
    levels = {(record.levelname, record.message.partition(":")[0]) for record in caplog.records}
    assert levels == {("WARNING", "row failed"), ("DEBUG", "row skipped")}
    assert str(broken) in caplog.text
    assert "secret-address" not in caplog.text


# Stuck


@pytest.mark.parametrize(
    ("minutes", "status", "told"),
    [
        (59, {}, False),
        (59.9, {}, False),
        (60.1, {}, True),
        (61, {}, True),
        (60 * 24 * 30, {}, True),
        (90, {"status": "failed", "retry_count": 1}, True),
        (90, {"status": "failed", "retry_count": 3}, False),
        (90, {"status": "failed", "permanent": True}, False),
        (90, {"status": "cancelled"}, False),
        # What waits for its second try is not late; from then on it is.
        (300, {"status": "failed", "retry_count": 1, "next_attempt_at": "in 14"}, False),
        (300, {"status": "failed", "retry_count": 1, "next_attempt_at": "in -59"}, False),
        (300, {"status": "failed", "retry_count": 1, "next_attempt_at": "in -61"}, True),
    ],
    ids=str,
)
def test_the_oldest_is_late(rows: Rows, minutes: float, status: Mapping[str, Any], *, told: bool) -> None:
    """Over 60 minutes late: one alert; a mail that is not due any more is not late."""
    values = dict(status)
    if isinstance(values.get("next_attempt_at"), str):
        values["next_attempt_at"] = now() + float(values["next_attempt_at"].removeprefix("in ")) * MINUTE
    rows.mail(rows.session(), late=minutes, **values)
    alerts = FakeAlerts()
    check(rows, alerts)
    assert bool(alerts.told) is told


def check(rows: Rows, alerts: Any, as_of: datetime | None = None) -> Run:
    """Run the last step alone."""
    run = rows.run(email_queue_dispatch, as_of or now(), given=as_of is not None)
    email_queue_dispatch.check_queue(run, email_queue_dispatch.Outside(FakeMail(), alerts))
    return run


@pytest.mark.parametrize(
    ("failed", "abandoned", "hours", "told"),
    [(10, 0, 1, False), (11, 0, 1, True), (5, 6, 1, True), (0, 11, 23.9, True), (0, 11, 24.1, False)],
)
def test_many_failed(rows: Rows, failed: int, abandoned: int, hours: float, *, told: bool) -> None:
    """Over 10 rows failed or were abandoned in 24 hours: one alert."""
    user = rows.user()
    rows.insert_many(
        EMAIL_LOG,
        [
            {"user_id": user, "email_type": "day_30", "status": status, "retry_count": 3,
             "scheduled_at": now(), "updated_at": now() - timedelta(hours=hours)}
            for status in ["failed"] * failed + ["abandoned"] * abandoned
        ],
    )  # fmt: skip
    alerts = FakeAlerts()
    run = check(rows, alerts)
    assert bool(alerts.told) is told
    assert run.counts["alerts"] == int(told)


def test_stuck_is_told_once_a_day(rows: Rows, almanac: EngineDatabase) -> None:
    """The same local day, the same cause; what the alert says is what is wrong."""
    rows.mail(rows.session(), late=125)
    ledger = AlertLedger(almanac)
    assert [check(rows, ledger).counts["alerts"] for _ in range(3)] == [1, 0, 0]
    (alert,) = table(almanac, ALERT)
    day = datetime.now(UTC).astimezone(rows.run(email_queue_dispatch).zone).date()
    assert alert.cause == f"stuck:clearpath_email:{day}"
    assert "125 minutes late" in alert.body or "125 minutes" in alert.subject
    # The next day it is told again.
    with almanac.engine.begin() as connection:
        yesterday = f"stuck:clearpath_email:{day - timedelta(days=1)}"
        connection.execute(ALERT.update().values(cause=yesterday))
    assert check(rows, ledger).counts["alerts"] == 1


def test_no_stuck_alert_during_an_outage(rows: Rows) -> None:
    """Operators know already why nothing moves."""
    rows.mail(rows.session(), late=600)
    alerts = FakeAlerts()
    dispatch(rows, FakeMail(down=DOWN), alerts)
    assert (list(alerts.outages), alerts.told) == (["clearpath_email"], {})


def test_what_was_past_at_adoption_is_not_stuck(rows: Rows) -> None:
    """A first run on a live database does not alert about all its history."""
    rows.mail(rows.session(), late=600)
    rows.mail(rows.session(), "day_60", late=600, status="abandoned", retry_count=3)
    with rows.database.engine.begin() as connection:
        connection.execute(BASELINE.insert().values(name="adoption", at=now() - 5 * MINUTE))
    alerts = FakeAlerts()
    check(rows, alerts)
    assert alerts.told == {}


def test_an_as_of_narrows_what_is_stuck(rows: Rows) -> None:
    """A run as of the past does not complain of what was not due then."""
    rows.mail(rows.session(), late=90)
    alerts = FakeAlerts()
    check(rows, alerts, now() - timedelta(hours=2))
    assert alerts.told == {}


# Preview


def test_a_preview_shows_the_mail_and_sends_none(rows: Rows) -> None:
    """Ruling 9: recipient and subject of what would go out, rows before and after, and nothing has changed."""
    rows.mail(rows.session())
    rows.mail(rows.session("cancelled"))
    before = rows.all(EMAIL_LOG)
    mail, alerts = FakeMail(), FakeAlerts()
    shown = preview(
        rows.database.engine,
        email_queue_dispatch,
        lambda db: dataclass_with(rows.run(email_queue_dispatch, now()), db),
        email_queue_dispatch.Outside(mail, alerts),
    )
    assert shown["messages"]["count"] == 1
    assert shown["messages"]["shown"][0]["to"] == "ana@example.test"
    assert shown["counts"]["sent"] == 1
    assert next(t for t in shown["tables"] if t["table"] == "email_log")["updated"] == 2
    assert (mail.requests, rows.all(EMAIL_LOG)) == (0, before)


def dataclass_with(run: Run, db: Any) -> Run:
    """Return the run on another database."""
    run.db = db
    return run


def test_due_times_are_of_the_database(
    database_of: Callable[..., EngineDatabase],
) -> None:
    """T4: instants are instants: the session's zone makes nothing due earlier or later."""
    for zone in ("UTC", "Europe/Madrid", "Pacific/Kiritimati"):
        rows = Rows(database_of("clearpath", zone))
        due, not_yet = rows.mail(rows.session(), late=1), rows.mail(rows.session(), late=-1)
        dispatch(rows)
        assert (rows.mail_status(due), rows.mail_status(not_yet)) == ("sent", "queued")


def test_the_local_day_of_the_activation_is_in_the_mail(rows: Rows) -> None:
    """T4: activated at 02:00Z on 10 March is the 9th in Edmonton, and the mail says so."""
    today = datetime.now(UTC).date()
    year = today.year - 1
    session = rows.session(
        activated_at=datetime(year, 3, 10, 2, tzinfo=UTC), expected_completion_date=date(year + 2, 1, 1)
    )
    rows.mail(session)
    mail = FakeMail()
    dispatch(rows, mail)
    assert f"9 March {year}" in mail.delivered[0].text


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("activated_at", OddDate("infinity")),
        ("activated_at", OddDate("-infinity")),
        ("activated_at", OddDate("0044-03-15 00:00:00+00 BC")),
        ("activated_at", datetime(1, 1, 1, tzinfo=UTC)),
        ("expected_completion_date", OddDate("infinity")),
        ("expected_completion_date", OddDate("12044-03-15")),
    ],
    ids=str,
)
def test_a_date_beyond_the_calendar(rows: Rows, column: str, value: Any) -> None:
    """One such session must not keep everybody else's mail back; its own says which column it is."""
    odd, usual = rows.session(), rows.session()
    rows.change(TEST_SESSIONS, odd, **{column: value})
    bad, good = rows.mail(odd), rows.mail(usual)
    run = dispatch(rows)
    assert (run.counts["sent"], run.counts["failed"]) == (1, 1)
    assert rows.mail_status(good) == "sent"
    left = mail_row(rows, bad)
    assert left.status == "failed"
    assert f"{column} " in left.last_error
    assert dispatch(rows).state == "success"


@pytest.mark.parametrize("value", ["-infinity", "0044-03-15 00:00:00+00 BC"])
def test_a_mail_due_since_antiquity(rows: Rows, value: str) -> None:
    """It is due like any other, and the look at the queue's health does not end the run over its date."""
    mail = rows.mail(rows.session())
    rows.change(EMAIL_LOG, mail, scheduled_at=OddDate(value))
    assert check(rows, FakeAlerts()).state == "success"
    dispatch(rows)
    assert rows.mail_status(mail) == "sent"


def test_paused_until_infinity(rows: Rows) -> None:
    """Who pauses the queue for good writes infinity; the run says so and sends nothing."""
    mail = rows.mail(rows.session())
    with rows.database.transaction() as tx:
        values = {"job_name": "emailQueue", "paused_until": OddDate("infinity"), "pause_reason": "by hand"}
        tx.execute(insert(JOBS_STATE).values(**values))
    run = dispatch(rows)
    assert (run.state, rows.mail_status(mail)) == ("deferred", "queued")
    assert "mail waits until infinity: by hand" in run.notes


def test_a_last_run_in_the_far_future(rows: Rows) -> None:
    """A slip in jobs_state does not fail every run; the run says what stands there."""
    with rows.database.transaction() as tx:
        tx.execute(insert(JOBS_STATE).values(job_name="emailQueue", last_run_at=OddDate("infinity")))
    run = dispatch(rows)
    assert (run.state, len(run.notes)) == ("success", 1)
    assert "as of infinity" in run.notes[0]
