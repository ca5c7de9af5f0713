"""Renewals: one for a permit and its expiry date, once it expires within the notice, and its owner is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import auto_create_renewal_workflows
from include.ecocomply.generator import generate
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from include.statements import statement
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL = {"company_id": None, "advance_notice_days": 90}
DAY = timedelta(days=1)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with two admins and somebody of the staff."""
    made = Rows(database_of("ecocomply"))
    for name, role in (("admin", "ADMIN"), ("deputy", "ADMIN"), ("staff", "STAFF")):
        made.user(name, role)
    return made


def permit(rows: Rows, days: int, **values: Any) -> UUID:
    """Add a permit that expires in so many days."""
    given = {
        "site_id": rows.site,
        "title": "Permit A",
        "document_type": "PERMIT",
        "expiry_date": TODAY + days * DAY,
    }
    return rows.add("documents", **(given | values))


def perform(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(auto_create_renewal_workflows, NothingOutside(), as_of, **(ALL | params))


def renewals(rows: Rows) -> dict[UUID, list[date]]:
    """Return for each document the expiry dates that it has a renewal for."""
    made: dict[UUID, list[date]] = {}
    for row in rows.all("permit_workflows", "expiry_date"):
        made.setdefault(row.document_id, []).append(row.expiry_date)
    return made


def told(rows: Rows) -> set[str]:
    """Return who was told by mail."""
    return {row.recipient_email.split("@")[0] for row in rows.all("notifications") if row.channel == "EMAIL"}


@pytest.mark.parametrize(
    ("days", "notice", "made"),
    [
        (91, 90, False),
        (90, 90, True),
        (89, 90, True),
        (0, 90, True),
        (-1, 90, False),
        (31, 30, False),
        (30, 30, True),
    ],
)
def test_within_the_notice(rows: Rows, days: int, notice: int, *, made: bool) -> None:
    """Crossed, not met: a run that was missed loses nothing; what has expired is not begun any more."""
    key = permit(rows, days)
    run = perform(rows, advance_notice_days=notice)
    assert renewals(rows) == ({key: [TODAY + days * DAY]} if made else {})
    assert run.counts["renewal_workflows_created"] == run.counts["permits_expiring"] == made


@pytest.mark.parametrize(
    ("values", "made"),
    [
        ({"document_type": "CONSENT"}, True),
        ({"document_type": "REGISTRATION"}, True),
        ({"document_type": "LICENCE"}, True),
        ({"document_type": "REPORT"}, False),
        ({"status": "SUPERSEDED"}, False),
        ({"status": "DRAFT"}, False),
        ({"deleted_at": AS_OF}, False),
        ({"expiry_date": None}, False),
    ],
)
def test_which_documents(rows: Rows, values: dict[str, Any], *, made: bool) -> None:
    """The four kinds that a regulator renews, while they are in force."""
    permit(rows, 60, **values)
    perform(rows)
    assert bool(renewals(rows)) == made


@pytest.mark.parametrize(
    ("workflow", "made"),
    [
        ({}, False),
        ({"status": "COMPLETED"}, False),
        ({"status": "CANCELLED"}, False),
        ({"expiry_date": TODAY - 300 * DAY}, True),
        ({"workflow_type": "VARIATION"}, True),
        ({"expiry_date": None, "status": "SUBMITTED"}, False),
        ({"expiry_date": None, "status": "COMPLETED"}, True),
    ],
)
def test_one_renewal_for_an_expiry_date(rows: Rows, workflow: dict[str, Any], *, made: bool) -> None:
    """However it ended: whoever cancels a renewal is not given it back each night."""
    key = permit(rows, 60)
    given = {
        "document_id": key,
        "workflow_type": "RENEWAL",
        "status": "DRAFT",
        "expiry_date": TODAY + 60 * DAY,
    }
    rows.add("permit_workflows", **(given | workflow))
    run = perform(rows)
    assert run.counts["renewal_workflows_created"] == made
    assert run.counts["skipped"] == (not made)
    assert len(rows.all("permit_workflows")) == 1 + made


def test_a_moved_expiry_date_is_renewed_anew(rows: Rows) -> None:
    """A permit that was extended expires again."""
    key = permit(rows, 60)
    perform(rows)
    rows.change("documents", key, expiry_date=TODAY + 400 * DAY)
    perform(rows, AS_OF + 309 * DAY)
    assert renewals(rows) == {key: [TODAY + 60 * DAY]}
    perform(rows, AS_OF + 310 * DAY)
    assert renewals(rows) == {key: [TODAY + 60 * DAY, TODAY + 400 * DAY]}


@pytest.mark.parametrize(("owner", "whom"), [("staff", {"staff"}), (None, {"admin", "deputy"})])
def test_who_is_told(rows: Rows, owner: str | None, whom: set[str]) -> None:
    """The permit's owner, else the ADMINs."""
    users = {row.full_name: row.id for row in rows.all("users")}
    permit(rows, 60, assigned_to=users[owner] if owner else None)
    perform(rows)
    assert told(rows) == whom


def test_an_owner_who_has_left(rows: Rows) -> None:
    """The ADMINs again, rather than nobody."""
    permit(rows, 60, assigned_to=rows.user("gone", "STAFF", is_active=False))
    perform(rows)
    assert told(rows) == {"admin", "deputy"}


def test_nobody_to_tell(rows: Rows) -> None:
    """The renewal is there all the same, with a warning."""
    company = rows.add("companies", name="Empty")
    key = permit(rows, 60, company_id=company, site_id=rows.add("sites", company_id=company, name="Theirs"))
    run = perform(rows)
    assert list(renewals(rows)) == [key]
    assert run.counts["without_recipient"] == 1


def test_the_record(rows: Rows) -> None:
    """A draft with the day by which the regulator is to answer, and a link to it."""
    key = permit(rows, 60)
    perform(rows)
    (made,) = rows.all("permit_workflows")
    assert (made.company_id, made.workflow_type, made.status) == (rows.company, "RENEWAL", "DRAFT")
    assert made.regulator_response_deadline == TODAY + 30 * DAY
    assert made.workflow_notes == "Auto-created: the permit expires on 2027-01-24"
    found = rows.all("notifications")[0]
    assert found.subject == "Permit Renewal Required: Expires in 60 days"
    assert found.body_text.startswith("Your permit (Permit A) expires in 60 days, on 24 January 2027.")
    assert found.action_url.endswith(f"/permits/{key}/workflows/{made.id}")
    assert (found.priority, found.entity_type, found.entity_id) == ("HIGH", "permit_workflow", made.id)


def test_a_second_run_writes_nothing(rows: Rows) -> None:
    """Neither the same run again nor one of an older day changes a row."""
    for days in (3, 60, 90):
        permit(rows, days)
    perform(rows)
    before = [rows.all(table, "id") for table in ("permit_workflows", "notifications")]
    for as_of in (AS_OF, AS_OF - 2 * DAY):
        perform(rows, as_of)
    assert [rows.all(table, "id") for table in ("permit_workflows", "notifications")] == before


def test_a_company_narrows_it(rows: Rows) -> None:
    """Permits of another company wait."""
    company = rows.add("companies", name="Other")
    permit(rows, 60)
    theirs = permit(
        rows, 60, company_id=company, site_id=rows.add("sites", company_id=company, name="Theirs")
    )
    perform(rows, company_id=str(company))
    assert list(renewals(rows)) == [theirs]


def test_a_bad_row_stands_alone(rows: Rows) -> None:
    """One that can't be made is counted; the chunk's others are."""
    bad, good = permit(rows, 60), permit(rows, 60)
    rows.run_sql(f"ALTER TABLE permit_workflows ADD CONSTRAINT bad CHECK (document_id <> '{bad}')")
    run = perform(rows)
    assert list(renewals(rows)) == [good]
    assert (run.counts["failed"], run.counts["renewal_workflows_created"]) == (1, 1)


def test_two_runs_at_once_make_one(rows: Rows) -> None:
    """Ruling 16: what another run has made between the look and the change is left to it."""
    key = permit(rows, 60)
    given = {"ids": [key], "today": TODAY, "notice_days": 90}
    create = statement(auto_create_renewal_workflows.PACKAGE, "create_renewals")
    made = []
    for _ in range(2):
        with rows.run().transaction() as tx:
            made.append(len(tx.rows(create, **given)))
    assert made == [1, 0]
    assert renewals(rows) == {key: [TODAY + 60 * DAY]}


def test_the_generated_data_has_work(database_of: Callable[..., EngineDatabase]) -> None:
    """A demo in which no permit is renewed shows nothing."""
    made = Rows(database_of("ecocomply"))
    with made.database.engine.begin() as connection:
        generate(connection, today=date(2026, 11, 25), companies=3, obligations=90)
    assert perform(made).counts["renewal_workflows_created"] > 0
