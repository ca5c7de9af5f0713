"""SLA timers: hours of a breach by the instant of the run, and 12, 24 and 48 of them told once each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import update_sla_breach_timers
from include.ecocomply.generator import generate
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL = {"company_id": None, "batch_size": 500}
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
TARGET = TODAY - timedelta(days=3)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with an owner, an admin, a manager and somebody of the staff."""
    made = Rows(database_of("ecocomply"))
    for name in ("owner", "admin", "manager", "staff"):
        made.user(name, name.upper())
    return made


def breached(
    rows: Rows,
    since: timedelta,
    *,
    assigned: str | None = "staff",
    of: dict[str, Any] | None = None,
    **values: Any,
) -> UUID:
    """Add a deadline that has missed its SLA so long ago."""
    users = {row.full_name: row.id for row in rows.all("users")}
    owner = {"company_id": rows.company, "site_id": rows.site, "summary": "Stack test"}
    to = {"assigned_to": users[assigned] if assigned else None}
    obligation = rows.add("obligations", **(owner | to | (of or {})))
    given = {
        "due_date": TODAY + timedelta(days=9), "status": "PENDING", "sla_breached_at": AS_OF - since,
        "sla_target_date": min(TARGET, (AS_OF - since).date() - timedelta(days=1)),
    }  # fmt: skip
    return rows.add("deadlines", obligation_id=obligation, **(given | values))


def perform(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(update_sla_breach_timers, NothingOutside(), as_of, **(ALL | params))


def hours(rows: Rows, key: UUID) -> float | None:
    """Return how long a deadline says that it is in breach."""
    (found,) = (row.sla_breach_duration_hours for row in rows.all("deadlines") if row.id == key)
    return None if found is None else float(found)


def told(rows: Rows) -> dict[str, set[str]]:
    """Return for each subject who was told by mail."""
    made: dict[str, set[str]] = {}
    for row in rows.all("notifications"):
        if row.channel == "EMAIL":
            made.setdefault(row.subject, set()).add(row.recipient_email.split("@")[0])
    return made


@pytest.mark.parametrize("status", ["PENDING", "DUE_SOON", "OVERDUE"])
def test_every_breach_is_timed(rows: Rows, status: str) -> None:
    """A deadline need not be overdue to have missed its SLA; the target is earlier."""
    key = breached(rows, 90 * MINUTE, status=status)
    run = perform(rows)
    assert hours(rows, key) == 1.5
    assert (run.counts["processed"], run.counts["updated"]) == (1, 1)


def test_what_is_completed_is_timed_no_more(rows: Rows) -> None:
    """It keeps how long it was in breach, and nobody is told."""
    key = breached(rows, 50 * HOUR, status="COMPLETED", sla_breach_duration_hours=3)
    run = perform(rows)
    assert hours(rows, key) == 3
    assert not run.counts["processed"]
    assert told(rows) == {}


@pytest.mark.parametrize(
    ("values", "of"),
    [
        ({"status": "NOT_APPLICABLE"}, {}),
        ({}, {"status": "NOT_APPLICABLE"}),
        ({}, {"deleted_at": AS_OF}),
    ],
)
def test_nobody_is_told_of_what_applies_no_more(
    rows: Rows, values: dict[str, Any], of: dict[str, Any]
) -> None:
    """Its timer runs until it is completed, but there is nothing for anybody to do."""
    key = breached(rows, 30 * HOUR, of=of, **values)
    perform(rows)
    assert hours(rows, key) == 30
    assert told(rows) == {}


@pytest.mark.parametrize(
    ("since", "threshold", "whom", "priority"),
    [
        (12 * HOUR - MINUTE, None, set(), None),
        (12 * HOUR, 12, {"staff"}, "HIGH"),
        (24 * HOUR - MINUTE, 12, {"staff"}, "HIGH"),
        (24 * HOUR, 24, {"staff", "manager"}, "URGENT"),
        (48 * HOUR - MINUTE, 24, {"staff", "manager"}, "URGENT"),
        (48 * HOUR, 48, {"staff", "manager", "admin"}, "URGENT"),
        (900 * HOUR, 48, {"staff", "manager", "admin"}, "URGENT"),
    ],
)
def test_the_thresholds(
    rows: Rows, since: timedelta, threshold: int | None, whom: set[str], priority: str | None
) -> None:
    """Ruling 4: reached at the hour itself; of those that were missed the highest, also to whom the milder tell."""
    breached(rows, since)
    perform(rows)
    assert told(rows) == ({f"SLA Breach Exceeds {threshold} Hours": whom} if threshold else {})
    assert {row.priority for row in rows.all("notifications")} == ({priority} if priority else set())


def test_each_threshold_once(rows: Rows) -> None:
    """Hour by hour: three times in all, and never a milder one afterwards."""
    breached(rows, timedelta(0))
    at = (11, 12, 13, 24, 47, 48, 60)
    made = [perform(rows, AS_OF + n * HOUR).counts["escalations"] for n in at]
    assert made == [0, 1, 0, 1, 0, 1, 0]
    perform(rows, AS_OF + 13 * HOUR)
    assert {subject: len(whom) for subject, whom in told(rows).items()} == {
        "SLA Breach Exceeds 12 Hours": 1,
        "SLA Breach Exceeds 24 Hours": 2,
        "SLA Breach Exceeds 48 Hours": 3,
    }


def test_a_milder_threshold_is_not_told_late(rows: Rows) -> None:
    """After the hour at 48 one that is made up for, at 14, tells nobody."""
    breached(rows, 50 * HOUR)
    perform(rows)
    assert perform(rows, AS_OF - 36 * HOUR).counts["escalations"] == 0
    assert set(told(rows)) == {"SLA Breach Exceeds 48 Hours"}


def test_a_moved_target_is_another_breach(rows: Rows) -> None:
    """The key holds the date that it counts toward."""
    key = breached(rows, 50 * HOUR)
    perform(rows)
    rows.change(
        "deadlines", key, sla_target_date=TARGET + timedelta(days=1), sla_breached_at=AS_OF - 13 * HOUR
    )
    perform(rows)
    assert set(told(rows)) == {"SLA Breach Exceeds 48 Hours", "SLA Breach Exceeds 12 Hours"}


@pytest.mark.parametrize(
    ("days", "marked", "escalated"),
    [(-3, 30, 1), (-2, 30, 1), (-1, 30, 0), (-1, 30 + 24, 0), (0, 30, 0), (30, 30, 0)],
)
def test_a_target_that_has_not_been_missed_is_not_escalated(
    rows: Rows, days: int, marked: int, escalated: int
) -> None:
    """A target that was moved ahead keeps the mark of the former one, of which nobody is to hear any more.

    Nor once it has passed: the mark has to be of a later day than the target, which is found missed anew.
    """
    breached(rows, marked * HOUR, sla_target_date=TODAY + timedelta(days=days))
    assert perform(rows).counts["escalations"] == escalated
    assert perform(rows, AS_OF + timedelta(days=1)).counts["escalations"] == escalated


def test_without_a_target_the_due_date_counts(rows: Rows) -> None:
    """An application may say that it is breached without a date of its own for it."""
    breached(rows, 12 * HOUR, sla_target_date=None)
    perform(rows)
    perform(rows)
    assert {row.metadata["target_date"] for row in rows.all("notifications")} == {"2026-12-04"}
    assert len(rows.all("notifications")) == 2


def test_without_an_assignee_the_managers_hear_first(rows: Rows) -> None:
    """A warning that reaches nobody would be none."""
    breached(rows, 12 * HOUR, assigned=None)
    perform(rows)
    assert told(rows) == {"SLA Breach Exceeds 12 Hours": {"manager"}}


def test_nobody_at_all_is_counted(rows: Rows) -> None:
    """A company without people: a warning, and no notification."""
    company = rows.add("companies", name="Empty")
    site = rows.add("sites", company_id=company, name="Theirs")
    breached(rows, 12 * HOUR, assigned=None, of={"company_id": company, "site_id": site})
    run = perform(rows)
    assert (run.counts["without_recipient"], run.counts["notifications"]) == (1, 0)


def test_the_record(rows: Rows) -> None:
    """An escalation of its level, with an absolute link to the obligation."""
    key = breached(rows, 25 * HOUR + MINUTE)
    perform(rows)
    found = next(row for row in rows.all("notifications") if row.channel == "EMAIL")
    assert found.body_text == "Obligation “Stack test” at Leeds has been in SLA breach for 25 hours."
    assert (found.is_escalation, found.escalation_level, found.escalation_state) == (
        True,
        2,
        "ESCALATED_LEVEL_2",
    )
    assert (found.entity_type, found.entity_id, found.notification_type) == (
        "deadline",
        key,
        "SLA_BREACH_ESCALATION",
    )
    assert found.action_url.endswith(f"/sites/{rows.site}/obligations/{found.obligation_id}")


def test_the_buckets(rows: Rows) -> None:
    """The figures of the specification, with 24 and 48 themselves in the middle."""
    for since in (1, 23, 24, 48, 49, 65):
        breached(rows, since * HOUR)
    counts = perform(rows).counts
    assert (counts["under_24h"], counts["from_24h_to_48h"], counts["over_48h"]) == (2, 2, 2)
    assert (counts["processed"], counts["average_breach_hours"], counts["escalations"]) == (6, 35, 5)


def test_an_older_hour_takes_nothing_back(rows: Rows) -> None:
    """Ruling 1: one that is made up for leaves the hours of a newer one, and what was not breached then."""
    key = breached(rows, 10 * HOUR)
    perform(rows)
    assert perform(rows, AS_OF - 2 * HOUR).counts["updated"] == 0
    assert hours(rows, key) == 10
    perform(rows, AS_OF - 11 * HOUR)
    assert hours(rows, key) == 10


def test_a_second_run_writes_nothing(rows: Rows) -> None:
    """The same run again leaves every row as it is."""
    breached(rows, 13 * HOUR)
    breached(rows, 500 * HOUR)
    perform(rows)
    before = [rows.all(table, "id") for table in ("deadlines", "notifications")]
    run = perform(rows)
    assert [rows.all(table, "id") for table in ("deadlines", "notifications")] == before
    assert (run.counts["updated"], run.counts["escalations"]) == (0, 0)


def test_a_company_narrows_it(rows: Rows) -> None:
    """Rows of another company stay as they are."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    rows.user("stranger", "OWNER", company=company)
    mine = breached(rows, 13 * HOUR)
    theirs = breached(rows, 13 * HOUR, assigned=None, of={"company_id": company, "site_id": site})
    perform(rows, company_id=str(company))
    assert (hours(rows, mine), hours(rows, theirs)) == (None, 13)
    assert told(rows) == {"SLA Breach Exceeds 12 Hours": {"stranger"}}


def test_a_bad_row_stands_alone(rows: Rows) -> None:
    """One that can't be timed, or told of, is counted; the others are."""
    bad, good = breached(rows, 13 * HOUR), breached(rows, 13 * HOUR)
    rows.run_sql(
        f"ALTER TABLE deadlines ADD CONSTRAINT bad CHECK (id <> '{bad}' OR sla_breach_duration_hours IS NULL)"
    )
    rows.run_sql(f"ALTER TABLE notifications ADD CONSTRAINT bad CHECK (entity_id <> '{bad}')")
    run = perform(rows)
    assert (hours(rows, bad), hours(rows, good)) == (None, 13)
    assert run.counts["failed"] == 2
    assert {row.entity_id for row in rows.all("notifications")} == {good}


def test_the_generated_data_has_work(database_of: Callable[..., EngineDatabase]) -> None:
    """A demo without a breach shows nothing."""
    made = Rows(database_of("ecocomply"))
    with made.database.engine.begin() as connection:
        generate(connection, today=date(2026, 11, 25), companies=3, obligations=90)
    counts = perform(made).counts
    assert counts["processed"] > 0
    assert counts["escalations"] > 0


@pytest.mark.parametrize("target", ["sla_target_date", "NULL"])
@pytest.mark.parametrize("odd", ["-infinity", "0044-03-15 BC", "1899-12-31"])
def test_a_breach_since_ever_is_its_own_fault(rows: Rows, odd: str, target: str) -> None:
    """Its hours can't be counted: it is counted as failed, keeps what it has, and the other is timed and told of."""
    good = breached(rows, 13 * HOUR)
    bad = breached(rows, 13 * HOUR, of={"summary": "Odd"}, sla_breach_duration_hours=1)
    set_to = f"sla_breached_at = :odd, sla_target_date = {target}"
    rows.run_sql(f"UPDATE deadlines SET {set_to} WHERE id = :id", odd=odd, id=bad)
    run = perform(rows)
    assert run.counts["failed"] == 1
    assert (hours(rows, good), hours(rows, bad)) == (13, 1)
    assert {row.entity_id for row in rows.all("notifications")} == {good}


def test_hours_that_are_no_number(rows: Rows) -> None:
    """The average leaves out what an application has written for a number, and no calendar holds."""
    breached(rows, 13 * HOUR)
    for odd in ("NaN", "Infinity", 10**30):
        breached(rows, 13 * HOUR, sla_breach_duration_hours=odd)
    assert perform(rows).counts["average_breach_hours"] == 13
