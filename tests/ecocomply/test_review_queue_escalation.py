"""The review queue: 48, 96 and 168 hours, half of them where the model may have made it up, once a day at most."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import review_queue_escalation
from include.ecocomply.generator import generate
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, Rows

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
PEOPLE = ("owner", "admin", "manager", "team_lead", "compliance_officer", "staff")


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with somebody in each role."""
    made = Rows(database_of("ecocomply"))
    for name in PEOPLE:
        made.user(name, name.upper())
    return made


def item(rows: Rows, waited: timedelta, **values: Any) -> UUID:
    """Add an item that has waited for so long."""
    given = {
        "company_id": rows.company, "site_id": rows.site, "review_type": "LOW_CONFIDENCE", "created_at": AS_OF - waited,
    }  # fmt: skip
    return rows.add("review_queue_items", **(given | values))


def perform(rows: Rows, as_of: datetime = AS_OF, company_id: str | None = None) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(review_queue_escalation, NothingOutside(), as_of, company_id=company_id)


def level(rows: Rows, key: UUID) -> int:
    """Return an item's level."""
    (found,) = (row.escalation_level for row in rows.all("review_queue_items") if row.id == key)
    return found


def told(rows: Rows) -> set[str]:
    """Return who was told by mail."""
    return {row.recipient_email.split("@")[0] for row in rows.all("notifications") if row.channel == "EMAIL"}


LEADS = {"team_lead"}
MANAGERS = {*LEADS, "manager"}
TOP = {*MANAGERS, "admin", "compliance_officer"}


@pytest.mark.parametrize(
    ("hours", "reached", "whom"),
    [(48, 1, LEADS), (96, 2, MANAGERS), (168, 3, TOP)],
)
@pytest.mark.parametrize("risk", [False, True])
def test_the_levels(rows: Rows, hours: int, reached: int, whom: set[str], *, risk: bool) -> None:
    """At the hour itself, half of the hours for a risk; of several that were missed the highest, to all of them."""
    waited = hours * HOUR / (2 if risk else 1)
    before = item(rows, waited - MINUTE, hallucination_risk=risk, escalation_level=reached - 1)
    at = item(rows, waited, hallucination_risk=risk)
    run = perform(rows)
    assert (level(rows, before), level(rows, at)) == (reached - 1, reached)
    assert (run.counts["items_escalated"], run.counts[f"l{reached}"]) == (1, 1)
    assert told(rows) == whom
    assert run.counts["notifications_sent"] == 2 * len(whom)


def test_once_in_a_day(rows: Rows) -> None:
    """The next level waits until 24 hours have passed since the last, and is counted meanwhile."""
    key = item(rows, 95 * HOUR)
    perform(rows)
    late = perform(rows, AS_OF + 24 * HOUR - MINUTE)
    assert (level(rows, key), late.counts["rate_limited"], late.counts["items_escalated"]) == (1, 1, 0)
    perform(rows, AS_OF + 24 * HOUR)
    assert level(rows, key) == 2
    history = rows.all("review_queue_escalation_history", "escalation_level")
    assert [(row.escalation_level, row.escalated_at, row.hours_pending) for row in history] == [
        (1, AS_OF, 95),
        (2, AS_OF + 24 * HOUR, 119),
    ]


@pytest.mark.parametrize("status", ["CONFIRMED", "EDITED", "REJECTED", "NOT_REQUIRED"])
def test_what_was_reviewed_is_left(rows: Rows, status: str) -> None:
    """Nobody has to look at it any more."""
    key = item(rows, 500 * HOUR, review_status=status)
    assert perform(rows).counts["processed"] == 0
    assert level(rows, key) == 0


def test_a_role_of_nobody_falls_to_the_next(rows: Rows) -> None:
    """Without team leads the managers hear first; a company without people is a warning."""
    company, empty = rows.add("companies", name="Other"), rows.add("companies", name="Empty")
    rows.user("other_manager", "MANAGER", company=company)
    for owner in (company, empty):
        item(rows, 48 * HOUR, company_id=owner, site_id=rows.add("sites", company_id=owner, name="Theirs"))
    run = perform(rows)
    assert told(rows) == {"other_manager"}
    assert (run.counts["items_escalated"], run.counts["without_recipient"]) == (2, 1)


def test_the_record(rows: Rows) -> None:
    """An escalation with the item's context, and in the history whom it went to."""
    document = rows.add("documents", site_id=rows.site, title="Permit A", document_type="PERMIT")
    key = item(rows, 49 * HOUR + MINUTE, document_id=document, is_blocking=True)
    perform(rows)
    found = next(row for row in rows.all("notifications") if row.channel == "EMAIL")
    assert found.subject == "Review Waits for 49 Hours: Permit A"
    assert (found.entity_type, found.entity_id, found.priority) == ("review_queue_item", key, "HIGH")
    assert (found.is_escalation, found.escalation_level, found.escalation_state) == (
        True,
        1,
        "ESCALATED_LEVEL_1",
    )
    assert found.action_url.endswith(f"/review-queue/{key}")
    assert found.metadata == {
        "review_type": "LOW_CONFIDENCE", "is_blocking": True, "hours_pending": 49, "escalation_level": 1,
        "hallucination_risk": False,
    }  # fmt: skip
    (history,) = rows.all("review_queue_escalation_history")
    assert (history.review_queue_item_id, history.escalated_to) == (key, [found.user_id])
    assert rows.all("review_queue_items")[0].escalated_at == AS_OF


def test_a_second_run_writes_nothing(rows: Rows) -> None:
    """Neither the same run again nor one of an older hour changes a row."""
    for hours in (49, 97, 300):
        item(rows, hours * HOUR)
    perform(rows)
    tables = ("review_queue_items", "review_queue_escalation_history", "notifications")
    before = [rows.all(table, "id") for table in tables]
    for as_of in (AS_OF, AS_OF - 30 * HOUR):
        perform(rows, as_of)
    assert [rows.all(table, "id") for table in tables] == before


def test_a_company_narrows_it(rows: Rows) -> None:
    """Rows of another company stay as they are."""
    company = rows.add("companies", name="Other")
    mine = item(rows, 50 * HOUR)
    theirs = item(
        rows, 50 * HOUR, company_id=company, site_id=rows.add("sites", company_id=company, name="Theirs")
    )
    perform(rows, company_id=str(company))
    assert (level(rows, mine), level(rows, theirs)) == (0, 1)


def test_a_bad_row_stands_alone(rows: Rows) -> None:
    """One that can't be escalated is counted; the chunk's others are."""
    bad, good = item(rows, 50 * HOUR), item(rows, 50 * HOUR)
    rows.run_sql(
        f"ALTER TABLE review_queue_items ADD CONSTRAINT bad CHECK (id <> '{bad}' OR escalation_level = 0)"
    )
    run = perform(rows)
    assert (level(rows, bad), level(rows, good)) == (0, 1)
    assert (run.counts["failed"], run.counts["items_escalated"]) == (1, 1)
    assert {row.entity_id for row in rows.all("notifications")} == {good}


def test_the_generated_data_has_work(database_of: Callable[..., EngineDatabase]) -> None:
    """A demo in which nothing waits too long shows nothing."""
    made = Rows(database_of("ecocomply"))
    with made.database.engine.begin() as connection:
        generate(connection, today=date(2026, 11, 25), companies=3, obligations=90)
    assert perform(made).counts["items_escalated"] > 0


@pytest.mark.parametrize("odd", ["-infinity", "0044-03-15 BC", "1899-12-31"])
def test_an_item_from_before_all_time_is_its_own_fault(rows: Rows, odd: str) -> None:
    """Nobody can say how long it waits: it is counted as failed, and the other is escalated."""
    good, bad = item(rows, 50 * HOUR), item(rows, 50 * HOUR)
    rows.run_sql("UPDATE review_queue_items SET created_at = :odd WHERE id = :id", odd=odd, id=bad)
    run = perform(rows)
    assert (run.counts["failed"], run.counts["items_escalated"]) == (1, 1)
    assert (level(rows, good), level(rows, bad)) == (1, 0)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "America/Edmonton"])
def test_the_day_that_it_is_told_for_is_utcs(database_of: Callable[..., EngineDatabase], zone: str) -> None:
    """Ruling T4: whatever the session's zone, or a change of it would tell people again."""
    found = Rows(database_of("ecocomply", zone))
    found.user("team_lead", "TEAM_LEAD")
    for hour in (1, 23):
        item(found, AS_OF - datetime(2026, 11, 22, hour, tzinfo=UTC))
    perform(found)
    assert {row.dedupe_key.split("/")[3] for row in found.all("notifications")} == {"2026-11-22"}
