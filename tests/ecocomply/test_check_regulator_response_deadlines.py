"""Regulators that have not answered: told of daily from the day after the deadline, to more people after a week."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import check_regulator_response_deadlines
from include.ecocomply.generator import generate
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from include.statements import statement
from tests.ecocomply.rows import AS_OF, TODAY, Rows

DAY = timedelta(days=1)
NOTE = "[2026-11-25] Regulator response overdue - alert sent"


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with two admins and somebody of the staff, who owns its permit."""
    made = Rows(database_of("ecocomply"))
    for name, role in (("admin", "ADMIN"), ("deputy", "ADMIN"), ("staff", "STAFF")):
        made.user(name, role)
    return made


def workflow(rows: Rows, overdue: int, *, owner: str | None = "staff", of: Any = None, **values: Any) -> UUID:
    """Add a workflow whose answer was due so many days ago."""
    users = {row.full_name: row.id for row in rows.all("users")}
    permit = {"site_id": rows.site, "title": "Permit A", "document_type": "PERMIT"}
    document = rows.add(
        "documents", **(permit | {"assigned_to": users[owner] if owner else None} | (of or {}))
    )
    given = {
        "document_id": document, "workflow_type": "RENEWAL", "status": "UNDER_REVIEW",
        "submitted_date": TODAY - 90 * DAY, "regulator_response_deadline": TODAY - overdue * DAY,
    }  # fmt: skip
    return rows.add("permit_workflows", **(given | values))


def perform(rows: Rows, as_of: datetime = AS_OF, company_id: str | None = None) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(check_regulator_response_deadlines, NothingOutside(), as_of, company_id=company_id)


def notes(rows: Rows, key: UUID) -> str | None:
    """Return a workflow's notes."""
    (found,) = (row.workflow_notes for row in rows.all("permit_workflows") if row.id == key)
    return found


def told(rows: Rows) -> list[str]:
    """Return who was told by mail, in the order of their names."""
    return sorted(
        row.recipient_email.split("@")[0] for row in rows.all("notifications") if row.channel == "EMAIL"
    )


@pytest.mark.parametrize(
    ("overdue", "priority", "whom"),
    [
        (0, None, []),
        (1, "HIGH", ["staff"]),
        (7, "HIGH", ["staff"]),
        (8, "URGENT", ["admin", "deputy", "staff"]),
        (300, "URGENT", ["admin", "deputy", "staff"]),
    ],
)
def test_how_urgent_it_is(rows: Rows, overdue: int, priority: str | None, whom: list[str]) -> None:
    """From the day after the deadline to the owner; beyond seven days urgent, and all ADMINs hear as well."""
    key = workflow(rows, overdue)
    run = perform(rows)
    assert told(rows) == whom
    assert {row.priority for row in rows.all("notifications")} == ({priority} if priority else set())
    assert notes(rows, key) == (NOTE if priority else None)
    assert (run.counts["alerts"], run.counts["escalated_to_admins"]) == (bool(priority), priority == "URGENT")


@pytest.mark.parametrize("overdue", [1, 8])
def test_without_an_owner(rows: Rows, overdue: int) -> None:
    """The ADMINs, whether it is urgent or not."""
    workflow(rows, overdue, owner=None)
    perform(rows)
    assert told(rows) == ["admin", "deputy"]


def test_nobody_to_tell(rows: Rows) -> None:
    """A company without people is a warning."""
    company = rows.add("companies", name="Empty")
    site = rows.add("sites", company_id=company, name="Theirs")
    workflow(rows, 1, owner=None, of={"company_id": company, "site_id": site})
    assert perform(rows).counts["without_recipient"] == 1


@pytest.mark.parametrize(
    "values",
    [
        {"status": "SUBMITTED"},
        {"status": "APPROVED"},
        {"status": "CANCELLED"},
        {"regulator_response_date": TODAY},
        {"regulator_response_deadline": None},
        {"of": {"deleted_at": AS_OF}},
    ],
)
def test_what_is_not_waited_for(rows: Rows, values: dict[str, Any]) -> None:
    """Answered, ended, not yet looked at, or of a permit that is gone."""
    key = workflow(rows, 9, **values)
    perform(rows)
    assert (told(rows), notes(rows, key)) == ([], None)


def test_once_a_day(rows: Rows) -> None:
    """Twice on one day is told once, however much later; the next day it is told again, below the last note."""
    key = workflow(rows, 2, workflow_notes="Called them.")
    perform(rows)
    again = perform(rows, AS_OF + timedelta(hours=9))
    assert (again.counts["alerts"], again.counts["skipped"]) == (0, 1)
    assert told(rows) == ["staff"]
    perform(rows, AS_OF + DAY)
    assert told(rows) == ["staff", "staff"]
    assert notes(rows, key) == f"Called them.\n{NOTE}\n{NOTE.replace('25', '26')}"


def test_notes_that_were_lost_tell_nobody_twice(rows: Rows) -> None:
    """A person may rewrite the notes: the notification itself is once a day too."""
    key = workflow(rows, 2)
    perform(rows)
    rows.change("permit_workflows", key, workflow_notes="")
    perform(rows)
    assert told(rows) == ["staff"]
    assert notes(rows, key) == NOTE


def test_the_record(rows: Rows) -> None:
    """What it says, and where it leads."""
    key = workflow(rows, 10)
    perform(rows)
    found = next(row for row in rows.all("notifications") if row.channel == "EMAIL")
    assert found.subject == "Regulator Response Overdue: renewal"
    assert "was due on 15 November 2026 and is now 10 days overdue" in found.body_text
    assert (found.entity_type, found.entity_id, found.site_id) == ("permit_workflow", key, rows.site)
    assert found.action_url.endswith(f"/permits/{found.variables['document_id']}/workflows/{key}")
    assert (found.metadata["days_overdue"], found.metadata["submitted_date"]) == (10, "2026-08-27")


def test_a_second_run_writes_nothing(rows: Rows) -> None:
    """The same run again leaves every row as it is."""
    for overdue in (1, 8):
        workflow(rows, overdue)
    perform(rows)
    before = [rows.all(table, "id") for table in ("permit_workflows", "notifications")]
    perform(rows)
    assert [rows.all(table, "id") for table in ("permit_workflows", "notifications")] == before


def test_a_company_narrows_it(rows: Rows) -> None:
    """Rows of another company stay as they are."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    mine = workflow(rows, 2)
    theirs = workflow(rows, 2, owner=None, of={"company_id": company, "site_id": site})
    perform(rows, company_id=str(company))
    assert (notes(rows, mine), notes(rows, theirs)) == (None, NOTE)


def test_a_bad_row_stands_alone(rows: Rows) -> None:
    """One that can't be noted is counted, and told of by nobody; the chunk's others are."""
    bad, good = workflow(rows, 2), workflow(rows, 2)
    rows.run_sql(
        f"ALTER TABLE permit_workflows ADD CONSTRAINT bad CHECK (id <> '{bad}' OR workflow_notes IS NULL)"
    )
    run = perform(rows)
    assert (notes(rows, bad), notes(rows, good)) == (None, NOTE)
    assert (run.counts["failed"], run.counts["alerts"]) == (1, 1)
    assert {row.entity_id for row in rows.all("notifications")} == {good}


def test_two_runs_at_once_tell_once(rows: Rows) -> None:
    """Ruling 16: what another run has noted between the look and the change is left to it."""
    key = workflow(rows, 2)
    note = statement(check_regulator_response_deadlines.PACKAGE, "note_responses_overdue")
    noted = []
    for _ in range(2):
        with rows.run().transaction() as tx:
            noted.append(len(tx.rows(note, ids=[key], today=TODAY, note=NOTE)))
    assert noted == [1, 0]


def test_the_generated_data_has_work(database_of: Callable[..., EngineDatabase]) -> None:
    """A demo in which every regulator answers shows nothing."""
    made = Rows(database_of("ecocomply"))
    with made.database.engine.begin() as connection:
        generate(connection, today=date(2026, 11, 25), companies=3, obligations=90)
    assert perform(made).counts["alerts"] > 0


@pytest.mark.parametrize("odd", ["infinity", "-infinity", "20261-11-25", "0044-03-15 BC"])
def test_an_odd_day_of_submission_is_told_as_it_is(rows: Rows, odd: str) -> None:
    """It decides nothing; the answer is overdue all the same."""
    good, bad = workflow(rows, 3), workflow(rows, 3)
    rows.run_sql("UPDATE permit_workflows SET submitted_date = :odd WHERE id = :id", odd=odd, id=bad)
    assert not perform(rows).counts["failed"]
    told = {row.entity_id: row.metadata["submitted_date"] for row in rows.all("notifications")}
    assert told == {good: (TODAY - 90 * DAY).isoformat(), bad: odd}
