"""Digests: who is due at which instant, one mail for each crossing, and none that is lost or sent twice."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from include.errors import BadInput, Busy, Outage
from include.mail import Deferred
from include.nifya import digest_emails as job
from include.nifya import tables
from include.nifya.digest_emails import latest_crossing
from include.nifya.job_types import SendDigestEmails
from include.nifya.tables import DIGESTS, NOTIFICATIONS, USERS
from tests.fakes.world import FakeAlerts, FakeMail
from tests.nifya.rows import AS_OF, Rows

DAY = timedelta(days=1)


def at(text: str) -> datetime:
    """Return an instant in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "hour", "as_of", "crossed"),
    [
        ("Europe/Madrid", 9, "2026-11-25T08:00", "2026-11-25T08:00"),
        ("Europe/Madrid", 9, "2026-11-25T07:59", "2026-11-24T08:00"),
        ("Europe/Madrid", 0, "2026-11-24T23:00", "2026-11-24T23:00"),
        # Summer time begins on 28 March 2027: 02:00 is skipped, and the hour is over at 01:00 UTC.
        ("Europe/Madrid", 2, "2027-03-28T00:59", "2027-03-27T01:00"),
        ("Europe/Madrid", 2, "2027-03-28T01:00", "2027-03-28T01:00"),
        # It ends on 31 October 2027: 02:00 comes twice, and counts once, the first time.
        ("Europe/Madrid", 2, "2027-10-31T00:00", "2027-10-31T00:00"),
        ("Europe/Madrid", 2, "2027-10-31T01:30", "2027-10-31T00:00"),
        ("America/Chicago", 2, "2027-03-14T08:00", "2027-03-14T08:00"),
        ("Pacific/Kiritimati", 9, "2026-11-25T18:59", "2026-11-24T19:00"),
        ("Asia/Kathmandu", 9, "2026-11-25T03:15", "2026-11-25T03:15"),
    ],
)
def test_when_the_hour_was_crossed(zone: str, hour: int, as_of: str, crossed: str) -> None:
    """Zones and clock changes: the user's own hour decides, one instant a local day (T1)."""
    assert latest_crossing(zone, hour, at(as_of)) == at(crossed)


@pytest.mark.parametrize(("zone", "hour"), [("Mars/Olympus", 9), ("", 9), ("Europe/Madrid", 24)])
def test_an_impossible_hour_is_named(zone: str, hour: int) -> None:
    """A user in no zone is an error that a person can mend, not a digest at a wrong hour."""
    with pytest.raises(BadInput, match="schedule"):
        latest_crossing(zone, hour, AS_OF)


def outside(mail: FakeMail | None = None, alerts: FakeAlerts | None = None) -> job.Outside:
    """Return the collaborators, well unless they are given."""
    return job.Outside(mail or FakeMail(), alerts or FakeAlerts())


def delivered(rows: Rows, mail: FakeMail, as_of: datetime, hour: Any = None) -> list[str]:
    """Run the job and return who was mailed by it."""
    before = len(mail.delivered)
    rows.perform(job, outside(mail), as_of, hour_of_day=hour)
    return sorted(message.to.partition("@")[0] for message in mail.delivered[before:])


@pytest.mark.parametrize(
    ("values", "due"),
    [
        ({}, True),
        ({"last_digest_at": at("2026-11-25T07:59:59")}, True),
        ({"last_digest_at": at("2026-11-25T08:00")}, False),
        ({"digest_hour": 12}, True),
        ({"digest_hour": 13, "last_digest_at": AS_OF - timedelta(hours=3)}, False),
        ({"timezone": "America/Winnipeg", "last_digest_at": AS_OF - timedelta(hours=3)}, False),
        ({"timezone": "Asia/Tokyo", "last_digest_at": AS_OF - timedelta(hours=3)}, False),
        ({"digests_stopped_at": AS_OF}, False),
        ({"created_at": at("2026-11-25T08:00:01")}, False),
    ],
)
def test_who_is_due(rows: Rows, values: dict[str, Any], due: bool) -> None:  # noqa: FBT001 - a table's column
    """Ruling: due is who's chosen local hour was crossed since the last digest."""
    rows.user(**values)
    rows.notification(rows.subscription())
    assert delivered(rows, FakeMail(), AS_OF) == (["ana"] if due else [])


@pytest.mark.parametrize("hour", ["09", 9, "9"])
def test_the_hour_limits_to_its_users(rows: Rows, hour: Any) -> None:
    """Ruling: hourOfDay, "09" or 9, means users of that hour, in whatever zone they are; without one it is all."""
    for user, chosen in (("ana", 9), ("bea", 10), ("cai", 9)):
        rows.user(user, digest_hour=chosen, timezone="Asia/Tokyo" if user == "cai" else "Europe/Madrid")
        rows.notification(rows.subscription(user), user)
    mail = FakeMail()
    assert delivered(rows, mail, AS_OF, hour) == ["ana", "cai"]
    assert delivered(rows, mail, AS_OF) == ["bea"]


def test_days_that_were_missed_become_one_digest(rows: Rows) -> None:
    """T6: the scheduler was down for three days; the next run sends one digest with all of it, once."""
    rows.user(last_digest_at=AS_OF - 4 * DAY)
    one = rows.subscription()
    for n in range(4):
        rows.notification(one, created_at=AS_OF - n * DAY)
    mail = FakeMail()
    assert delivered(rows, mail, AS_OF) == ["ana"]
    assert "4 novedades" in mail.delivered[0].text
    assert delivered(rows, mail, AS_OF + timedelta(hours=5)) == []


def test_one_digest_a_local_date(rows: Rows) -> None:
    """T3: runs of three days, replayed and out of order, send nothing a second time."""
    rows.user()
    one = rows.subscription()
    mail = FakeMail()
    for as_of in (AS_OF, AS_OF + DAY, AS_OF, AS_OF - DAY, AS_OF + DAY, AS_OF + 2 * DAY):
        rows.notification(one)
        delivered(rows, mail, as_of)
    assert len(mail.delivered) == 3
    assert [row.due_at for row in rows.all(DIGESTS, DIGESTS.c.due_at)] == [
        at(f"2026-11-2{day}T08:00") for day in (5, 6, 7)
    ]


@pytest.mark.parametrize("later", [10, 18])
def test_an_hour_that_is_moved_later_on_the_same_date(rows: Rows, later: int) -> None:
    """T1: who had a digest this morning and chooses a later hour has the next one tomorrow, with what is new."""
    rows.user()
    one = rows.subscription()
    mail = FakeMail()
    rows.notification(one, title="Morning")
    assert delivered(rows, mail, at("2026-11-25T08:00")) == ["ana"]
    rows.change(USERS, "ana", digest_hour=later)
    rows.notification(one, title="Evening")
    assert delivered(rows, mail, at("2026-11-25T22:59")) == []
    assert delivered(rows, mail, at("2026-11-26T08:59")) == []
    assert delivered(rows, mail, at("2026-11-26T18:00")) == ["ana"]
    assert "Evening" in mail.delivered[1].text
    assert [str(row.due_on) for row in rows.all(DIGESTS, DIGESTS.c.due_at)] == ["2026-11-25", "2026-11-26"]


def test_a_morning_without_news_leaves_the_date_to_the_evening(rows: Rows) -> None:
    """A date counts by the digest that it had, not by the hour that was settled without one."""
    rows.user()
    one = rows.subscription()
    mail = FakeMail()
    assert delivered(rows, mail, at("2026-11-25T08:00")) == []
    rows.change(USERS, "ana", digest_hour=18)
    rows.notification(one)
    assert delivered(rows, mail, at("2026-11-25T17:00")) == ["ana"]


def test_an_outage_over_days_ends_in_one_mail(rows: Rows) -> None:
    """A user must not find three digests at once: what still waits takes in what is new."""
    rows.user()
    one = rows.subscription()
    mail, alerts = FakeMail(down=Deferred("503", certain=True)), FakeAlerts()
    for day in range(3):
        rows.notification(one, title=f"Day {day}")
        run = rows.run(job, AS_OF + day * DAY)
        job.handle(run, [SendDigestEmails()])
        job.send_waiting(run, mail, alerts)
    mail.down = None
    job.send_waiting(rows.run(job), mail, alerts)
    (message,) = mail.delivered
    assert all(f"Day {day}" in message.text for day in range(3))
    assert [str(row.due_on) for row in rows.all(DIGESTS)] == ["2026-11-27"]


def test_what_is_claimed_takes_in_nothing(rows: Rows) -> None:
    """Ruling 3: a claim whose outcome is open goes out byte for byte; what is new is a digest of its own."""
    rows.user()
    one = rows.subscription()
    mail, alerts = FakeMail(down=Deferred("no answer", certain=False)), FakeAlerts()
    for day in range(2):
        rows.notification(one, title=f"Day {day}")
        run = rows.run(job, AS_OF + day * DAY)
        job.handle(run, [SendDigestEmails()])
        job.send_waiting(run, mail, alerts)
    mail.down = None
    job.send_waiting(rows.run(job), mail, alerts)
    assert [[f"Day {day}" in m.text for day in range(2)] for m in mail.delivered] == [
        [True, False],
        [False, True],
    ]


@pytest.mark.parametrize("read", [False, True], ids=["unread", "all was read"])
def test_what_comes_in_between_rendering_and_claim_is_told(rows: Rows, read: bool) -> None:  # noqa: FBT001 - a case
    """Ruling 16: a digest that took something in after it was rendered is rendered anew, or that is never told."""
    rows.user()
    one = rows.subscription()
    rows.notification(one, title="First")
    job.handle(rows.run(job), [SendDigestEmails()])
    rows.execute(f"UPDATE notifications SET read = {read}")
    mail = FakeMail()

    def next_day() -> None:
        rows.notification(one, title="Second")
        job.handle(rows.run(job, AS_OF + DAY), [SendDigestEmails()])

    with rows.meanwhile("a row is a digest with what its mail says", next_day):
        job.send_waiting(rows.run(job), mail, FakeAlerts())
    job.send_waiting(rows.run(job), mail, FakeAlerts())
    (message,) = mail.delivered
    assert ("First" in message.text, "Second" in message.text) == (not read, True)


def test_who_is_settled_meanwhile_is_settled(rows: Rows) -> None:
    """Ruling 16: another run found nothing new for the hour; what came since waits for the next crossing."""
    rows.user()
    one = rows.subscription()

    def other_run() -> None:
        rows.change(USERS, "ana", last_digest_at=AS_OF)
        rows.notification(one)

    mail = FakeMail()
    with rows.meanwhile("a row is a user whose hour was crossed", other_run):
        assert delivered(rows, mail, AS_OF) == []
    assert rows.all(DIGESTS) == []


@pytest.mark.parametrize("stopped", [True, False], ids=["stopped", "claimed"])
def test_what_the_world_did_to_a_rendered_digest(rows: Rows, stopped: bool) -> None:  # noqa: FBT001 - a case
    """Ruling 16: who stopped the digests after the rendering gets none; what is claimed is not claimed again."""
    rows.user()
    rows.notification(rows.subscription())
    run = rows.run(job)
    job.make_digests(run, outside())
    mail = FakeMail()

    def happens() -> None:
        if stopped:
            rows.change(USERS, "ana", digests_stopped_at=AS_OF)
        else:
            job._claim_waiting(rows.run(job), mail)  # noqa: SLF001 - as a run does whose lock was lost

    with rows.meanwhile("a row is a digest with what its mail says", happens):
        job.claim_digests(run, outside(mail))
    assert len(rows.all(tables.EMAIL_ATTEMPTS)) == (0 if stopped else 1)


def test_a_run_that_is_too_old_says_so(rows: Rows) -> None:
    """T3: whoever backfills digests reads in the summary why nothing went out."""
    rows.user()
    rows.notification(rows.subscription())
    rows.perform(job, outside(), AS_OF)
    run = rows.perform(job, outside(), AS_OF - DAY)
    assert run.counts["sent"] == 0
    assert run.notes == ["1 users were settled as of a later instant; this run is too old for them"]


def test_the_unique_key_holds_where_the_watermark_does_not(rows: Rows) -> None:
    """An application that puts last_digest_at back must not bring a second mail of the same crossing."""
    rows.user()
    one = rows.subscription()
    rows.notification(one)
    mail = FakeMail()
    delivered(rows, mail, AS_OF)
    rows.change(USERS, "ana", last_digest_at=None)
    rows.notification(one)
    assert delivered(rows, mail, AS_OF) == []


def test_the_date_itself_is_unique(rows: Rows) -> None:
    """Ruling 2: one digest of a user a local date, held by the database and not by a look."""
    rows.user()
    rows.add(DIGESTS, user_id="ana", due_at=AS_OF, due_on=AS_OF.date())
    with pytest.raises(IntegrityError, match="due_on"):
        rows.add(DIGESTS, user_id="ana", due_at=AS_OF + timedelta(hours=1), due_on=AS_OF.date())


def test_nothing_new_is_no_mail(rows: Rows) -> None:
    """A user without news gets no mail, and what comes later that day waits for the next morning."""
    rows.user()
    one = rows.subscription()
    mail = FakeMail()
    assert delivered(rows, mail, AS_OF) == []
    rows.notification(one)
    assert delivered(rows, mail, AS_OF + timedelta(hours=2)) == []
    assert delivered(rows, mail, AS_OF + DAY) == ["ana"]


def test_what_is_told_and_what_is_not(rows: Rows) -> None:
    """Read ones, and those of before the adoption, are not told; each notification is told once."""
    rows.user()
    one = rows.subscription()
    rows.notification(one, title="Nueva")
    rows.notification(one, title="Leída", read=True)
    rows.notification(one, title="Historia", past_at_adoption=True)
    mail = FakeMail()
    delivered(rows, mail, AS_OF)
    assert "Nueva" in mail.delivered[0].text
    assert "Leída" not in mail.delivered[0].text
    assert "Historia" not in mail.delivered[0].text
    rows.notification(one, title="Otra")
    delivered(rows, mail, AS_OF + DAY)
    assert "Nueva" not in mail.delivered[1].text


def test_what_was_read_or_stopped_meanwhile_is_not_sent(rows: Rows) -> None:
    """Ruling 16: between the making of a digest and its mail the user may have read it all, or wants none."""
    for user in ("ana", "bea"):
        rows.user(user)
        rows.notification(rows.subscription(user), user)
    run = rows.run(job)
    job.make_digests(run, outside())
    rows.execute("UPDATE notifications SET read = TRUE WHERE user_id = 'ana'")
    rows.change(USERS, "bea", digests_stopped_at=AS_OF)
    mail = FakeMail()
    job.claim_digests(run, outside(mail))
    job.send_digests(run, outside(mail))
    assert mail.delivered == []
    assert {row.user_id: (row.status, row.last_error) for row in rows.all(DIGESTS)} == {
        "ana": ("abandoned", "all of it was read meanwhile"),
        "bea": ("abandoned", "the user wants no more digests"),
    }


def test_one_bad_user_stops_nobody_else(rows: Rows) -> None:
    """Ruling 6: no address, a zone that is none: counted with the reason, and the others get their mail."""
    rows.user("ana")
    rows.user("bea", email=None)
    rows.user("cai", timezone="Mars/Olympus")
    for user in ("ana", "bea", "cai"):
        rows.notification(rows.subscription(user), user)
    mail = FakeMail()
    run = rows.perform(job, outside(mail), hour_of_day=None)
    assert [message.to for message in mail.delivered] == ["ana@nifya.test"]
    assert run.counts["failed"] == 2
    assert [row.last_error for row in rows.all(DIGESTS) if row.status == "failed"] == [
        "the user has no e-mail address"
    ]


def test_a_rejected_digest_is_tried_three_times(rows: Rows) -> None:
    """A provider that refuses the message is asked again by later runs, then the digest is abandoned."""
    rows.user()
    rows.notification(rows.subscription())
    mail = FakeMail(refuse={"ana@nifya.test"})
    statuses = []
    for n in range(4):
        rows.perform(job, outside(mail), AS_OF + n * timedelta(minutes=20))
        (digest,) = rows.all(DIGESTS)
        statuses.append((digest.status, digest.retry_count))
        rows.execute("UPDATE digests SET next_attempt_at = now() - interval '1 s'")
    assert statuses == [("failed", 1), ("failed", 2), ("abandoned", 3), ("abandoned", 3)]


def test_an_outage_is_told_once_and_the_mail_goes_later_under_its_key(rows: Rows) -> None:
    """E1, E3: nothing is lost, nothing early: the quota pauses the sending, the claim goes out as it was."""
    rows.user()
    rows.notification(rows.subscription())
    mail, alerts = FakeMail(), FakeAlerts()
    reset = datetime.now(UTC) + timedelta(hours=1)
    mail.down = Deferred("429 daily quota", certain=False, retry_at=reset, quota=True)
    for _ in range(2):
        with pytest.raises(Outage, match="quota"):
            rows.perform(job, outside(mail, alerts), hour_of_day=None)
    assert list(alerts.outages) == ["nifya_email"]
    assert mail.requests == 1
    mail.down = None
    rows.execute("UPDATE mail_pauses SET paused_until = now() - interval '1 s'")
    rows.perform(job, outside(mail, alerts), AS_OF + timedelta(minutes=1))
    assert [message.to for message in mail.delivered] == ["ana@nifya.test"]
    assert alerts.outages == {}
    (digest,) = rows.all(DIGESTS)
    assert (digest.status, digest.provider_message_id is None) == ("sent", False)


def test_two_runs_at_once_send_one_mail(rows: Rows) -> None:
    """R4, E1: the second waits for the first or is told that it is busy; nobody is mailed twice."""
    for n in range(5):
        rows.user(f"user{n}")
        rows.notification(rows.subscription(f"user{n}"), f"user{n}")
    mail = FakeMail()
    problems: list[Exception] = []

    def one() -> None:
        try:
            rows.perform(job, outside(mail))
        except Busy as error:
            problems.append(error)

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    rows.perform(job, outside(mail))
    assert sorted(message.to for message in mail.delivered) == [f"user{n}@nifya.test" for n in range(5)]


def test_a_sending_beside_another(rows: Rows) -> None:
    """R4: a provider without keys would deliver twice what two runs send at once; one leaves it to the other."""
    rows.user()
    rows.notification(rows.subscription())
    job.handle(rows.run(job), [SendDigestEmails()])
    second = rows.run(job)

    def beside(event: str) -> None:
        if event == "mail before" and not second.notes:
            job.send_waiting(second, mail, FakeAlerts())
            second.note("done")

    mail = FakeMail(tick=beside, key_lifetime=timedelta(0))
    job.send_waiting(rows.run(job), mail, FakeAlerts())
    assert len(mail.delivered) == 1
    assert second.notes == ["nifya digests: another run is at it", "done"]


def test_jobs_of_the_queue(rows: Rows) -> None:
    """The scheduled jobs' handler makes the digests of all hours; an outage of the mail is none of its jobs'."""
    for user, hour in (("ana", 9), ("bea", 10), ("cai", 11)):
        rows.user(user, digest_hour=hour)
        rows.notification(rows.subscription(user), user)
    mail, alerts = FakeMail(), FakeAlerts()
    run = rows.run(job)
    datas = [SendDigestEmails("09"), SendDigestEmails(10)]
    mail.down = Deferred("503", certain=True)
    assert job.handle(run, datas) == [None, None]
    job.send_waiting(run, mail, alerts)
    assert (run.state, list(alerts.outages), mail.delivered) == ("deferred", ["nifya_email"], [])
    mail.down = None
    job.send_waiting(rows.run(job), mail, alerts)
    assert sorted(message.to for message in mail.delivered) == ["ana@nifya.test", "bea@nifya.test"]
    assert (job.handle(run, [SendDigestEmails()]), alerts.outages) == ([None], {})
    job.send_waiting(run, mail, alerts)
    assert len(mail.delivered) == 3


def test_every_digest_has_its_own_token(rows: Rows) -> None:
    """Ruling 19: the link in a mail is a random token, which stands in that mail and with that digest alone."""
    for user in ("ana", "bea"):
        rows.user(user)
        rows.notification(rows.subscription(user), user)
    mail = FakeMail()
    rows.perform(job, outside(mail))
    tokens = {row.user_id: str(row.unsubscribe_token) for row in rows.all(DIGESTS)}
    assert len(set(tokens.values())) == 2
    for message in mail.delivered:
        link = f"https://almanac.nifya.test/nifya/unsubscribe/{tokens[message.to.partition('@')[0]]}"
        assert message.headers["List-Unsubscribe"] == f"<{link}>"
        assert link in message.text


def test_a_hundred_users_cost_a_few_statements(rows: Rows) -> None:
    """Set-based: the number of statements does not grow with the number of users."""
    from sqlalchemy import event  # noqa: PLC0415 - for this count alone

    counts = []
    for round_, number in enumerate((2, 40)):
        for n in range(number):
            user = f"user{round_}-{n}"
            rows.user(user)
            rows.notification(rows.subscription(user), user)
        seen: list[str] = []
        event.listen(
            rows.db.engine, "before_cursor_execute", listener := lambda *a, seen=seen: seen.append(a[2])
        )
        rows.perform(job, outside(FakeMail(batch_size=100)))
        event.remove(rows.db.engine, "before_cursor_execute", listener)
        counts.append(len(seen))
    assert counts[1] <= counts[0] + 2
    assert len(rows.all(NOTIFICATIONS)) == 42
    assert {row.status for row in rows.all(tables.DIGESTS)} == {"sent"}
