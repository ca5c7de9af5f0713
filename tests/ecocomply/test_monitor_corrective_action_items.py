"""Items of corrective actions: who hears of them, on which days, and how urgently."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import monitor_corrective_action_items
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

DAY = timedelta(days=1)
SOON, OVERDUE = "CORRECTIVE_ACTION_DUE_SOON", "CORRECTIVE_ACTION_OVERDUE"


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with ana, who does things, a manager and an admin."""
    made = Rows(database_of("ecocomply"))
    made.user("ana", "STAFF")
    made.user("manager", "MANAGER")
    made.user("admin", "ADMIN")
    return made


def ana(rows: Rows) -> UUID:
    """Return ana's id."""
    return next(row.id for row in rows.all("users") if row.full_name == "ana")


def item(rows: Rows, days: int | None, *, action: dict[str, Any] | None = None, **values: Any) -> UUID:
    """Add an action with one item, due in so many days, ana's unless told otherwise."""
    made = {"site_id": rows.site, "company_id": rows.company, "corrective_action_name": "Spill"} | (
        action or {}
    )
    given = {
        "corrective_action_id": rows.add("corrective_actions", **made),
        "item_title": "Seal the bund",
        "due_date": None if days is None else TODAY + days * DAY,
        "assigned_to": ana(rows),
    }
    return rows.add("corrective_action_items", **(given | values))


def perform(rows: Rows, as_of: Any = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    all_of_them = {"company_id": None, "batch_size": 200}
    return rows.perform(monitor_corrective_action_items, NothingOutside(), as_of, **(all_of_them | params))


def told(rows: Rows) -> list[tuple[str, str, str]]:
    """Return who was told by mail, of what type and priority."""
    found = [row for row in rows.all("notifications") if row.channel == "EMAIL"]
    return sorted((row.recipient_email.split("@")[0], row.notification_type, row.priority) for row in found)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (4, []),
        (3, [("ana", SOON, "HIGH")]),
        (2, [("ana", SOON, "HIGH")]),
        (1, [("ana", SOON, "HIGH")]),
        (0, [("ana", SOON, "HIGH")]),
        (-1, [("ana", OVERDUE, "URGENT")]),
        (-7, [("ana", OVERDUE, "URGENT")]),
        (-8, [("admin", OVERDUE, "URGENT"), ("ana", OVERDUE, "URGENT"), ("manager", OVERDUE, "URGENT")]),
        (None, []),
    ],
)
def test_when_and_who(rows: Rows, days: int | None, expected: list[tuple[str, str, str]]) -> None:
    """The boundary days; a run that was missed at three days is made up for at two or one."""
    item(rows, days)
    run = perform(rows)
    assert told(rows) == expected
    assert run.counts["processed"] == run.counts["reminders_sent"] == bool(expected)
    assert run.counts["overdue_items"] == (days is not None and days < 0)
    assert run.counts["escalations_to_managers"] == (days is not None and days < -7)


def test_day_by_day(rows: Rows) -> None:
    """Once ahead, once on the day, then every day: eight messages from three days before to six days after."""
    item(rows, 3)
    for day in range(10):
        perform(rows, AS_OF + day * DAY)
        perform(rows, AS_OF + day * DAY)
    subjects = [
        row.subject for row in rows.all("notifications", "created_at", "id") if row.channel == "EMAIL"
    ]
    assert subjects == [
        "Corrective Action Item Due in 3 days",
        "Corrective Action Item Due today",
        *["Corrective Action Item Overdue"] * 6,
    ]


def test_a_moved_date_is_told_of_anew(rows: Rows) -> None:
    """The key holds the due date: who gets another date hears of that too."""
    key = item(rows, 0)
    perform(rows)
    rows.change("corrective_action_items", key, due_date=TODAY + 3 * DAY)
    run = perform(rows)
    assert len(told(rows)) == 2
    assert run.counts["reminders_sent"] == 1


@pytest.mark.parametrize("assigned", ["nobody", "one who has left"])
def test_without_an_assignee_the_managers_hear(rows: Rows, assigned: str) -> None:
    """An item that is nobody's would else be forgotten by all."""
    rows.user("gone", "STAFF", is_active=False)
    gone = next(row.id for row in rows.all("users") if row.full_name == "gone")
    item(rows, 0, assigned_to=None if assigned == "nobody" else gone)
    perform(rows)
    assert told(rows) == [("manager", SOON, "HIGH")]


def test_a_manager_who_is_the_assignee_is_told_once(rows: Rows) -> None:
    """Who is told for two reasons gets one message, not two."""
    manager = next(row.id for row in rows.all("users") if row.full_name == "manager")
    item(rows, -9, assigned_to=manager)
    perform(rows)
    assert told(rows) == [("admin", OVERDUE, "URGENT"), ("manager", OVERDUE, "URGENT")]


def test_nobody_at_all_is_counted(rows: Rows) -> None:
    """A company where nobody is left must not stop the others."""
    company = rows.add("companies", name="Empty")
    site = rows.add("sites", company_id=company, name="Theirs")
    item(rows, 0, action={"company_id": company, "site_id": site}, assigned_to=None)
    item(rows, 0)
    run = perform(rows)
    assert told(rows) == [("ana", SOON, "HIGH")]
    assert run.counts["without_recipient"] == 1


@pytest.mark.parametrize(
    ("values", "action"),
    [
        ({"status": "COMPLETED"}, {}),
        ({"status": "CANCELLED"}, {}),
        ({}, {"status": "CANCELLED"}),
        ({}, {"status": "CLOSED", "lifecycle_phase": "CLOSED"}),
    ],
)
def test_what_is_over_is_left_alone(rows: Rows, values: dict[str, Any], action: dict[str, Any]) -> None:
    """Nobody wants an urgent message a day of an action that was called off."""
    item(rows, -9, action=action, **values)
    assert not perform(rows).counts["processed"]
    assert not rows.all("notifications")


def test_a_second_run_tells_nobody(rows: Rows) -> None:
    """The same day again: nothing is written, and the counts say so."""
    item(rows, -8)
    perform(rows)
    before = rows.all("notifications", "id")
    run = perform(rows, AS_OF + timedelta(hours=5))
    assert rows.all("notifications", "id") == before
    assert (run.counts["reminders_sent"], run.counts["notifications"]) == (0, 0)


def test_a_company_narrows_it(rows: Rows) -> None:
    """Another company's people hear nothing."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    rows.user("theirs", "MANAGER", company=company)
    item(rows, 0)
    item(rows, 0, action={"company_id": company, "site_id": site}, assigned_to=None)
    perform(rows, company_id=str(company))
    assert told(rows) == [("theirs", SOON, "HIGH")]


def test_items_are_worked_through_in_chunks(rows: Rows) -> None:
    """Ruling 5: five items in chunks of two are five messages; a chunk is no cap."""
    for _ in range(5):
        item(rows, 0)
    assert perform(rows, batch_size=2).counts["reminders_sent"] == 5
    assert len(told(rows)) == 5


def test_a_bad_row_stands_alone(rows: Rows) -> None:
    """Postgres knows a day before all days; the item's neighbours in the chunk are told of all the same."""
    key = item(rows, 0)
    item(rows, 0)
    rows.run_sql("UPDATE corrective_action_items SET due_date = '-infinity' WHERE id = :key", key=key)
    run = perform(rows)
    assert told(rows) == [("ana", SOON, "HIGH")]
    assert (run.counts["failed"], run.counts["processed"]) == (2, 1)


def test_the_words(rows: Rows) -> None:
    """The message says what is due and when, and leads to it."""
    key = item(rows, -2)
    perform(rows)
    (row,) = (row for row in rows.all("notifications") if row.channel == "IN_APP")
    (due,) = rows.all("corrective_action_items")
    assert row.body_text == (
        "“Seal the bund” of the corrective action “Spill” was due 2 days ago, on 23 November 2026."
    )
    assert row.action_url.endswith(f"/corrective-actions/{due.corrective_action_id}/items/{key}")
    assert (row.entity_type, row.entity_id) == ("corrective_action_item", key)
