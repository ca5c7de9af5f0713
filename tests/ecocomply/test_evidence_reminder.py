"""Reminders of missing evidence: what counts as evidence, whom it needs, and once a day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import evidence_reminder
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL: dict[str, Any] = {"company_id": None, "site_id": None}
DAY = timedelta(days=1)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site and its manager."""
    made = Rows(database_of("ecocomply"))
    made.user("manager", "MANAGER", sites=[made.site])
    return made


def obligation(rows: Rows, days: int, **values: Any) -> UUID:
    """Add an obligation that is due in so many days."""
    given = {
        "company_id": rows.company, "site_id": rows.site, "summary": "Stack test",
        "deadline_date": TODAY + days * DAY,
    }  # fmt: skip
    return rows.add("obligations", **(given | values))


def evidence(rows: Rows, key: UUID, *, unlinked: bool = False, **values: Any) -> UUID:
    """Add evidence of an obligation."""
    given = {"company_id": rows.company, "site_id": rows.site, "file_name": "stack.pdf"}
    item = rows.add("evidence_items", **(given | values))
    rows.add(
        "obligation_evidence_links",
        obligation_id=key,
        evidence_id=item,
        unlinked_at=AS_OF if unlinked else None,
    )
    return item


def perform(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(evidence_reminder, NothingOutside(), as_of, **(ALL | params))


@pytest.mark.parametrize(
    ("days", "values", "reminded"),
    [
        (8, {}, False),
        (7, {}, True),
        (0, {}, True),
        (-1, {}, True),
        (-1, {"status": "OVERDUE"}, False),
        (3, {"status": "IN_PROGRESS"}, True),
        (3, {"status": "DUE_SOON"}, True),
        (3, {"status": "COMPLETED"}, False),
        (3, {"status": "NOT_APPLICABLE"}, False),
        (3, {"evidence_required": False}, False),
        (3, {"deleted_at": AS_OF}, False),
        (3, {"deadline_date": None}, False),
    ],
)
def test_whom_it_needs(rows: Rows, days: int, values: dict[str, Any], *, reminded: bool) -> None:
    """The boundary day, and only what is open, needs evidence, and has a date."""
    key = obligation(rows, days, **values)
    run = perform(rows)
    assert [row.entity_id for row in rows.all("notifications")] == ([key] if reminded else [])
    assert run.counts["processed"] == run.counts["notifications"] == reminded


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ({}, True),
        ({"validation_status": "APPROVED"}, True),
        ({"unlinked": True}, False),
        ({"deleted_at": AS_OF}, False),
        ({"is_archived": True}, False),
        ({"expiry_date": TODAY - DAY}, False),
        ({"expiry_date": TODAY}, True),
        ({"expiry_date": TODAY + DAY}, True),
    ],
)
def test_what_counts_as_evidence(rows: Rows, values: dict[str, Any], *, counts: bool) -> None:
    """Live is: linked still, and neither deleted, archived nor expired on the day of the run."""
    key = obligation(rows, 3)
    evidence(rows, key, **values)
    perform(rows)
    assert bool(rows.all("notifications")) is not counts


def test_one_live_item_among_others_will_do(rows: Rows) -> None:
    """What has expired beside it takes nothing away."""
    key = obligation(rows, 3)
    evidence(rows, key, expiry_date=TODAY - DAY)
    evidence(rows, key)
    perform(rows)
    assert not rows.all("notifications")


def test_once_a_day(rows: Rows) -> None:
    """Again on the same day writes nothing; each day until there is evidence reminds anew."""
    key = obligation(rows, 3)
    for hours in (0, 5, 24, 25):
        perform(rows, AS_OF + timedelta(hours=hours))
    assert sorted(
        row.body_text.partition(", on")[0].partition(" is ")[2] for row in rows.all("notifications")
    ) == [
        "due in 2 days",
        "due in 3 days",
    ]
    evidence(rows, key)
    perform(rows, AS_OF + 2 * DAY)
    assert len(rows.all("notifications")) == 2


def test_the_record(rows: Rows) -> None:
    """By mail alone, HIGH, with the days in its data and the obligation's address."""
    key = obligation(rows, 3, assigned_to=rows.user("ana"))
    perform(rows)
    (row,) = rows.all("notifications")
    assert (row.notification_type, row.channel, row.priority) == ("EVIDENCE_REMINDER", "EMAIL", "HIGH")
    assert (row.entity_type, row.recipient_email) == ("obligation", "ana@ecocomply.test")
    assert row.metadata == {"days_until_due": 3}
    assert row.action_url == f"https://app.ecocomply.test/sites/{rows.site}/obligations/{key}"
    assert row.subject == "Evidence Required: Stack test"


def test_who_hears(rows: Rows) -> None:
    """The assignee; else the managers of the site, the admins, the owners; nobody is a warning and a count."""
    rows.user("second", "MANAGER", sites=[rows.site])
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    rows.user("admin", "ADMIN", company=company)
    empty = rows.add("companies", name="Empty")
    nowhere = rows.add("sites", company_id=empty, name="Nowhere")
    obligation(rows, 3, assigned_to=rows.user("gone", is_active=False))
    obligation(rows, 3, company_id=company, site_id=site)
    obligation(rows, 3, company_id=empty, site_id=nowhere)
    run = perform(rows)
    assert {row.recipient_email.partition("@")[0] for row in rows.all("notifications")} == {
        "manager",
        "second",
        "admin",
    }
    assert run.counts["without_recipient"] == 1


@pytest.mark.parametrize("param", ["company_id", "site_id"])
def test_a_param_narrows_it(rows: Rows, param: str) -> None:
    """Nobody of another company or site is reminded."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    rows.user("stranger", "OWNER", company=company)
    obligation(rows, 3)
    theirs = obligation(rows, 3, company_id=company, site_id=site)
    narrowed: dict[str, Any] = {param: str({"company_id": company, "site_id": site}[param])}
    perform(rows, **narrowed)
    assert {row.entity_id for row in rows.all("notifications")} == {theirs}
