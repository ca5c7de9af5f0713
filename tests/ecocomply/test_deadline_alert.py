"""Warnings before a deadline: each mark told of once, to who looks after it, and statuses by the day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import deadline_alert
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL: dict[str, Any] = {"company_id": None, "site_id": None, "trigger_source": None}
DAY = timedelta(days=1)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site and its manager, who has a phone."""
    made = Rows(database_of("ecocomply"))
    made.user("manager", "MANAGER", sites=[made.site], phone="+447700900123")
    return made


def deadline(rows: Rows, days: int, status: str = "PENDING", /, **obligation: Any) -> UUID:
    """Add an obligation with a deadline in so many days; return the deadline."""
    given = {"company_id": rows.company, "site_id": rows.site, "summary": "Stack test"}
    key = rows.add("obligations", **(given | obligation))
    return rows.add("deadlines", obligation_id=key, due_date=TODAY + days * DAY, status=status)


def perform(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(deadline_alert, NothingOutside(), as_of, **(ALL | params))


def told(rows: Rows) -> list[tuple[str, str, str]]:
    """Return type, priority and channel of all notifications, sorted."""
    return sorted((row.notification_type, row.priority, row.channel) for row in rows.all("notifications"))


def statuses(rows: Rows) -> list[str]:
    """Return the deadlines' statuses by due date."""
    return [row.status for row in rows.all("deadlines", "due_date")]


@pytest.mark.parametrize(
    ("days", "kind", "priority", "words"),
    [
        (8, None, None, None),
        (7, "DEADLINE_WARNING_7D", "NORMAL", "in 7 days"),
        (4, "DEADLINE_WARNING_7D", "NORMAL", "in 4 days"),
        (3, "DEADLINE_WARNING_3D", "HIGH", "in 3 days"),
        (2, "DEADLINE_WARNING_3D", "HIGH", "in 2 days"),
        (1, "DEADLINE_WARNING_1D", "URGENT", "tomorrow"),
        (0, "DEADLINE_ALERT", "URGENT", "today"),
        (-1, None, None, None),
    ],
)
def test_marks(rows: Rows, days: int, kind: str | None, priority: str, words: str) -> None:
    """Crossing: the most urgent mark goes out, in words of the real distance, by the channels of its priority."""
    key = deadline(rows, days)
    perform(rows)
    channels = ["EMAIL", "IN_APP", *(["SMS"] if priority == "URGENT" else [])]
    assert told(rows) == ([(kind, priority, channel) for channel in channels] if kind else [])
    for row in rows.all("notifications"):
        assert row.subject == f"Due {words}: Stack test"
        assert (row.entity_type, row.entity_id) == ("deadline", key)
        assert row.metadata == {"days_remaining": days}
    before = rows.all("notifications", "id")
    run = perform(rows)
    assert rows.all("notifications", "id") == before
    assert not run.counts["processed"]


def test_day_by_day_each_mark_once(rows: Rows) -> None:
    """Run every hour from the eighth day to the day after: four warnings, and after it another job's message."""
    deadline(rows, 8)
    for hours in range(0, 24 * 10, 8):
        perform(rows, AS_OF + timedelta(hours=hours))
    mails = [row.subject for row in rows.all("notifications", "created_at") if row.channel == "EMAIL"]
    assert mails == [f"Due {when}: Stack test" for when in ("in 7 days", "in 3 days", "tomorrow", "today")]


def test_missed_marks_are_not_sent_late(rows: Rows) -> None:
    """Ruling 4: after days without a run the most urgent mark that was crossed goes out, and no milder one."""
    deadline(rows, 7)
    perform(rows, AS_OF + 6 * DAY)
    assert {row.notification_type for row in rows.all("notifications")} == {"DEADLINE_WARNING_1D"}


def test_a_moved_deadline_is_warned_of_anew(rows: Rows) -> None:
    """The key holds the due date."""
    key = deadline(rows, 7)
    perform(rows)
    rows.change("deadlines", key, due_date=TODAY + 6 * DAY)
    perform(rows)
    assert {row.subject for row in rows.all("notifications")} == {
        "Due in 7 days: Stack test",
        "Due in 6 days: Stack test",
    }


def test_an_overdue_deadline_that_is_moved_is_warned_of_as_any(rows: Rows) -> None:
    """The date decides, not the status: all four marks of the new date, though statuses follow only afterwards."""
    key = deadline(rows, -2, "OVERDUE")
    rows.change("deadlines", key, due_date=TODAY + 7 * DAY)
    for days in range(9):
        perform(rows, AS_OF + days * DAY)
    mails = [row.subject for row in rows.all("notifications", "created_at") if row.channel == "EMAIL"]
    assert mails == [f"Due {when}: Stack test" for when in ("in 7 days", "in 3 days", "tomorrow", "today")]


def test_an_older_day_tells_of_no_milder_mark(rows: Rows) -> None:
    """After “tomorrow” nobody hears “in 7 days” of the same date, whoever is assigned by then."""
    key = deadline(rows, 1)
    perform(rows)
    before = rows.all("notifications", "id")
    (obligation,) = (row.obligation_id for row in rows.all("deadlines") if row.id == key)
    rows.change("obligations", obligation, assigned_to=rows.user("bea", "STAFF"))
    for days in (1, 2, 6):
        perform(rows, AS_OF - days * DAY)
    assert rows.all("notifications", "id") == before


def test_an_older_day_leaves_what_was_found_to_have_passed(rows: Rows) -> None:
    """A breach that was told of stays overdue, and is not warned of; moved past the find, it is."""
    key = deadline(rows, -1, "OVERDUE")
    rows.change("deadlines", key, breach_notification_sent=True, breach_detected_at=AS_OF)
    perform(rows, AS_OF - 2 * DAY)
    assert statuses(rows) == ["OVERDUE"]
    assert not rows.all("notifications")
    rows.change("deadlines", key, due_date=TODAY)
    perform(rows)
    assert statuses(rows) == ["DUE_SOON"]
    assert {row.subject for row in rows.all("notifications")} == {"Due today: Stack test"}


def test_the_assignee_else_the_site(rows: Rows) -> None:
    """Who is assigned is told; if they have left, or nobody is, the site's managers are; a new assignee is too."""
    ana, gone = rows.user("ana", "STAFF"), rows.user("gone", "STAFF", is_active=False)
    key = deadline(rows, 7, summary="One", assigned_to=ana)
    deadline(rows, 7, summary="Two", assigned_to=gone)
    deadline(rows, 7, summary="Three")
    expected = {("One", "ana"), ("Two", "manager"), ("Three", "manager")}

    def heard() -> set[tuple[str, str]]:
        found = [row for row in rows.all("notifications") if row.channel == "EMAIL"]
        return {(row.subject.rpartition(" ")[2], row.recipient_email.partition("@")[0]) for row in found}

    perform(rows)
    assert heard() == expected
    (obligation,) = (row.obligation_id for row in rows.all("deadlines") if row.id == key)
    rows.change("obligations", obligation, assigned_to=rows.user("bea", "STAFF"))
    perform(rows)
    assert heard() == expected | {("One", "bea")}


def test_two_managers_and_nobody(rows: Rows) -> None:
    """Everybody of the group is told, each once; a company without anybody is a warning and a count."""
    rows.user("second", "MANAGER", sites=[rows.site])
    company = rows.add("companies", name="Empty")
    site = rows.add("sites", company_id=company, name="Nowhere")
    deadline(rows, 7)
    deadline(rows, 7, company_id=company, site_id=site)
    run = perform(rows)
    assert run.counts["without_recipient"] == 1
    assert {row.recipient_email for row in rows.all("notifications")} == {
        "manager@ecocomply.test",
        "second@ecocomply.test",
    }


def test_without_a_phone_the_sms_is_a_counted_skip(rows: Rows) -> None:
    """URGENT goes by SMS as well, where there is a number."""
    deadline(rows, 1, assigned_to=rows.user("ana"))
    run = perform(rows)
    assert run.counts["without_phone"] == 1
    assert {row.channel for row in rows.all("notifications")} == {"EMAIL", "IN_APP"}


@pytest.mark.parametrize(
    ("status", "obligation"),
    [
        ("COMPLETED", {}),
        ("NOT_APPLICABLE", {}),
        ("PENDING", {"deleted_at": AS_OF}),
        ("PENDING", {"status": "NOT_APPLICABLE"}),
        ("PENDING", {"status": "COMPLETED", "frequency": "ONE_TIME"}),
    ],
)
def test_what_nobody_waits_for(rows: Rows, status: str, obligation: dict[str, Any]) -> None:
    """What is done, gone or does not apply is warned of by no one."""
    deadline(rows, 1, status, **obligation)
    perform(rows)
    assert not rows.all("notifications")


@pytest.mark.parametrize(
    ("days", "before", "after"),
    [
        (4, "PENDING", "PENDING"),
        (3, "PENDING", "DUE_SOON"),
        (0, "PENDING", "DUE_SOON"),
        (0, "DUE_SOON", "DUE_SOON"),
        (-1, "PENDING", "OVERDUE"),
        (-1, "DUE_SOON", "OVERDUE"),
        (-1, "COMPLETED", "COMPLETED"),
        (-1, "NOT_APPLICABLE", "NOT_APPLICABLE"),
        (4, "DUE_SOON", "PENDING"),
        (4, "OVERDUE", "PENDING"),
        (3, "OVERDUE", "DUE_SOON"),
        (0, "OVERDUE", "DUE_SOON"),
        (-1, "OVERDUE", "OVERDUE"),
        (4, "COMPLETED", "COMPLETED"),
        (4, "NOT_APPLICABLE", "NOT_APPLICABLE"),
    ],
)
def test_status(rows: Rows, days: int, before: str, after: str) -> None:
    """Three days before it is due soon, as on the day itself; overdue is from the day after; moved, it goes back."""
    deadline(rows, days, before)
    run = perform(rows)
    assert statuses(rows) == [after]
    assert run.counts["due_soon"] == (after == "DUE_SOON" != before)
    assert run.counts["overdue"] == (after == "OVERDUE" != before)
    assert run.counts["pending"] == (after == "PENDING" != before)
    before_rows = rows.all("deadlines")
    perform(rows)
    assert rows.all("deadlines") == before_rows


@pytest.mark.parametrize("param", ["company_id", "site_id"])
def test_a_param_narrows_it(rows: Rows, param: str) -> None:
    """Nobody of another company or site hears of it, and their statuses stay."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    rows.user("stranger", "OWNER", company=company)
    deadline(rows, 1)
    deadline(rows, 2, company_id=company, site_id=site)
    narrowed: dict[str, Any] = {param: str({"company_id": company, "site_id": site}[param])}
    perform(rows, **narrowed)
    assert {row.recipient_email for row in rows.all("notifications")} == {"stranger@ecocomply.test"}
    assert statuses(rows) == ["PENDING", "DUE_SOON"]


def test_a_notice_that_cant_be_written_stands_alone(rows: Rows) -> None:
    """Ruling 6: the others are warned of."""
    keys = [deadline(rows, 7) for _ in range(3)]
    rows.run_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'this row is bad' USING ERRCODE = '23514'; END $$"
    )
    rows.run_sql(
        f"CREATE TRIGGER refuse BEFORE INSERT ON notifications FOR EACH ROW WHEN (NEW.entity_id = '{keys[1]}') "
        "EXECUTE FUNCTION refuse()"
    )
    run = perform(rows)
    assert run.counts["failed"] == 1
    assert {row.entity_id for row in rows.all("notifications")} == {keys[0], keys[2]}
