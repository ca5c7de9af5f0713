"""Delivery: the order, what people prefer, outages, attempts, and each message once whatever is killed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql

from include.ecocomply import notification_delivery as job
from include.ecocomply.channels import PushesToOutbox, TextsToOutbox
from include.ecocomply.notices import notify
from include.ecocomply.unsubscribe_links import UnsubscribeLinks, unsubscribe
from include.errors import BadInput
from include.mail import Deferred
from include.preview import preview
from include.run import EngineDatabase, Run
from tests.ecocomply.killing import Killed, killed_at
from tests.ecocomply.providers import LINKS, FakePushes, FakeTexts
from tests.ecocomply.rows import AS_OF, TODAY, Rows
from tests.fakes.world import FakeAlerts, FakeMail

DOWN = Deferred("HTTP 503", certain=True)
MINUTE = timedelta(minutes=1)


@dataclass
class World:
    """A company of people, and its providers."""

    rows: Rows
    mail: FakeMail = field(default_factory=FakeMail)
    texts: FakeTexts = field(default_factory=FakeTexts)
    pushes: FakePushes = field(default_factory=FakePushes)
    alerts: FakeAlerts = field(default_factory=FakeAlerts)

    @property
    def outside(self) -> job.Outside:
        return job.Outside(self.mail, self.texts, self.pushes, LINKS, self.alerts)

    def perform(self, **params: Any) -> Run:
        return self.rows.perform(job, self.outside, **params)

    def later(self) -> None:
        """Let every waiting time pass."""
        self.rows.run_sql("UPDATE notifications SET next_attempt_at = now() - interval '1 second'")
        self.rows.run_sql("UPDATE delivery_pauses SET paused_until = now() - interval '1 second'")

    def of(self, channel: str = "EMAIL") -> Any:
        """Return the only notification of a channel."""
        (row,) = [row for row in self.rows.all("notifications") if row.channel == channel]
        return row


@pytest.fixture
def world(database_of: Callable[..., EngineDatabase]) -> World:
    """Make a company, and providers that are well."""
    return World(Rows(database_of("ecocomply")))


def test_each_channel_carries_its_notification(world: World) -> None:
    """18.4: mail, SMS, push and the application; what is sent is known by the provider's id, and says so."""
    ana = world.rows.user("ana", phone="+44 7700")
    world.rows.add("push_subscriptions", user_id=ana, endpoint="https://push.test/1", p256dh="p", auth="a")
    notify(
        world.rows.run(),
        [world.rows.notice(named=[ana], channels=["EMAIL", "SMS", "IN_APP", "PUSH"], entity_id=UUID(int=7))],
    )
    run = world.perform()
    standing = {
        row.channel: (row.status, row.delivery_status, row.delivery_provider, row.status_reason)
        for row in world.rows.all("notifications")
    }
    assert standing == {
        "EMAIL": ("SENT", "SENT", "ecocomply_email", "taken by ecocomply_email"),
        "SMS": ("SENT", "SENT", "ecocomply_sms", "taken by ecocomply_sms"),
        "PUSH": ("SENT", "SENT", "ecocomply_push", "taken by ecocomply_push"),
        "IN_APP": ("DELIVERED", "DELIVERED", "DATABASE", "shown in the application"),
    }
    assert (run.counts["sent"], run.counts["delivered"]) == (3, 1)
    (mail,) = world.mail.delivered
    link = f"https://app.ecocomply.test/sites/{world.rows.site}/obligations/{UUID(int=7)}"
    words = (
        "“Stack test” at Leeds is due in 2 days, on 27 November 2026, and there is no evidence for it yet."
    )
    assert (mail.to, mail.subject) == ("ana@ecocomply.test", "Evidence Required: Stack test")
    assert mail.text.startswith(f"{words}\n\n{link}\n")
    assert f"<p>{words}</p>" in (mail.html or "")
    assert f'href="{link}"' in (mail.html or "")
    assert world.texts.sent == [("+44 7700", f"Evidence Required: Stack test: {words} {link}")]
    (push,) = world.pushes.sent.values()
    assert (push.title, push.body, push.url) == (mail.subject, words, link)
    assert world.of().delivery_provider_id == "id of ana@ecocomply.test Evidence Required: Stack test"
    assert world.of().sent_at is not None
    assert world.of("IN_APP").delivered_at is not None


GONE = "the user no longer looks after this company"


@pytest.mark.parametrize(
    ("ends", "is_told"),
    [
        ("UPDATE users SET full_name = 'Cora'", True),
        ("UPDATE consultant_client_assignments SET status = 'INACTIVE'", False),
        ("DELETE FROM consultant_client_assignments", False),
        ("DELETE FROM user_roles", False),
    ],
)
@pytest.mark.parametrize("status", ["PENDING", "RETRYING"])
def test_who_no_longer_looks_after_a_company_hears_of_it_no_more(
    world: World,
    status: str,
    ends: str,
    is_told: bool,  # noqa: FBT001 - a case
) -> None:
    """What was written for a consultant while the company was a client is another company's secret afterwards."""
    rows = world.rows
    office = rows.add("companies", name="Consultancy")
    cora = rows.user("cora", "CONSULTANT", company=office, phone="+44 1")
    rows.add("consultant_client_assignments", consultant_id=cora, company_id=rows.company)
    for channel in ("EMAIL", "SMS", "IN_APP"):
        rows.notification(cora, channel=channel, status=status)
    own = rows.notification(cora, company_id=office)
    rows.run_sql(ends)
    world.perform()
    standing = {row.id: (row.status, row.status_reason) for row in rows.all("notifications")}
    assert standing.pop(own)[0] == "SENT"
    if is_told:
        assert {status for status, _ in standing.values()} == {"SENT", "DELIVERED"}
    else:
        assert set(standing.values()) == {("CANCELLED", GONE)}
        assert (len(world.mail.delivered), len(world.texts.sent)) == (1, 0)


@pytest.mark.parametrize("step", ["look", "claim"])
def test_a_client_that_is_lost_on_the_way(world: World, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked again where what is due is looked for and where it is claimed; the next run says why."""
    rows = world.rows
    office = rows.add("companies", name="Consultancy")
    cora = rows.user("cora", "CONSULTANT", company=office)
    rows.add("consultant_client_assignments", consultant_id=cora, company_id=rows.company)
    rows.notification(cora)
    run = rows.run(job=job.NAME)
    job.settle_without_provider(run, world.outside)
    linked: list[Any] = []

    def url(links: UnsubscribeLinks, *of: Any) -> str:
        lose()
        linked.append(of)
        return "https://public.ecocomply.test"

    def lose() -> None:
        rows.run_sql("UPDATE consultant_client_assignments SET status = 'INACTIVE'")

    monkeypatch.setattr(UnsubscribeLinks, "url", url)
    if step == "look":
        lose()
    job.claim_due(run, world.outside)
    assert (len(linked), world.of().status) == (step == "claim", "PENDING")
    world.perform()
    assert (world.of().status, world.of().status_reason, world.mail.delivered) == ("CANCELLED", GONE, [])


def test_the_most_urgent_goes_first_then_the_oldest(world: World) -> None:
    """Ruling: an urgent one overtakes what has waited longer."""
    ana = world.rows.user("ana")
    for number, (priority, age) in enumerate(
        [("LOW", 9), ("NORMAL", 3), ("URGENT", 1), ("NORMAL", 5), ("CRITICAL", 1), ("URGENT", 2), ("HIGH", 8)]
    ):
        world.rows.notification(
            ana, subject=f"{number} {priority}", priority=priority, created_at=AS_OF - age * MINUTE
        )
    world.perform()
    assert [mail.subject[2:] for mail in world.mail.delivered] == [
        "URGENT", "URGENT", "CRITICAL", "HIGH", "NORMAL", "NORMAL", "LOW"
    ]  # fmt: skip
    assert [mail.subject[0] for mail in world.mail.delivered] == list("5246310")


PREFERENCES = [
    # What the user wants of the channel, and of all channels; the priority; what becomes of a mail.
    (None, None, "LOW", "SENT"),
    ((True, "IMMEDIATE"), None, "LOW", "SENT"),
    ((False, "IMMEDIATE"), None, "LOW", "CANCELLED"),
    ((False, "IMMEDIATE"), None, "URGENT", "CANCELLED"),
    (None, (False, "IMMEDIATE"), "NORMAL", "CANCELLED"),
    ((True, "IMMEDIATE"), (False, "IMMEDIATE"), "NORMAL", "SENT"),
    ((False, "IMMEDIATE"), (True, "IMMEDIATE"), "NORMAL", "CANCELLED"),
    ((True, "DAILY_DIGEST"), None, "LOW", "PENDING"),
    ((True, "DAILY_DIGEST"), None, "NORMAL", "PENDING"),
    ((True, "DAILY_DIGEST"), None, "HIGH", "SENT"),
    ((True, "WEEKLY_DIGEST"), None, "NORMAL", "PENDING"),
    ((True, "WEEKLY_DIGEST"), None, "CRITICAL", "SENT"),
    (None, (True, "WEEKLY_DIGEST"), "NORMAL", "PENDING"),
    ((True, "IMMEDIATE"), (True, "WEEKLY_DIGEST"), "NORMAL", "SENT"),
    ((False, "DAILY_DIGEST"), None, "URGENT", "CANCELLED"),
]


@pytest.mark.parametrize(("own", "every", "priority", "status"), PREFERENCES)
def test_what_people_prefer(
    world: World, own: tuple[bool, str] | None, every: tuple[bool, str] | None, priority: str, status: str
) -> None:
    """Off: CANCELLED; digest: PENDING, unless HIGH or above; a channel's own preference goes before that for all."""
    ana = world.rows.user("ana")
    for channel, wanted in (("EMAIL", own), (None, every)):
        if wanted is not None:
            world.rows.add(
                "notification_preferences", user_id=ana, notification_type="EVIDENCE_REMINDER", channel=channel,
                is_enabled=wanted[0], frequency_preference=wanted[1],
            )  # fmt: skip
    # What somebody else wants, or wants of another type, is nothing to this one.
    bea = world.rows.user("bea")
    for user, kind in ((ana, "BREACH"), (bea, "EVIDENCE_REMINDER")):
        world.rows.add("notification_preferences", user_id=user, notification_type=kind, is_enabled=False)
    world.rows.notification(ana, priority=priority)
    world.perform()
    row = world.of()
    assert row.status == status
    assert len(world.mail.delivered) == (status == "SENT")
    said = {
        "SENT": "taken by ecocomply_email", "CANCELLED": "the user wants none of this type by EMAIL",
        "PENDING": "waits for the weekly digest" if "WEEKLY_DIGEST" in str((own, every)) else "waits for the daily "
        "digest",
    }  # fmt: skip
    assert row.status_reason == said[status]


def test_a_digest_holds_mail_alone(world: World) -> None:
    """The application shows at once what the digest will tell: it disturbs nobody."""
    ana = world.rows.user("ana")
    world.rows.add(
        "notification_preferences", user_id=ana, notification_type="EVIDENCE_REMINDER",
        frequency_preference="DAILY_DIGEST",
    )  # fmt: skip
    notify(world.rows.run(), [world.rows.notice(named=[ana], priority="NORMAL")])
    world.perform()
    assert (world.of("IN_APP").status, world.of().status) == ("DELIVERED", "PENDING")


@pytest.mark.parametrize(
    ("channel", "values", "status", "reason"),
    [
        ("EMAIL", {"email": " "}, "FAILED", "the user has no e-mail address"),
        ("SMS", {}, "FAILED", "the user has no phone number"),
        ("PUSH", {}, "FAILED", "the user has no device that takes push messages"),
        ("EMAIL", {"is_active": False}, "CANCELLED", "the user is not active any more"),
        ("IN_APP", {"deleted_at": AS_OF}, "CANCELLED", "the user is not active any more"),
    ],
)
def test_what_can_not_go_out_says_why(
    world: World, channel: str, values: dict[str, Any], status: str, reason: str
) -> None:
    """18.4: falls back to the application; nobody is told who has left."""
    ana = world.rows.user("ana", **values)
    world.rows.notification(ana, channel=channel, recipient_email=None)
    world.perform()
    row = world.of(channel)
    assert (row.status, row.status_reason) == (status, reason)
    copies = [one for one in world.rows.all("notifications") if one.id != row.id]
    assert [(one.channel, one.status) for one in copies] == (
        [("IN_APP", "DELIVERED")] if status == "FAILED" else []
    )
    assert world.mail.delivered == []


def test_three_attempts_one_and_five_minutes_apart(world: World) -> None:
    """Then FAILED, and shown in the application, once."""
    ana = world.rows.user("ana", phone="+1")
    world.texts.refuse.add("+1")
    values = {"obligation": "A", "site": "B", "due_date": TODAY, "obligation_id": 1}
    notify(
        world.rows.run(),
        [world.rows.notice(kind="deadline_0", named=[ana], channels=["SMS"], values=values)],
    )
    for attempt, minutes in ((1, 1), (2, 5)):
        assert world.perform().counts["retrying"] == 1
        row = world.of("SMS")
        assert (row.status, row.retry_count) == ("RETRYING", attempt)
        assert row.status_reason == f"refused at attempt {attempt} of 3: not a mobile number"
        waits = row.next_attempt_at - datetime.now(UTC)
        assert minutes * MINUTE - 0.5 * MINUTE < waits <= minutes * MINUTE
        assert world.perform().counts["processed"] == 0
        world.later()
    assert world.perform().counts["failed"] == 1
    row = world.of("SMS")
    assert (row.status, row.delivery_status, row.retry_count) == ("FAILED", "FAILED", 3)
    assert row.status_reason == "refused at the third attempt: not a mobile number"
    assert row.delivery_error == "not a mobile number"
    copy = world.of("IN_APP")
    assert (copy.status, copy.subject, copy.entity_id) == ("DELIVERED", "Due today: A", row.entity_id)
    assert copy.dedupe_key == row.dedupe_key.removesuffix("SMS") + "IN_APP"
    world.perform()
    assert len(world.rows.all("notifications")) == 2


@pytest.mark.parametrize("by_key", [True, False])
def test_what_is_in_the_application_is_not_copied(world: World, by_key: bool) -> None:  # noqa: FBT001 - a case
    """An IN_APP copy if there was none: ours by the key, an application's by its words."""
    ana = world.rows.user("ana")
    if by_key:
        notify(world.rows.run(), [world.rows.notice(named=[ana])])
    else:
        for channel in ("EMAIL", "IN_APP"):
            world.rows.notification(ana, channel=channel)
    world.mail.refuse.add("ana@ecocomply.test")
    for _ in range(3):
        world.perform()
        world.later()
    assert world.of().status == "FAILED"
    assert world.of("IN_APP").status == "DELIVERED"


def test_an_outage_uses_up_no_attempt(world: World) -> None:
    """A provider that is down is nobody's fault: the row waits as it was, the other channels go on."""
    ana = world.rows.user("ana", phone="+1")
    notify(world.rows.run(), [world.rows.notice(named=[ana], priority="URGENT") for _ in range(2)])
    world.texts.down = DOWN
    for _ in range(5):
        run = world.perform()
        assert (run.state, run.counts["deferred"]) == ("deferred", 2)
    rows = [row for row in world.rows.all("notifications") if row.channel == "SMS"]
    assert {(row.status, row.retry_count, row.status_reason) for row in rows} == {
        ("PENDING", 0, "ecocomply_sms is out of reach: HTTP 503")
    }
    assert set(world.alerts.outages) == {"ecocomply_sms"}
    assert len(world.mail.delivered) == 2
    world.texts.down = None
    assert world.perform().counts["sent"] == 2
    assert world.alerts.outages == {}


def test_a_paused_channel_is_left_alone(world: World) -> None:
    """E3: nothing is sent before the provider wants it; what waits says until when, and other channels go on."""
    ana = world.rows.user("ana", phone="+1")
    notify(world.rows.run(), [world.rows.notice(named=[ana], priority="URGENT")])
    until = datetime.now(UTC) + timedelta(hours=1)
    world.mail.down = Deferred("HTTP 429", certain=True, retry_at=until)
    world.perform()
    world.mail.down = None
    run = world.perform()
    assert world.mail.delivered == []
    assert any(note.startswith("mail waits until") for note in run.notes)
    assert world.of("SMS").status == "SENT"
    world.later()
    world.perform()
    assert len(world.mail.delivered) == 1


def test_a_lost_answer_without_keys_is_left_to_a_person(world: World) -> None:
    """Ruling 3: nobody knows whether the SMS went out, so it does not go again; the application shows it."""
    ana = world.rows.user("ana", phone="+1")
    world.texts.key_lifetime = timedelta(0)
    world.rows.notification(ana, channel="SMS")

    def die(what: str) -> None:
        if what == "sms after":
            raise Killed

    world.texts.tick = die
    with pytest.raises(Killed):
        world.perform()
    world.texts.tick = lambda what: None
    assert world.perform().counts["unknown"] == 1
    row = world.of("SMS")
    assert (row.status, row.outcome_unknown) == ("FAILED", True)
    assert row.status_reason.startswith("nobody knows whether it arrived: begun on")
    assert world.of("IN_APP").status == "DELIVERED"
    world.perform()
    assert len(world.texts.sent) == 1


def test_what_the_provider_took_is_sent_whatever_the_row_says(world: World) -> None:
    """Ruling 3: an application that cancels a claimed row can't call the message back."""
    ana = world.rows.user("ana")
    world.rows.notification(ana)

    def cancel(what: str) -> None:
        if what == "mail before":
            world.rows.run_sql("UPDATE notifications SET status = 'CANCELLED'")

    world.mail.tick = cancel
    world.perform()
    assert world.of().status == "SENT"


def test_a_cancelled_one_does_not_go_out(world: World) -> None:
    """Ruling 16: whoever cancels before the claim is obeyed, also between the look and the claim."""
    ana = world.rows.user("ana")
    world.rows.notification(ana, status="CANCELLED")
    world.perform()
    assert world.mail.delivered == []


def test_nothing_goes_out_before_its_time(world: World) -> None:
    """scheduled_for is when; an as-of that a person gave only narrows; an id narrows to one."""
    ana = world.rows.user("ana")
    soon = datetime.now(UTC) + timedelta(hours=1)
    world.rows.notification(ana, subject="later", scheduled_for=soon)
    world.rows.notification(ana, subject="old", scheduled_for=AS_OF - MINUTE)
    world.rows.notification(ana, subject="new", scheduled_for=AS_OF + MINUTE)
    one = world.rows.notification(ana, subject="one", scheduled_for=AS_OF - MINUTE)
    world.perform(notification_id=one)
    assert [mail.subject for mail in world.mail.delivered] == ["one"]
    narrowed = world.rows.run(job=job.NAME)
    narrowed.as_of_given = True
    for step in job.STEPS:
        step(narrowed, world.outside)
    assert [mail.subject for mail in world.mail.delivered] == ["one", "old"]
    world.perform()
    assert [mail.subject for mail in world.mail.delivered] == ["one", "old", "new"]


def test_one_refused_message_of_many(world: World) -> None:
    """E2: of 101 mails one is invalid: 100 are sent, one has the provider's reason."""
    world.mail.batch_size = 100
    users = [world.rows.user(f"u{n}") for n in range(3)]
    world.mail.refuse.add("bad@ecocomply.test")
    for n in range(101):
        to = "bad@ecocomply.test" if n == 50 else f"u{n}@ecocomply.test"
        world.rows.notification(users[n % 3], recipient_email=to)
    run = world.perform()
    assert (run.counts["sent"], run.counts["retrying"], world.mail.requests) == (100, 1, 2)


def test_devices_that_are_gone_are_forgotten(world: World) -> None:
    """The push service said so: they are asked no more, and the others get the message."""
    ana = world.rows.user("ana")
    for n in (1, 2):
        world.rows.add(
            "push_subscriptions", user_id=ana, endpoint=f"https://push.test/{n}", p256dh="p", auth="a"
        )
    world.pushes.gone.add("https://push.test/1")
    world.rows.notification(ana, channel="PUSH")
    world.perform()
    assert world.of("PUSH").status == "SENT"
    gone = {row.endpoint: row.gone_at is not None for row in world.rows.all("push_subscriptions")}
    assert gone == {"https://push.test/1": True, "https://push.test/2": False}
    world.rows.notification(ana, channel="PUSH", subject="again")
    world.perform()
    (last,) = [push for push in world.pushes.sent.values() if push.title == "again"]
    assert [one.endpoint for one in last.subscriptions] == ["https://push.test/2"]


def test_words_of_an_application_are_escaped(world: World) -> None:
    """E4: a row without HTML of its own; only an http(s) link is a link."""
    ana = world.rows.user("ana")
    hostile = '<a href="https://evil.test">Reset</a> & Co'
    world.rows.notification(ana, subject=hostile, body_text=f"{hostile}\n\nsecond", action_url="javascript:x")
    world.perform()
    (mail,) = world.mail.delivered
    assert mail.subject == hostile
    assert mail.text.startswith(f"{hostile}\n\nsecond\n")
    assert "evil.test&#34;&gt;Reset&lt;/a&gt; &amp; Co</p><p>second</p>" in (mail.html or "")
    assert '<a href="https://evil' not in (mail.html or "")
    assert "javascript" not in (mail.html or "") + mail.text


def test_a_mail_can_be_stopped_without_a_login(world: World) -> None:
    """Both headers, one signed link; from then on the type comes by mail no more, and by nothing else less."""
    ana = world.rows.user("ana")
    notify(world.rows.run(), [world.rows.notice(named=[ana])])
    world.perform()
    (mail,) = world.mail.delivered
    assert mail.headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    link = mail.headers["List-Unsubscribe"].strip("<>")
    assert link in mail.text
    assert link in (mail.html or "")
    start = "https://public.ecocomply.test/almanac/ecocomply/unsubscribe/"
    what = LINKS.read(link.removeprefix(start), TODAY)
    # A year from the sending, whatever as_of narrows.
    assert what == (ana, "EVIDENCE_REMINDER", "EMAIL", datetime.now(UTC).date() + timedelta(days=365))
    for _ in range(2):
        with world.rows.run().transaction() as tx:
            assert unsubscribe(tx, what)
    notify(world.rows.run(), [world.rows.notice(named=[ana])])
    world.perform()
    assert len(world.mail.delivered) == 1
    standing = sorted((row.channel, row.status) for row in world.rows.all("notifications"))
    assert standing == [
        ("EMAIL", "CANCELLED"),
        ("EMAIL", "SENT"),
        ("IN_APP", "DELIVERED"),
        ("IN_APP", "DELIVERED"),
    ]
    with world.rows.run().transaction() as tx:
        assert not unsubscribe(tx, what._replace(user_id=uuid4()))


def test_a_link_is_ours_or_nothing() -> None:
    """A token that was changed, made with another key, or is too old, does nothing."""
    link = LINKS.url("https://x.test", UUID(int=1), "BREACH", TODAY).removeprefix(
        "https://x.test/unsubscribe/"
    )
    assert LINKS.read(link, TODAY + timedelta(365)).user_id == UUID(int=1)
    with pytest.raises(BadInput, match="expired"):
        LINKS.read(link, TODAY + timedelta(366))
    changed = link[:-1] + ("A" if link[-1] != "A" else "B")
    for token in (changed, link[:43], "", "é", "=", "x" * 3):
        with pytest.raises(BadInput, match="not one of ours"):
            LINKS.read(token, TODAY)
    with pytest.raises(BadInput, match="not one of ours"):
        UnsubscribeLinks(b"o" * 32).read(link, TODAY)
    with pytest.raises(BadInput, match="31 bytes"):
        UnsubscribeLinks(b"k" * 31)
    assert "k" * 32 not in repr(LINKS)


def test_without_a_provider_messages_go_to_the_outbox(world: World) -> None:
    """Nothing leaves the machine until somebody sets a provider, and nothing is lost to view."""
    ana = world.rows.user("ana", phone="+44 7700")
    world.rows.add("push_subscriptions", user_id=ana, endpoint="https://push.test/1", p256dh="p", auth="a")
    for channel in ("SMS", "PUSH"):
        world.rows.notification(ana, channel=channel)
    outside = world.outside._replace(texts=TextsToOutbox(world.mail), pushes=PushesToOutbox(world.mail))
    world.rows.perform(job, outside)
    assert [(mail.to, mail.subject) for mail in world.mail.delivered] == [
        ("447700@sms.invalid", "SMS"), ("device@push.invalid", "Evidence Required"),
    ]  # fmt: skip


def seed(world: World) -> None:
    """Make one of everything that a delivery run does."""
    ana, bea = world.rows.user("ana", phone="+1"), world.rows.user("bea", phone="+2")
    world.rows.add("push_subscriptions", user_id=ana, endpoint="https://push.test/1", p256dh="p", auth="a")
    world.rows.add("push_subscriptions", user_id=ana, endpoint="https://push.test/2", p256dh="p", auth="a")
    for user, frequency, enabled in ((ana, "DAILY_DIGEST", True), (bea, "IMMEDIATE", False)):
        world.rows.add(
            "notification_preferences", user_id=user, notification_type="BREACH", is_enabled=enabled,
            frequency_preference=frequency,
        )  # fmt: skip
    for n, (user, channel, values) in enumerate(
        [
            (ana, "EMAIL", {}), (bea, "EMAIL", {"recipient_email": "bea@ecocomply.test"}), (ana, "EMAIL", {}),
            (ana, "EMAIL", {"notification_type": "BREACH"}), (bea, "EMAIL", {"notification_type": "BREACH"}),
            (ana, "SMS", {"recipient_phone": "+1"}), (bea, "SMS", {"recipient_phone": "+2", "retry_count": 2}),
            (ana, "PUSH", {}), (bea, "PUSH", {}), (ana, "IN_APP", {}),
        ]
    ):  # fmt: skip
        given = {"subject": f"S{n}", "id": UUID(int=n + 1)} | values
        world.rows.notification(user, channel=channel, **given)
    world.mail.refuse.add("bea@ecocomply.test")
    world.texts.refuse.add("+2")
    world.pushes.gone.add("https://push.test/2")


def state(world: World) -> Any:
    """Return what the world and the database have come to."""
    rows = sorted(
        (row.subject, row.channel, row.status, row.retry_count, row.status_reason, row.outcome_unknown)
        for row in world.rows.all("notifications")
    )
    mails = sorted((mail.to, mail.subject) for mail in world.mail.delivered)
    gone = sorted(row.endpoint for row in world.rows.all("push_subscriptions") if row.gone_at)
    pushed = sorted(push.title for push in world.pushes.sent.values())
    return rows, mails, sorted(world.texts.sent), pushed, gone


def test_killed_anywhere_it_tells_everybody_once(world: World, record_property: Any) -> None:
    """E1, ruling 3: killed at every statement, commit and call and run again, it ends as one clean run."""

    def anew() -> World:
        for table in ("companies", "email_batches", "delivery_pauses"):
            world.rows.run_sql(f"DELETE FROM {table}")
        made = World(Rows(world.rows.database))
        seed(made)
        return made

    def killed(one: World, die_at: int) -> list[str]:
        told = (one.mail, one.texts, one.pushes, one.alerts)
        return killed_at(one.rows.database.engine, one.perform, told, die_at)

    one = anew()
    happened = killed(one, 0)
    clean = state(one)
    assert len(happened) > 60
    assert len(one.mail.delivered) == 2
    for die_at in range(1, len(happened) + 1):
        one = anew()
        died = killed(one, die_at)
        one.perform()
        assert state(one) == clean, f"run again after event {die_at}: {died[-1]}"
    record_property("crash points", f"notification delivery: {len(happened)}, each run again")


def test_a_preview_tells_nobody(world: World) -> None:
    """Ruling 9: every message is listed, and none leaves."""
    seed(world)
    before = state(world)
    rows = world.rows

    def make_run(db: Any) -> Run:
        run = rows.run(job=job.NAME)
        run.db = db
        return run

    shown = preview(rows.database.engine, job, make_run, world.outside)
    assert shown["messages"]["count"] == 6
    assert state(world) == before


def test_the_database_says_that_something_waits(world: World) -> None:
    """18.4: event-driven, also by what an application inserts; a rerun that adds nothing wakes nobody."""
    engine = world.rows.database.engine
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    ana = world.rows.user("ana")
    with psycopg.connect(url, autocommit=True) as listener:
        listener.execute(sql.SQL("LISTEN {}").format(sql.Identifier(job.CHANNEL)))
        notice = world.rows.notice(named=[ana])
        for _ in range(2):
            notify(world.rows.run(), [notice])
        world.rows.notification(ana)
        world.rows.notification(ana, status="SENT")
        assert len(list(listener.notifies(timeout=0.5))) == 2


def test_an_applications_own_types_will_do(world: World) -> None:
    """Ruling 15: statuses, channels and priorities may be enum types."""
    for column, words in (
        ("channel", ("EMAIL", "SMS", "IN_APP", "PUSH")), ("priority", ("LOW", "NORMAL", "HIGH", "CRITICAL", "URGENT")),
        ("escalation_state", ("PENDING", "ESCALATED_LEVEL_1")),
        ("status", ("PENDING", "QUEUED", "SENDING", "SENT", "DELIVERED", "FAILED", "RETRYING", "CANCELLED")),
        ("delivery_status", ("PENDING", "SENT", "DELIVERED", "FAILED")),
    ):  # fmt: skip
        world.rows.run_sql(_AS_ENUM.format(column=column, words=", ".join(f"'{word}'" for word in words)))
    world.rows.run_sql(_TRIGGERS_ANEW)
    ana = world.rows.user("ana")
    world.mail.refuse.add("bea@ecocomply.test")
    bea = world.rows.user("bea")
    notify(world.rows.run(), [world.rows.notice(named=[ana, bea], priority="NORMAL", channels=["EMAIL"])])
    for _ in range(3):
        world.perform()
        world.later()
    standing = sorted((row.channel, row.status) for row in world.rows.all("notifications"))
    assert standing == [("EMAIL", "FAILED"), ("EMAIL", "SENT"), ("IN_APP", "DELIVERED")]


_AS_ENUM = """
DO $enum$
DECLARE
    found record;
BEGIN
    CREATE TYPE own_{column} AS ENUM ({words});
    FOR found IN SELECT conname FROM pg_constraint WHERE conrelid = 'notifications'\\:\\:regclass AND contype = 'c' LOOP
        EXECUTE format('ALTER TABLE notifications DROP CONSTRAINT %I', found.conname);
    END LOOP;
    FOR found IN SELECT indexname FROM pg_indexes WHERE tablename = 'notifications' AND indexdef LIKE '%WHERE%' LOOP
        EXECUTE format('DROP INDEX %I', found.indexname);
    END LOOP;
    FOR found IN
        SELECT tgname FROM pg_trigger
        WHERE tgrelid = 'notifications'\\:\\:regclass AND tgname IN ('notifications_ranked', 'notifications_copied')
    LOOP
        EXECUTE format('DROP TRIGGER %I ON notifications', found.tgname);
    END LOOP;
    ALTER TABLE notifications ALTER COLUMN {column} DROP DEFAULT;
    ALTER TABLE notifications ALTER COLUMN {column} TYPE own_{column} USING {column}\\:\\:own_{column};
    IF '{column}' IN ('status', 'priority') THEN
        EXECUTE 'ALTER TABLE notifications ALTER COLUMN {column} SET DEFAULT ' ||
            CASE WHEN '{column}' = 'status' THEN '''PENDING''' ELSE '''NORMAL''' END;
    END IF;
END
$enum$
"""

_TRIGGERS_ANEW = """
CREATE TRIGGER notifications_ranked BEFORE INSERT OR UPDATE OF priority ON notifications
FOR EACH ROW EXECUTE FUNCTION notifications_ranked();
CREATE TRIGGER notifications_copied AFTER UPDATE OF status ON notifications FOR EACH ROW
WHEN (NEW.status = 'FAILED' AND OLD.status IS DISTINCT FROM NEW.status AND NEW.channel <> 'IN_APP')
EXECUTE FUNCTION notifications_copied()
"""
