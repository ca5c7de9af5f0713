"""Due tasks become notifications, each once; what can't become one says why, and the others go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from include.errors import BadInput
from include.job import perform
from include.leadmetrics import scheduled_tasks, tables
from include.leadmetrics.configuration import Configuration
from include.leadmetrics.notifications import Notification
from include.leadmetrics.task_types import AlertPayload, alert
from include.mail import Deferred
from tests.leadmetrics.rows import ALERT, EARLY, LATE, MINUTE, Rows

HOUR = timedelta(hours=1)


def dedupe_keys(rows: Rows) -> list[str]:
    """Return the keys of all notifications."""
    return [row.dedupe_key for row in rows.outbox()]


@pytest.mark.parametrize(
    ("stage", "reminded"),
    [("step_1", True), ("step_2", True), ("step_3", True), ("step_4", False), ("complete", False)],
)
def test_who_is_reminded(rows: Rows, stage: str, reminded: bool) -> None:  # noqa: FBT001 - a case
    """Whoever has come to step 4 needs no reminder: the task is skipped, which is completed."""
    task = rows.task(EARLY, rows.session(stage))
    run = rows.perform()
    assert rows.one(task).status == "completed"
    assert rows.one(task).completedAt is not None
    assert (len(rows.mail.delivered), run.counts["skipped"]) == ((1, 0) if reminded else (0, 1))


def test_a_registration_that_is_gone(rows: Rows) -> None:
    """A completed signup deletes its session: the task is skipped silently."""
    task = rows.task(LATE, "gone")
    run = rows.perform()
    assert (rows.one(task).status, rows.one(task).errorMessage) == ("completed", None)
    assert (run.counts["skipped"], run.counts["failed"], rows.outbox()) == (1, 0, [])


def test_both_reminders_of_a_session_go_out(rows: Rows) -> None:
    """Each has a slug of its own: with one for both, the early one's key would swallow the late one."""
    session = rows.session(id="abc")
    for kind in (EARLY, LATE):
        rows.task(kind, session)
        rows.perform()
    assert dedupe_keys(rows) == ["signup-reminder-early__abc", "signup-reminder-late__abc"]
    assert len({mail.subject for mail in rows.mail.delivered}) == 2


def test_the_resume_link(rows: Rows) -> None:
    """It is made of DASHBOARD_URL and the session; the session is the tenant, since there is no account yet."""
    rows.task(EARLY, rows.session(id="abc"))
    rows.perform(settings={"DASHBOARD_URL": "https://crm.example.test/app/"})
    (row,) = rows.outbox()
    assert row.data == {
        "tenantId": "abc",
        "recipient": "abc@example.test",
        "templateSlug": "signup-reminder-early",
        "dedupeKey": "signup-reminder-early__abc",
        "resumeUrl": "https://crm.example.test/app/signup?session=abc",
    }
    assert row.tenant_id == "abc"
    assert row.data["resumeUrl"] in rows.mail.delivered[0].text


def test_the_internal_alert(rows: Rows) -> None:
    """It needs no session and goes to SIGNUP_ALERT_EMAIL, once per prospective address however that is written."""
    for email in ("lead@example.test", "Lead@Example.TEST", "other@example.test"):
        rows.task(ALERT, payload={"sessionId": f"of-{email[0]}", "email": email, "companyName": "Acme"})
    run = rows.perform()
    assert dedupe_keys(rows) == [
        "signup-alert-internal__lead@example.test",
        "signup-alert-internal__other@example.test",
    ]
    assert {mail.to for mail in rows.mail.delivered} == {"sales@leadmetrics.test"}
    assert (run.counts["enqueued"], run.counts["skipped"]) == (2, 1)


@pytest.mark.parametrize(
    ("late", "reminded"), [(23 * HOUR - MINUTE, True), (23 * HOUR, False), (90 * HOUR, False)]
)
def test_a_missed_early_reminder(rows: Rows, late: timedelta, reminded: bool) -> None:  # noqa: FBT001 - a case
    """T6: the scheduler was down; once the late reminder is due too, it alone goes out."""
    session, now = rows.session(), datetime.now(UTC)
    rows.task(EARLY, session, scheduledAt=now - late)
    rows.task(LATE, session, scheduledAt=now - late + 23 * HOUR)
    rows.perform()
    slugs = {row.template_slug for row in rows.outbox()}
    assert ("signup-reminder-early" in slugs) == reminded
    assert ("signup-reminder-late" in slugs) == (not reminded)


@pytest.mark.parametrize(
    ("kind", "payload", "reason"),
    [
        ("signup.reminder.weekly", {}, "unknown task type 'signup.reminder.weekly'; known are "),
        (EARLY, {}, "payload of signup.reminder.early: Object missing required field `sessionId`"),
        (EARLY, [], "payload of signup.reminder.early: Expected `object`, got `array`"),
        (EARLY, {"sessionId": "s\n"}, "payload of signup.reminder.early: Expected `str` matching regex"),
        (EARLY, {"sessionId": 7}, "payload of signup.reminder.early: Expected `str`, got `int`"),
        (EARLY, {"sessionId": "a:b"}, "payload of signup.reminder.early: Expected `str` matching regex"),
        (
            ALERT,
            {"sessionId": "s"},
            "payload of signup.alert.internal: Object missing required field `email`",
        ),
        (
            ALERT,
            {"sessionId": "s", "email": "x"},
            "payload of signup.alert.internal: email is no e-mail address",
        ),
    ],
)
def test_a_task_that_can_not_be_done(rows: Rows, kind: str, payload: Any, reason: str) -> None:
    """It fails with a clear reason and stays failed; the others flow."""
    good = rows.task()
    bad = rows.task(kind, payload=payload)
    for _ in range(2):
        rows.perform()
    row = rows.one(bad)
    assert row.status == "failed"
    assert row.errorMessage.startswith(reason)
    assert (row.attempts, row.completedAt) == (1, None)
    assert rows.one(good).status == "completed"
    assert len(rows.mail.delivered) == 1


@pytest.mark.parametrize("email", [None, "", "nobody", "a b@example.test", "a@b\nBcc: c@example.test"])
def test_a_session_without_an_address(rows: Rows, email: str | None) -> None:
    """What is no address is not handed on to a worker or a provider."""
    task = rows.task(EARLY, rows.session(email=email))
    rows.perform()
    assert rows.one(task).status == "failed"
    assert rows.one(task).errorMessage.startswith("the session's email is ")
    assert rows.outbox() == []


def test_only_what_is_due(rows: Rows) -> None:
    """A reminder waits for its hour, and an explicit as-of only narrows."""
    due, later = rows.task(), rows.task(scheduledAt=datetime.now(UTC) + MINUTE)
    assert rows.perform(as_of=datetime.now(UTC) - HOUR).counts["processed"] == 0
    assert rows.perform(as_of=datetime.now(UTC) + HOUR).counts["processed"] == 1
    assert (rows.one(due).status, rows.one(later).status) == ("completed", "pending")


def test_a_run_drains(rows: Rows) -> None:
    """max_tasks is a chunk, not a cap: later rows would starve."""
    for _ in range(7):
        rows.task()
    run = rows.perform(max_tasks=2)
    assert run.counts["processed"] == 7
    assert len(rows.mail.delivered) == 7


def test_nothing_is_due(rows: Rows) -> None:
    """R1: the run succeeds with nothing processed."""
    run = rows.perform()
    assert (run.state, run.counts["processed"]) == ("success", 0)


def test_a_lost_claim_is_no_failure(rows: Rows) -> None:
    """R8: due again at once, at most three claims, then failed; a claim that beats is left alone."""
    old: dict[str, Any] = {"heartbeat_at": datetime.now(UTC) - HOUR, "claimed_by": "gone"}
    again, ended = (
        rows.task(moves=["running"], attempts=attempts, updatedAt=datetime.now(UTC) - HOUR, **old)
        for attempts in (2, 3)
    )
    alive = rows.task(moves=["running"], attempts=1, claimed_by="me", heartbeat_at=datetime.now(UTC))
    rows.perform()
    row = rows.one(again)
    assert (row.status, row.attempts, row.errorMessage) == ("completed", 3, None)
    assert (rows.one(ended).status, rows.one(ended).attempts) == ("failed", 3)
    assert rows.one(ended).errorMessage == "the worker has not been heard of"
    assert rows.one(alive).status == "running"


def test_a_claim_of_the_applications_own_scheduler(rows: Rows) -> None:
    """It knows no heartbeats: its claim counts from the row's last change, and is not taken from under it."""
    fresh = rows.task(moves=["running"], attempts=1)
    stale = rows.task(moves=["running"], attempts=1)
    rows.execute(
        """UPDATE scheduled_task SET "updatedAt" = now() - interval '1 hour' WHERE id = :id""", id=stale
    )
    # By hand, as the specification writes it: no word of updatedAt, which is as old as the task.
    by_hand = rows.task(createdAt=datetime.now(UTC) - HOUR, updatedAt=datetime.now(UTC) - HOUR)
    rows.execute("UPDATE scheduled_task SET status = 'running', attempts = 1 WHERE id = :id", id=by_hand)
    rows.perform()
    found = [rows.one(task).status for task in (fresh, stale, by_hand)]
    assert found == ["running", "completed", "running"]


def test_a_repeat_is_a_new_row(rows: Rows) -> None:
    """People may do nothing to a task; a new one finds its notification known, and is skipped."""
    assert not tables.TASK_QUEUE.people_may
    session = rows.session()
    rows.task(EARLY, session)
    rows.perform()
    again = rows.task(EARLY, session)
    run = rows.perform()
    assert (rows.one(again).status, run.counts["skipped"]) == ("completed", 1)
    assert len(rows.mail.delivered) == 1


def test_the_outbox_is_unique_for_ever(rows: Rows) -> None:
    """BullMQ forgets; the table does not, also after the notification is long out."""
    rows.notification(session=rows.session(id="abc"), status="sent")
    with pytest.raises(Exception, match="uq_notification_outbox_dedupe_key"):
        rows.notification(session="abc")


def test_a_registration_that_goes_on_meanwhile(rows: Rows) -> None:
    """The stage is looked at again in the statement that enqueues: the world moves between look and change."""
    session = rows.session(id="abc")
    rows.task(EARLY, session)
    rows.execute(
        "CREATE FUNCTION goes_on() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "UPDATE registration_session SET \"currentStage\" = 'step_4'; RETURN NULL; END $$"
    )
    rows.execute(
        "CREATE TRIGGER goes_on AFTER UPDATE ON scheduled_task FOR EACH ROW "
        "WHEN (NEW.status = 'completed') EXECUTE FUNCTION goes_on()"
    )
    run = rows.perform()
    assert (run.counts["skipped"], rows.outbox()) == (1, [])


def test_a_reminder_that_waits_is_overtaken(rows: Rows) -> None:
    """While the provider was out of reach the signup went on: the reminder is called off, the alert is not."""
    rows.mail.down = Deferred("503", certain=True)
    session = rows.session()
    for kind in (EARLY, ALERT):
        rows.task(kind, session)
    assert rows.perform().state == "deferred"
    assert {row.status for row in rows.outbox()} == {"pending"}
    rows.execute("DELETE FROM registration_session")
    rows.mail.down = None
    rows.perform()
    assert {row.template_slug: row.status for row in rows.outbox()} == {
        "signup-reminder-early": "cancelled",
        "signup-alert-internal": "sent",
    }


def test_two_reminders_after_an_outage(rows: Rows) -> None:
    """T6: where both have come to wait, the late one alone goes out; two at once is one too many."""
    rows.mail.down = Deferred("503", certain=True)
    session = rows.session(id="abc")
    cancelled = []
    for kind in (EARLY, LATE):
        rows.task(kind, session)
        cancelled.append(rows.perform().counts["cancelled"])
    rows.mail.down = None
    rows.perform()
    assert [mail.subject for mail in rows.mail.delivered] == ["Shall we keep your LeadMetrics registration?"]
    assert cancelled == [0, 1]
    early, late = rows.outbox()
    assert (early.status, early.error, late.status) == (
        "cancelled",
        "the late reminder takes its place",
        "sent",
    )


@pytest.mark.parametrize(
    ("kind", "planned"), [(EARLY, "-infinity"), (EARLY, "0044-03-15 BC"), (ALERT, "-infinity")]
)
def test_an_instant_that_python_can_not_hold(rows: Rows, kind: str, planned: str) -> None:
    """A hostile date is long past, and no other task waits for it."""
    odd = rows.task(kind, rows.session(id="odd"))
    rows.execute(
        'UPDATE scheduled_task SET "scheduledAt" = CAST(:at AS timestamptz) WHERE id = :id',
        at=planned,
        id=odd,
    )
    good = rows.task(EARLY)
    rows.perform()
    assert (rows.one(odd).status, rows.one(good).status) == ("completed", "completed")
    assert len(rows.mail.delivered) == (1 if kind == EARLY else 2)


def test_a_slip_of_ours_costs_one_row(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no check foresaw fails the task that it is about, with its name; the others are done."""
    bad, good = rows.task(ALERT, rows.session(id="bad")), rows.task(ALERT, rows.session(id="good"))

    def slips(payload: AlertPayload, settings: Configuration) -> Notification:
        if payload.session_id == "bad":
            raise KeyError("what nobody thought of")
        return alert(payload, settings)

    monkeypatch.setattr(scheduled_tasks, "alert", slips)
    rows.perform()
    assert (rows.one(bad).status, rows.one(good).status) == ("failed", "completed")
    assert "KeyError" in rows.one(bad).errorMessage


def test_an_empty_chunk_is_the_default(rows: Rows) -> None:
    """The form may leave max_tasks empty."""
    rows.task(EARLY)
    run = rows.run()
    run.params = {"max_tasks": None}
    perform(scheduled_tasks, run, rows.outside())
    assert run.counts["processed"] == 1


def test_wrong_settings_are_named_all_at_once(rows: Rows) -> None:
    """A person mends them in one go; until then nothing is claimed."""
    task = rows.task()
    with pytest.raises(BadInput) as raised:
        rows.perform(settings={"DASHBOARD_URL": "ftp://x", "SIGNUP_ALERT_EMAIL": "nobody"})
    message = str(raised.value)
    assert "DASHBOARD_URL is not a plain http(s) address: 'ftp://x'" in message
    assert "SIGNUP_ALERT_EMAIL is no e-mail address" in message
    assert rows.one(task).status == "pending"


def test_what_was_past_at_adoption(rows: Rows) -> None:
    """Nobody is reminded of what was due long before the platform came; what was due just then is done."""
    now = datetime.now(UTC)
    rows.execute("INSERT INTO baseline (name, at) VALUES ('adoption', :at)", at=now - HOUR)
    history = rows.task(LATE, scheduledAt=now - timedelta(days=1, hours=1, minutes=1))
    recent = rows.task(LATE, scheduledAt=now - timedelta(hours=24))
    rows.perform()
    assert rows.one(history).status == rows.one(recent).status == "completed"
    assert [row.task_id for row in rows.outbox()] == [recent]


def test_every_change_is_in_the_audit_trail(rows: Rows) -> None:
    """What became of a task can be told long after."""
    task = rows.task()
    rows.perform()
    trail = rows.all(tables.QUEUE_AUDIT, tables.QUEUE_AUDIT.c.id)
    assert [(one.row_key, one.from_status, one.to_status) for one in trail] == [
        (task, "pending", "running"),
        (task, "running", "completed"),
    ]


@pytest.mark.parametrize(
    ("moves", "allowed"),
    [
        (["running", "completed"], True),
        (["running", "failed"], True),
        (["running", "pending"], True),
        (["completed"], False),
        (["running", "failed", "pending"], False),
        (["running", "completed", "pending"], False),
        (["cancelled"], False),
    ],
)
def test_the_guard(rows: Rows, moves: list[str], allowed: bool) -> None:  # noqa: FBT001 - a case
    """The database allows the moves that the specification's code makes, and no other, whoever asks."""
    if allowed:
        rows.task(moves=moves)
        return
    with pytest.raises(Exception, match="can't go from"):
        rows.task(moves=moves)


def test_what_a_person_is_told(rows: Rows) -> None:
    """Failed tasks and notifications of unknown outcome stand in the run's notes."""
    rows.task("signup.reminder.weekly")
    rows.notification(status="unknown", sink="email")
    notes = " ".join(rows.perform().notes)
    assert "failed in the last 24 hours, of the type signup.reminder.weekly: 1" in notes
    assert "nobody knows whether they went out: 1" in notes


def test_the_job_names_what_it_reads() -> None:
    """Ruling 18: settings are Airflow Variables of the specification's names, with its defaults."""
    assert scheduled_tasks.SETTINGS == {
        "DASHBOARD_URL": "https://app.leadmetrics.ai",
        "SIGNUP_ALERT_EMAIL": "moble@leadmetrics.ai",
        "ADMIN_ALERT_EMAIL": None,
    }


def test_the_quota_pauses_the_mail(rows: Rows) -> None:
    """E3: nothing is sent before the provider wants it, and no notification is lost."""
    rows.mail.down = Deferred("429", certain=True, retry_at=datetime.now(UTC) + HOUR, quota=True)
    rows.task()
    assert rows.perform().state == "deferred"
    rows.mail.down = None
    requests = rows.mail.requests
    assert rows.perform().state == "deferred"
    assert rows.mail.requests == requests
    rows.execute("UPDATE notification_pause SET paused_until = now()")
    rows.perform()
    assert [row.status for row in rows.outbox()] == ["sent"]
    assert not rows.alerts.outages


def test_what_the_provider_refuses(rows: Rows) -> None:
    """E2: the refused one says why; the others are out."""
    refused = rows.session(email="refused@example.test")
    rows.mail.refuse = {"refused@example.test"}
    for session in (refused, rows.session(), rows.session()):
        rows.task(EARLY, session)
    run = rows.perform()
    assert (run.counts["sent"], run.counts["failed"]) == (2, 1)
    table = tables.NOTIFICATION_OUTBOX
    with rows.db.engine.begin() as connection:
        row = connection.execute(select(table).where(table.c.tenant_id == refused)).one()
    assert (row.status, row.error) == ("failed", "invalid address")
