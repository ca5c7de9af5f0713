"""Breaches and SLA misses: the day after the date, by whatever status, once, and anew for a date that moved."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import detect_breaches_and_alerts
from include.ecocomply.generator import generate
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL = {"company_id": None, "batch_size": 500}
DAY = timedelta(days=1)
BREACHES = ("REGULATORY_DEADLINE_BREACH", "COMPLIANCE_BREACH_DETECTED")


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with an owner, an admin, a manager with a phone and somebody of the staff."""
    made = Rows(database_of("ecocomply"))
    for name in ("owner", "admin", "staff"):
        made.user(name, name.upper())
    made.user("manager", "MANAGER", phone="+447700900123")
    return made


def deadline(rows: Rows, due: int, *, of: dict[str, Any] | None = None, **values: Any) -> UUID:
    """Add a deadline that was due so many days ago, of an obligation that needs no evidence."""
    owner = {
        "company_id": rows.company,
        "site_id": rows.site,
        "summary": "Stack test",
        "evidence_required": False,
    }
    obligation = rows.add("obligations", **(owner | (of or {})))
    given = {"obligation_id": obligation, "due_date": TODAY - due * DAY, "status": "PENDING"}
    return rows.add("deadlines", **(given | values))


def perform(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(detect_breaches_and_alerts, NothingOutside(), as_of, **(ALL | params))


def standing(rows: Rows, key: UUID) -> Any:
    """Return a deadline's row."""
    (found,) = (row for row in rows.all("deadlines") if row.id == key)
    return found


def types(rows: Rows) -> set[str]:
    """Return what kinds of notifications there are."""
    return {row.notification_type for row in rows.all("notifications")}


@pytest.mark.parametrize("status", ["PENDING", "DUE_SOON", "OVERDUE"])
@pytest.mark.parametrize(("due", "found"), [(-1, False), (0, False), (1, True), (400, True)])
def test_when_a_deadline_is_a_breach(rows: Rows, status: str, due: int, *, found: bool) -> None:
    """From the day after it, and without waiting for another job to mark it as overdue."""
    key = deadline(rows, due, status=status)
    run = perform(rows)
    assert run.counts["breaches"] == found
    row = standing(rows, key)
    assert (row.breach_notification_sent, row.breach_detected_at) == (found, AS_OF if found else None)
    assert row.status == status
    assert types(rows) == ({"COMPLIANCE_BREACH_DETECTED"} if found else set())


@pytest.mark.parametrize(
    ("values", "of"),
    [
        ({"status": "COMPLETED"}, {}),
        ({"status": "NOT_APPLICABLE"}, {}),
        ({"breach_notification_sent": True}, {}),
        ({}, {"status": "NOT_APPLICABLE"}),
        ({}, {"deleted_at": AS_OF}),
    ],
)
def test_what_is_no_breach(rows: Rows, values: dict[str, Any], of: dict[str, Any]) -> None:
    """Done, dropped, or told of."""
    key = deadline(rows, 9, of=of, sla_target_date=TODAY - 9 * DAY, **values)
    before = standing(rows, key)
    perform(rows)
    told_of = values.get("breach_notification_sent", False)
    assert types(rows) == ({"SLA_BREACH_DETECTED"} if told_of else set())
    if not told_of:
        assert standing(rows, key) == before


@pytest.mark.parametrize(
    ("item", "link", "missing"),
    [
        ({}, {}, False),
        ({"validation_status": "PENDING"}, {}, True),
        ({"validation_status": "REJECTED"}, {}, True),
        ({"is_archived": True}, {}, True),
        ({"deleted_at": AS_OF}, {}, True),
        ({"expiry_date": TODAY}, {}, False),
        ({"expiry_date": TODAY - DAY}, {}, True),
        ({}, {"unlinked_at": AS_OF}, True),
    ],
)
def test_the_evidence(rows: Rows, item: dict[str, Any], link: dict[str, Any], *, missing: bool) -> None:
    """What is missing is a live item that is approved; the notification then says so, and where to add it."""
    key = deadline(rows, 1, of={"evidence_required": True})
    obligation = standing(rows, key).obligation_id
    given = {
        "company_id": rows.company,
        "site_id": rows.site,
        "file_name": "lab.pdf",
        "validation_status": "APPROVED",
    }
    evidence = rows.add("evidence_items", **(given | item))
    rows.add("obligation_evidence_links", obligation_id=obligation, evidence_id=evidence, **link)
    run = perform(rows)
    assert types(rows) == {BREACHES[0] if missing else BREACHES[1]}
    assert run.counts["without_evidence"] == missing
    upload = f"/sites/{rows.site}/obligations/{obligation}/evidence"
    variables = rows.all("notifications")[0].variables
    assert variables.get("evidence_upload_url", "").endswith(upload) == missing


def test_who_is_told(rows: Rows) -> None:
    """Assignee, MANAGER, ADMIN and OWNER, by every channel of a critical message; an SMS where there is a phone."""
    users = {row.full_name: row.id for row in rows.all("users")}
    deadline(rows, 1, of={"assigned_to": users["staff"]})
    run = perform(rows)
    told: dict[str, set[str]] = {}
    for row in rows.all("notifications"):
        told.setdefault(row.channel, set()).add(row.recipient_email.split("@")[0])
    everybody = {"owner", "admin", "staff", "manager"}
    assert told == {"IN_APP": everybody, "EMAIL": everybody, "SMS": {"manager"}}
    assert {row.priority for row in rows.all("notifications")} == {"CRITICAL"}
    assert (run.counts["notifications"], run.counts["without_phone"]) == (9, 3)


def test_nobody_to_tell(rows: Rows) -> None:
    """The breach is found all the same, with a warning."""
    company = rows.add("companies", name="Empty")
    site = rows.add("sites", company_id=company, name="Theirs")
    key = deadline(rows, 1, of={"company_id": company, "site_id": site})
    run = perform(rows)
    assert standing(rows, key).breach_notification_sent
    assert (run.counts["without_recipient"], run.counts["notifications"]) == (1, 0)


def test_the_record(rows: Rows) -> None:
    """The variables that the specification names, and an absolute link to the obligation."""
    permit = rows.add(
        "documents", site_id=rows.site, title="Permit", document_type="PERMIT", regulator="Environment Agency"
    )
    key = deadline(rows, 10, of={"document_id": permit})
    perform(rows)
    found = rows.all("notifications")[0]
    expected = {
        "obligation_title": "Stack test", "deadline_id": str(key), "deadline_date": "15 November 2026",
        "obligation_id": str(standing(rows, key).obligation_id), "days_overdue": 10, "site_name": "Leeds",
        "company_name": "Acme", "regulator_name": "Environment Agency", "action_url": found.action_url,
    }  # fmt: skip
    assert expected.items() <= found.variables.items()
    assert (
        found.action_url == f"https://app.ecocomply.test/sites/{rows.site}/obligations/{found.obligation_id}"
    )
    assert (found.entity_type, found.entity_id, found.metadata["severity"]) == ("deadline", key, "CRITICAL")


def test_a_moved_date_is_told_anew(rows: Rows) -> None:
    """Ruling 2: what was told counts for the date that had passed then, not for a later one."""
    key = deadline(rows, 3)
    perform(rows)
    rows.change("deadlines", key, due_date=TODAY + DAY)
    assert perform(rows, AS_OF + DAY).counts["breaches"] == 0
    assert perform(rows, AS_OF + 2 * DAY).counts["breaches"] == 1
    assert perform(rows, AS_OF + 3 * DAY).counts["breaches"] == 0
    assert len({row.dedupe_key for row in rows.all("notifications") if row.channel == "EMAIL"}) == 6


@pytest.mark.parametrize("status", ["PENDING", "DUE_SOON", "OVERDUE"])
@pytest.mark.parametrize(("since", "found"), [(-1, False), (0, False), (1, True)])
def test_when_a_target_is_missed(rows: Rows, status: str, since: int, *, found: bool) -> None:
    """The target's own day is still in time; the mark is as of the run, and its hours begin with it."""
    key = deadline(rows, -9, sla_target_date=TODAY - since * DAY, status=status)
    run = perform(rows)
    assert run.counts["sla_misses"] == found
    row = standing(rows, key)
    assert (row.sla_breached_at, row.sla_breach_duration_hours) == ((AS_OF, 0) if found else (None, None))
    assert types(rows) == ({"SLA_BREACH_DETECTED"} if found else set())


@pytest.mark.parametrize(
    ("at", "priority", "hours"),
    [
        (datetime.min.time(), "HIGH", 0),
        (AS_OF.time().replace(hour=23, minute=59), "HIGH", 23),
    ],
)
def test_a_miss_is_a_warning(rows: Rows, at: Any, priority: str, hours: int) -> None:
    """WARNING at detection, which is HIGH; urgent are those that are found a day late or more."""
    deadline(rows, -9, sla_target_date=TODAY - DAY)
    as_of = datetime.combine(TODAY, at, AS_OF.tzinfo)
    perform(rows, as_of)
    found = rows.all("notifications")
    assert {(row.priority, row.variables["sla_breach_hours"]) for row in found} == {(priority, hours)}


def test_a_miss_that_is_found_late_is_urgent(rows: Rows) -> None:
    """From 24 hours on, and then by SMS too."""
    key = deadline(rows, -2, sla_target_date=TODAY - 2 * DAY)
    perform(rows, datetime.combine(TODAY, datetime.min.time(), AS_OF.tzinfo))
    found = rows.all("notifications")
    assert {row.priority for row in found} == {"URGENT"}
    assert {row.channel for row in found} == {"EMAIL", "IN_APP", "SMS"}
    expected = {
        "deadline_title": "Stack test", "deadline_id": str(key), "site_name": "Leeds", "company_name": "Acme",
        "sla_target_date": "2026-11-23", "due_date": "2026-11-27", "days_to_due_date": 2, "sla_breach_hours": 24,
    }  # fmt: skip
    assert expected.items() <= found[0].variables.items()


def test_a_moved_target_is_missed_anew(rows: Rows) -> None:
    """A mark from before the target had passed was of an earlier one, the target's own day included.

    An application's own mark of a later day counts.
    """
    moved = deadline(rows, -9, sla_target_date=TODAY - DAY, sla_breached_at=AS_OF - 2 * DAY)
    to_its_day = deadline(rows, -9, sla_target_date=TODAY - DAY, sla_breached_at=AS_OF - DAY)
    marked = deadline(rows, -9, sla_target_date=TODAY - 2 * DAY, sla_breached_at=AS_OF - DAY)
    perform(rows)
    assert standing(rows, moved).sla_breached_at == standing(rows, to_its_day).sla_breached_at == AS_OF
    assert standing(rows, marked).sla_breached_at == AS_OF - DAY


def test_a_target_extended_to_the_day_of_the_find_is_missed_again(rows: Rows) -> None:
    """The platform's own mark stands on that day: the extension passes the next day, and is told of."""
    key = deadline(rows, -40, sla_target_date=TODAY - DAY)
    assert perform(rows).counts["sla_misses"] == 1
    rows.change("deadlines", key, sla_target_date=TODAY)
    assert perform(rows).counts["sla_misses"] == 0
    assert perform(rows, AS_OF + DAY).counts["sla_misses"] == 1
    assert perform(rows, AS_OF + 5 * DAY).counts["sla_misses"] == 0


def test_a_second_run_writes_nothing(rows: Rows) -> None:
    """Neither the same run again nor one of an older day changes a row."""
    deadline(rows, 3, sla_target_date=TODAY - 5 * DAY)
    deadline(rows, 1)
    perform(rows)
    before = [rows.all(table, "id") for table in ("deadlines", "notifications")]
    for as_of in (AS_OF, AS_OF - DAY, AS_OF - 4 * DAY):
        assert perform(rows, as_of).counts["breaches"] == 0
    assert [rows.all(table, "id") for table in ("deadlines", "notifications")] == before


def test_the_figures(rows: Rows) -> None:
    """How long breaches took to be found, and how many were completed since they were told of."""
    deadline(rows, 1)
    deadline(rows, 3)
    deadline(
        rows, 9, status="COMPLETED", breach_notification_sent=True, breach_detected_at=AS_OF - 5 * DAY,
        completed_at=AS_OF - DAY,
    )  # fmt: skip
    counts = perform(rows).counts
    assert (counts["processed"], counts["breaches"], counts["average_hours_to_detection"]) == (2, 2, 33)
    assert counts["resolved_after_notification"] == 1


def test_a_company_narrows_it(rows: Rows) -> None:
    """Rows of another company stay as they are."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    mine = deadline(rows, 2, sla_target_date=TODAY - 4 * DAY)
    theirs = deadline(rows, 2, of={"company_id": company, "site_id": site}, sla_target_date=TODAY - 4 * DAY)
    before = standing(rows, mine)
    perform(rows, company_id=str(company))
    assert standing(rows, mine) == before
    assert standing(rows, theirs).breach_notification_sent
    assert standing(rows, theirs).sla_breached_at == AS_OF


def test_a_bad_row_stands_alone(rows: Rows) -> None:
    """One that can't be marked is counted, and told of by nobody; the chunk's others are."""
    bad, good = deadline(rows, 2), deadline(rows, 2)
    rows.run_sql(
        f"ALTER TABLE deadlines ADD CONSTRAINT bad CHECK (id <> '{bad}' OR NOT breach_notification_sent)"
    )
    run = perform(rows)
    assert (run.counts["failed"], run.counts["breaches"]) == (1, 1)
    assert {row.entity_id for row in rows.all("notifications")} == {good}


def test_the_generated_data_has_work(database_of: Callable[..., EngineDatabase]) -> None:
    """A demo without a breach shows nothing."""
    made = Rows(database_of("ecocomply"))
    with made.database.engine.begin() as connection:
        generate(connection, today=date(2026, 11, 25), companies=3, obligations=90)
    counts = perform(made).counts
    assert counts["breaches"] > 0
    assert counts["sla_misses"] > 0
