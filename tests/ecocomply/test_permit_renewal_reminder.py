"""Renewal reminders: each mark once for an expiry date, the nearer the more people."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import permit_renewal_reminder
from include.ecocomply.generator import generate
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL = {"company_id": None, "site_id": None, "reminder_days": [90, 30, 7]}
DAY = timedelta(days=1)
TOP = {"owner", "admin"}


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with people of whom some are at the site, and some elsewhere."""
    made = Rows(database_of("ecocomply"))
    elsewhere = made.add("sites", company_id=made.company, name="York")
    for name, role, site in (
        ("owner", "OWNER", None),
        ("admin", "ADMIN", None),
        ("staff", "STAFF", made.site),
        ("away", "STAFF", elsewhere),
        ("manager", "MANAGER", made.site),
        ("distant", "MANAGER", elsewhere),
    ):
        made.user(name, role, sites=[site] if site else [])
    return made


def document(rows: Rows, days: int, **values: Any) -> UUID:
    """Add a document that expires in so many days."""
    given = {
        "site_id": rows.site, "title": "Permit A", "document_type": "PERMIT", "permit_number": "EPR/1",
        "expiry_date": TODAY + days * DAY,
    }  # fmt: skip
    return rows.add("documents", **(given | values))


def perform(rows: Rows, as_of: Any = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(permit_renewal_reminder, NothingOutside(), as_of, **(ALL | params))


def told(rows: Rows) -> set[str]:
    """Return who was told."""
    return {row.recipient_email.split("@")[0] for row in rows.all("notifications")}


def marks(rows: Rows) -> list[int]:
    """Return which marks people were reminded at."""
    return sorted({row.metadata["reminder_days"] for row in rows.all("notifications")}, reverse=True)


@pytest.mark.parametrize(
    ("days", "mark", "priority", "whom"),
    [
        (91, None, None, set()),
        (90, 90, "NORMAL", TOP),
        (31, 90, "NORMAL", TOP),
        (30, 30, "HIGH", {*TOP, "staff"}),
        (8, 30, "HIGH", {*TOP, "staff"}),
        (7, 7, "URGENT", {*TOP, "staff", "manager"}),
        (0, 7, "URGENT", {*TOP, "staff", "manager"}),
        (-1, None, None, set()),
    ],
)
def test_the_marks(rows: Rows, days: int, mark: int | None, priority: str | None, whom: set[str]) -> None:
    """Of the marks that are crossed the most urgent, to those of the milder too; not after it has expired."""
    document(rows, days)
    run = perform(rows)
    assert marks(rows) == ([mark] if mark is not None else [])
    assert told(rows) == whom
    assert {row.priority for row in rows.all("notifications")} == ({priority} if priority else set())
    assert run.counts["reminders"] == run.counts["processed"] == (mark is not None)


def test_each_mark_once(rows: Rows) -> None:
    """Day by day three times; a milder one that is run late is not sent any more."""
    document(rows, 91)
    made = [perform(rows, AS_OF + n * DAY).counts["reminders"] for n in (0, 1, 2, 60, 61, 62, 84, 85, 91, 92)]
    assert made == [0, 1, 0, 0, 1, 0, 1, 0, 0, 0]
    assert marks(rows) == [90, 30, 7]


def test_a_milder_mark_is_not_told_late(rows: Rows) -> None:
    """After the day at 7 a day that is made up for, at 30, tells nobody."""
    document(rows, 7)
    perform(rows)
    perform(rows, AS_OF - 10 * DAY)
    assert marks(rows) == [7]


def test_a_moved_expiry_date_is_reminded_of_anew(rows: Rows) -> None:
    """The key holds the date: whoever moves it, the marks begin again."""
    key = document(rows, 7)
    perform(rows)
    rows.change("documents", key, expiry_date=TODAY + 6 * DAY)
    perform(rows)
    assert {row.subject for row in rows.all("notifications")} == {
        "Expires in 7 days: Permit A Renewal",
        "Expires in 6 days: Permit A Renewal",
    }


@pytest.mark.parametrize(
    ("given", "days", "mark", "whom"),
    [
        ([60], 60, 60, TOP),
        ([60], 61, None, set()),
        ([14], 14, 14, {*TOP, "staff"}),
        ([5, 1], 3, 5, {*TOP, "staff", "manager"}),
        ([0], 0, 0, {*TOP, "staff", "manager"}),
    ],
)
def test_other_marks(rows: Rows, given: list[int], days: int, mark: int | None, whom: set[str]) -> None:
    """A mark of one's own tells whom the next farther one of the three tells."""
    document(rows, days)
    perform(rows, reminder_days=given)
    assert (marks(rows), told(rows)) == ([] if mark is None else [mark], whom)


@pytest.mark.parametrize("values", [{"status": "SUPERSEDED"}, {"deleted_at": AS_OF}, {"expiry_date": None}])
def test_what_is_not_renewed(rows: Rows, values: dict[str, Any]) -> None:
    """Only documents in force expire."""
    document(rows, 7, **values)
    assert perform(rows).counts["processed"] == 0


def test_an_application_may_have_reminded(rows: Rows) -> None:
    """Its notifications say so by the same words, and a permit is not reminded of twice."""
    key = document(rows, 7)
    rows.notification(
        rows.user("ana", "STAFF"), notification_type="DEADLINE_ALERT", entity_type="document", entity_id=key,
        metadata={"reminder_type": "PERMIT_RENEWAL", "reminder_days": 7},
    )  # fmt: skip
    assert perform(rows).counts["reminders"] == 0


def test_nobody_to_tell(rows: Rows) -> None:
    """A company without people is a warning."""
    company = rows.add("companies", name="Empty")
    document(rows, 7, company_id=company, site_id=rows.add("sites", company_id=company, name="Theirs"))
    assert perform(rows).counts["without_recipient"] == 1


def test_the_record(rows: Rows) -> None:
    """A mail, with the number if the permit has one, and the link to it."""
    key = document(rows, 30)
    document(rows, 30, permit_number=None, title="Permit B")
    perform(rows)
    made = rows.all("notifications")
    assert {row.channel for row in made} == {"EMAIL"}
    assert {row.body_text for row in made} == {
        f"Your permit{number} expires in 30 days, on 25 December 2026. Please initiate the renewal process."
        for number in ("", " (EPR/1)")
    }
    found = next(row for row in made if row.entity_id == key)
    assert (found.entity_type, found.notification_type) == ("document", "PERMIT_RENEWAL_REMINDER")
    assert found.action_url.endswith(f"/documents/{key}")
    assert found.metadata == {
        "reminder_type": "PERMIT_RENEWAL", "reminder_days": 30, "expiry_date": "2026-12-25",
    }  # fmt: skip


def test_a_second_run_writes_nothing(rows: Rows) -> None:
    """The same run again leaves every row as it is."""
    for days in (3, 30, 90):
        document(rows, days)
    perform(rows)
    before = rows.all("notifications", "id")
    assert perform(rows).counts["processed"] == 0
    assert rows.all("notifications", "id") == before


@pytest.mark.parametrize("param", ["company_id", "site_id"])
def test_a_param_narrows_it(rows: Rows, param: str) -> None:
    """Documents of another company, or site, wait."""
    company = rows.add("companies", name="Other")
    rows.user("stranger", "OWNER", company=company)
    site = rows.add("sites", company_id=company, name="Theirs")
    document(rows, 60)
    theirs = document(rows, 60, company_id=company, site_id=site)
    perform(rows, **{param: str({"company_id": company, "site_id": site}[param])})
    assert {row.entity_id for row in rows.all("notifications")} == {theirs}


def test_a_bad_row_stands_alone(rows: Rows) -> None:
    """One that can't be written is counted; the others are told."""
    bad, good = document(rows, 60), document(rows, 60)
    rows.run_sql(f"ALTER TABLE notifications ADD CONSTRAINT bad CHECK (entity_id <> '{bad}')")
    run = perform(rows)
    assert {row.entity_id for row in rows.all("notifications")} == {good}
    assert (run.counts["failed"], run.counts["reminders"]) == (1, 1)


def test_the_generated_data_has_work(database_of: Callable[..., EngineDatabase]) -> None:
    """A demo in which nothing expires shows nothing."""
    made = Rows(database_of("ecocomply"))
    with made.database.engine.begin() as connection:
        generate(connection, today=date(2026, 11, 25), companies=3, obligations=90)
    assert perform(made).counts["reminders"] > 0
