"""Digests: what stands in one, once a person and period, and what a digest that failed leaves undelivered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from include.ecocomply import digest_delivery_daily as daily
from include.ecocomply import digest_delivery_weekly as weekly
from include.ecocomply import notification_delivery
from include.ecocomply.digest_delivery import period_start, stop_digests
from include.ecocomply.digest_mail import LARGEST, Digest, digest_message
from include.errors import BadInput, Outage
from include.mail import Deferred
from include.mail_sending import Outside
from include.run import EngineDatabase, Run
from tests.ecocomply.killing import Killed, killed_at
from tests.ecocomply.providers import LINKS, FakePushes, FakeTexts
from tests.ecocomply.rows import AS_OF, Rows
from tests.fakes.world import FakeAlerts, FakeMail

DAY = timedelta(days=1)
BEFORE = AS_OF - timedelta(hours=1)


@dataclass
class World:
    """A company of people who want digests, and their mail."""

    rows: Rows
    mail: FakeMail = field(default_factory=FakeMail)
    alerts: FakeAlerts = field(default_factory=FakeAlerts)

    def perform(self, job: Any = daily, as_of: datetime = AS_OF) -> Run:
        return self.rows.perform(job, Outside(self.mail, self.alerts), as_of)

    def reader(self, name: str, frequency: str = "DAILY_DIGEST", **values: Any) -> UUID:
        """Add somebody who wants reminders of evidence in a digest."""
        return self.rows.reader(name, frequency, **values)

    def waiting(self, user: UUID, **values: Any) -> UUID:
        """Add a notification that waits for its digest."""
        return self.rows.notification(user, **({"created_at": BEFORE, "scheduled_for": BEFORE} | values))

    def standing(self) -> list[tuple[str, str, str | None]]:
        """Return the subject, status and reason of every notification."""
        return sorted((row.subject, row.status, row.status_reason) for row in self.rows.all("notifications"))


@pytest.fixture
def world(database_of: Callable[..., EngineDatabase]) -> World:
    """Make a company, and a provider that is well."""
    return World(Rows(database_of("ecocomply")))


def test_a_digest_tells_what_waits(world: World) -> None:
    """18.5: one mail with counts by type; everything in it is delivered, and says so."""
    ana = world.reader("ana", full_name="Ana <b>")
    world.rows.add(
        "notification_preferences", user_id=ana, notification_type="REPORT_READY",
        frequency_preference="DAILY_DIGEST",
    )  # fmt: skip
    for n in range(3):
        world.waiting(ana, subject=f"S{n}", action_url=f"https://app.ecocomply.test/o/{n}",
                      created_at=BEFORE - n * DAY)  # fmt: skip
    world.waiting(ana, subject="A report", notification_type="REPORT_READY", priority="LOW")
    run = world.perform()
    (mail,) = world.mail.delivered
    assert (mail.to, mail.subject) == ("ana@ecocomply.test", "Your daily digest: 4 notifications")
    assert "4 notifications of 2 types, newest first:" in mail.text
    assert "Evidence reminder (3)\n* S0 https://app.ecocomply.test/o/0\n* S1" in mail.text
    assert "Report ready (1)\n* A report\n" in mail.text
    assert "All of them: https://app.ecocomply.test/notifications" in mail.text
    assert '<a href="https://app.ecocomply.test/o/0">S0</a>' in (mail.html or "")
    assert "Hello Ana &lt;b&gt;," in (mail.html or "")
    assert {(status, reason) for _, status, reason in world.standing()} == {
        ("DELIVERED", "stands in the daily digest")
    }
    row = world.rows.all("notifications")[0]
    assert (row.delivery_status, row.delivery_provider) == ("DELIVERED", "ecocomply_email")
    assert None not in (row.delivered_at, row.sent_at)
    (digest,) = world.rows.all("digests")
    assert (digest.frequency, digest.period_start, digest.status) == ("DAILY", AS_OF.date(), "sent")
    assert (run.counts["digests"], run.counts["notifications"], run.counts["sent"]) == (1, 4, 1)


@pytest.mark.parametrize(
    ("values", "is_told"),
    [
        ({}, True),
        ({"priority": "LOW"}, True),
        ({"priority": "HIGH"}, False),
        ({"priority": "URGENT"}, False),
        ({"channel": "IN_APP"}, False),
        ({"status": "SENT"}, False),
        ({"status": "CANCELLED"}, False),
        ({"notification_type": "BREACH"}, False),
        ({"created_at": AS_OF}, True),
        ({"created_at": AS_OF + timedelta(seconds=1)}, False),
        ({"created_at": AS_OF - 40 * DAY}, True),
        ({"scheduled_for": AS_OF + timedelta(seconds=1)}, False),
    ],
)
def test_what_a_digest_takes(world: World, values: dict[str, Any], is_told: bool) -> None:  # noqa: FBT001 - a case
    """Ruling: PENDING EMAIL rows, LOW or NORMAL, whose preference is this digest, created up to as_of."""
    world.waiting(world.reader("ana"), **values)
    world.perform()
    assert len(world.mail.delivered) == is_told
    assert len(world.rows.all("digests")) == is_told


@pytest.mark.parametrize(
    ("frequency", "job", "is_told"),
    [
        ("DAILY_DIGEST", daily, True),
        ("DAILY_DIGEST", weekly, False),
        ("WEEKLY_DIGEST", weekly, True),
        ("WEEKLY_DIGEST", daily, False),
        ("IMMEDIATE", daily, False),
    ],
)
def test_each_frequency_has_its_digest(world: World, frequency: str, job: Any, is_told: bool) -> None:  # noqa: FBT001 - a case
    """A weekly digest is no daily one; whoever wants none gets none."""
    world.waiting(world.reader("ana", frequency))
    world.perform(job)
    assert len(world.mail.delivered) == len(world.rows.all("digests")) == is_told


def consultant(world: World) -> tuple[UUID, UUID]:
    """Add a consultant who wants digests, and return the consultancy and the consultant."""
    office = world.rows.add("companies", name="Consultancy")
    cora = world.reader("cora", company=office)
    world.rows.add("user_roles", user_id=cora, role="CONSULTANT")
    world.rows.add("consultant_client_assignments", consultant_id=cora, company_id=world.rows.company)
    return office, cora


LOST = (
    "UPDATE consultant_client_assignments SET status = 'INACTIVE'",
    "DELETE FROM user_roles",
)


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("has_more", [True, False])
def test_a_digest_tells_nothing_of_a_former_client(world: World, lost: str, has_more: bool) -> None:  # noqa: FBT001 - a case
    """It is another company's secret; delivery cancels it and says why."""
    office, cora = consultant(world)
    world.waiting(cora, subject="Of the client")
    if has_more:
        world.waiting(cora, subject="Own", company_id=office)
    world.rows.run_sql(lost)
    world.perform()
    assert len(world.mail.delivered) == len(world.rows.all("digests")) == has_more
    assert all("Of the client" not in mail.text for mail in world.mail.delivered)
    outside = notification_delivery.Outside(world.mail, FakeTexts(), FakePushes(), LINKS, world.alerts)
    world.rows.perform(notification_delivery, outside)
    assert ("Of the client", "CANCELLED", "the user no longer looks after this company") in world.standing()


def test_a_client_that_is_lost_before_the_digest_is_claimed(world: World) -> None:
    """A digest may wait for days while the provider is out of reach; what it no longer may tell is cancelled."""
    office, cora = consultant(world)
    world.waiting(cora, subject="Of the client")
    world.waiting(cora, subject="Own", company_id=office)
    run = world.rows.run(job=daily.NAME)
    outside = Outside(world.mail, world.alerts)
    daily.STEPS[0](run, outside)
    assert len(world.rows.all("digests")) == 1
    world.rows.run_sql(LOST[0])
    for step in daily.STEPS[1:]:
        step(run, outside)
    assert world.standing() == [
        ("Of the client", "CANCELLED", "the user no longer looks after this company"),
        ("Own", "DELIVERED", "stands in the daily digest"),
    ]
    assert "Of the client" not in world.mail.delivered[0].text
    assert run.counts["cancelled"] == 1


def test_what_is_of_a_former_client_is_put_in_no_digest(world: World) -> None:
    """A digest that has to wait would keep delivery from saying what became of it."""
    office, cora = consultant(world)
    world.waiting(cora, subject="Of the client")
    world.waiting(cora, subject="Own", company_id=office)
    world.rows.run_sql(LOST[0])
    daily.STEPS[0](world.rows.run(job=daily.NAME), Outside(world.mail, world.alerts))
    assert world.standing() == [
        ("Of the client", "PENDING", None),
        ("Own", "PENDING", "stands in a digest that is on its way"),
    ]


def test_a_digest_tells_a_consultant_of_clients(world: World) -> None:
    """An active assignment, and the role, are what it takes."""
    _, cora = consultant(world)
    world.waiting(cora, subject="Of the client")
    world.perform()
    assert "Of the client" in world.mail.delivered[0].text


@pytest.mark.parametrize(
    ("day", "monday"),
    [("2026-11-23", "2026-11-23"), ("2026-11-29", "2026-11-23"), ("2026-11-30", "2026-11-30")],
)
def test_a_week_begins_on_monday(day: str, monday: str) -> None:
    """A week's digest that runs late is still that week's."""
    assert period_start("WEEKLY", date.fromisoformat(day)) == date.fromisoformat(monday)
    assert period_start("DAILY", date.fromisoformat(day)) == date.fromisoformat(day)


def test_one_digest_a_period(world: World) -> None:
    """T3: run again, replayed and out of order, nobody gets a second digest of a day; what came since waits."""
    ana = world.reader("ana")
    for as_of in (AS_OF, AS_OF, AS_OF + DAY, AS_OF, AS_OF + DAY):
        world.waiting(ana)
        run = world.perform(as_of=as_of)
    assert len(world.mail.delivered) == 2
    assert run.counts["digests"] == 0
    old = world.perform(as_of=AS_OF - DAY)
    assert "1 digests are of later periods; this run is too old for those people" in old.notes
    assert world.perform(as_of=AS_OF + 2 * DAY).counts["notifications"] == 2


def test_who_has_left_gets_none(world: World) -> None:
    """Recipients are active users."""
    world.waiting(world.reader("ana", is_active=False))
    world.perform()
    assert (world.mail.delivered, world.rows.all("digests")) == ([], [])


def test_an_outage_leaves_all_of_it_undelivered(world: World) -> None:
    """The run fails and is tried again; the digest goes out once, and no attempt is used up."""
    world.waiting(world.reader("ana"))
    world.mail.down = Deferred("HTTP 503", certain=True)
    for _ in range(4):
        with pytest.raises(Outage):
            world.perform()
    assert [status for _, status, _ in world.standing()] == ["PENDING"]
    assert [(row.status, row.retry_count) for row in world.rows.all("digests")] == [("queued", 0)]
    world.mail.down = None
    world.perform()
    assert (len(world.mail.delivered), world.standing()[0][1]) == (1, "DELIVERED")


def test_a_refused_digest_leaves_all_of_it_undelivered(world: World) -> None:
    """Ruling: a failed send delivers nothing; the digest is made anew, at most three times, then the next one tells."""
    ana = world.reader("ana")
    world.waiting(ana)
    world.mail.refuse.add("ana@ecocomply.test")
    for attempt in (1, 2, 3):
        world.perform()
        assert world.standing() == [
            ("Evidence Required", "PENDING", "the daily digest was refused: invalid address")
        ]
        (digest,) = world.rows.all("digests")
        assert (digest.retry_count, digest.status) == (attempt, "abandoned" if attempt == 3 else "failed")
    world.perform()
    assert world.mail.requests == 3
    world.mail.refuse.clear()
    world.perform(as_of=AS_OF + DAY)
    assert (len(world.mail.delivered), world.standing()[0][1]) == (1, "DELIVERED")


def test_a_lost_answer_is_left_to_a_person(world: World) -> None:
    """Nobody knows whether it arrived: it is not sent again, nor told in the next one."""
    ana = world.reader("ana")
    world.waiting(ana)
    world.mail.key_lifetime = timedelta(0)

    def die(what: str) -> None:
        if what == "mail after":
            raise Killed

    world.mail.tick = die
    with pytest.raises(Killed):
        world.perform()
    world.mail.tick = lambda what: None
    assert world.perform().counts["failed"] == 1
    world.perform(as_of=AS_OF + DAY)
    (digest,) = world.rows.all("digests")
    assert (digest.status, digest.outcome_unknown, digest.permanent) == ("failed", True, True)
    assert "nobody knows whether the daily digest arrived" in str(world.standing()[0][2])
    assert world.mail.requests == 1


def test_what_is_called_off_is_not_told(world: World) -> None:
    """Ruling 16: an application cancels a row that stands in a digest; a digest of nothing is none."""
    ana, bea = world.reader("ana"), world.reader("bea")
    world.waiting(ana, subject="one")
    gone = [world.waiting(ana, subject="two"), world.waiting(bea, subject="three")]
    run = world.rows.run(job=daily.NAME)
    outside = Outside(world.mail, world.alerts)
    daily.make_digests(run, outside)
    for one in gone:
        world.rows.change("notifications", one, status="CANCELLED")
    daily.claim_digests(run, outside)
    daily.send_digests(run, outside)
    (mail,) = world.mail.delivered
    assert mail.subject == "Your daily digest: 1 notification"
    assert [(subject, status) for subject, status, _ in world.standing()] == [
        ("one", "DELIVERED"), ("three", "CANCELLED"), ("two", "CANCELLED"),
    ]  # fmt: skip
    assert sorted(row.last_error or "" for row in world.rows.all("digests")) == [
        "", "all of it was called off meanwhile",
    ]  # fmt: skip


def test_delivery_leaves_to_the_digest_what_is_its(world: World) -> None:
    """18.4 and 18.5 side by side: nobody is told twice of the same."""
    ana = world.reader("ana")
    world.waiting(ana, subject="held")
    world.waiting(ana, subject="urgent", priority="URGENT")
    both = notification_delivery.Outside(world.mail, FakeTexts(), FakePushes(), LINKS, world.alerts)
    for _ in range(2):
        world.rows.perform(notification_delivery, both)
        world.perform()
    assert [mail.subject for mail in world.mail.delivered] == [
        "urgent", "Your daily digest: 1 notification"
    ]  # fmt: skip


def test_digests_can_be_stopped_without_a_login(world: World) -> None:
    """E5: both headers; from then on these types come by mail no more, and in the application as before."""
    ana = world.reader("ana")
    world.rows.add(
        "notification_preferences", user_id=ana, notification_type="REPORT_READY",
        frequency_preference="DAILY_DIGEST",
    )  # fmt: skip
    world.waiting(ana)
    world.perform()
    (mail,) = world.mail.delivered
    assert mail.headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    link = mail.headers["List-Unsubscribe"].strip("<>")
    start = "https://public.ecocomply.test/almanac/ecocomply/digests/"
    token = UUID(link.removeprefix(start))
    assert link in mail.text
    assert link in (mail.html or "")
    with world.rows.run().transaction() as tx:
        assert stop_digests(tx, token)
    wanted = sorted(
        (row.notification_type, str(row.channel), row.is_enabled)
        for row in world.rows.all("notification_preferences")
    )
    assert wanted == [
        ("EVIDENCE_REMINDER", "EMAIL", False), ("REPORT_READY", "EMAIL", False), ("REPORT_READY", "None", True),
    ]  # fmt: skip
    world.waiting(ana)
    world.perform(as_of=AS_OF + DAY)
    assert len(world.mail.delivered) == 1
    world.rows.run_sql("UPDATE digests SET created_at = now() - interval '366 days'")
    with world.rows.run().transaction() as tx:
        assert not stop_digests(tx, token)
        assert not stop_digests(tx, uuid4())


HOSTILE = '<a href="https://evil.test">Reset</a> & Co'


def test_three_thousand_entries_are_one_mail(world: World) -> None:
    """E5: under 100 KB, with the number left out and a link; E4: nothing in it is markup."""
    ana = world.reader("ana")
    world.rows.run_sql(
        """
        INSERT INTO notifications (user_id, company_id, notification_type, channel, subject, body_text, action_url,
                                   created_at, scheduled_for)
        SELECT :user, :company, 'EVIDENCE_REMINDER', 'EMAIL', :subject || n || repeat(' ñ', 40), 'b',
               'https://app.ecocomply.test/o/' || n, :before, :before
        FROM generate_series(1, 3000) AS n
        """,
        user=ana,
        company=world.rows.company,
        subject=HOSTILE,
        before=BEFORE,
    )
    world.perform()
    (mail,) = world.mail.delivered
    shown = mail.text.count("* <a href")
    assert mail.subject == "Your daily digest: 3,000 notifications"
    assert 20 < shown < 300
    assert (
        f"And {3_000 - shown:,} more, which you find at https://app.ecocomply.test/notifications" in mail.text
    )
    assert "Evidence reminder (3,000)" in mail.text
    assert len((mail.text + (mail.html or "")).encode()) < LARGEST
    assert '<a href="https://evil' not in (mail.html or "")
    assert {status for _, status, _ in world.standing()} == {"DELIVERED"}


def test_a_digest_of_nothing_is_refused() -> None:
    """Nor is one made whose links lead nowhere."""
    given = Digest(frequency="DAILY", name=None, counts={}, entries=[], all_url="https://a.test/n",
                   unsubscribe_url="https://p.test/d")  # fmt: skip
    with pytest.raises(BadInput, match="nothing to tell"):
        digest_message(given, sender="", to="a@b.test")
    with pytest.raises(BadInput, match="APP_URL"):
        digest_message(Digest(frequency="DAILY", name=None, counts={}, entries=[], all_url="x",
                              unsubscribe_url="https://p.test/d"), sender="", to="a@b.test")  # fmt: skip
    with pytest.raises(BadInput, match=r"PUBLIC_URL makes 'p\.test/digests', which") as caught:
        digest_message(Digest(frequency="DAILY", name=None, counts={}, entries=[], all_url="https://a.test/n",
                              unsubscribe_url="p.test/digests/s3cret"), sender="", to="a@b.test")  # fmt: skip
    assert "s3cret" not in str(caught.value)


def test_killed_anywhere_it_tells_everybody_once(world: World, record_property: Any) -> None:
    """E1, ruling 3: killed at every statement, commit and call and run again, it ends as one clean run."""

    def anew() -> World:
        for table in ("companies", "email_batches", "delivery_pauses"):
            world.rows.run_sql(f"DELETE FROM {table}")
        made = World(Rows(world.rows.database))
        for name in ("ana", "bea", "cai"):
            user = made.reader(name)
            for n in range(2):
                made.waiting(user, subject=f"{name} {n}")
        made.mail.refuse.add("cai@ecocomply.test")
        return made

    def killed(one: World, die_at: int) -> list[str]:
        return killed_at(one.rows.database.engine, one.perform, (one.mail, one.alerts), die_at)

    one = anew()
    happened = killed(one, 0)
    clean = one.standing()
    assert [status for _, status, _ in clean] == ["DELIVERED"] * 4 + ["PENDING"] * 2
    for die_at in range(1, len(happened) + 1):
        one = anew()
        died = killed(one, die_at)
        one.perform()
        assert one.standing() == clean, f"run again after event {die_at}: {died[-1]}"
        assert sorted(mail.to for mail in one.mail.delivered) == ["ana@ecocomply.test", "bea@ecocomply.test"]
    record_property("crash points", f"digest delivery: {len(happened)}, each run again")
