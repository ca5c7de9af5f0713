"""Clocks: days left, criticality and status by the day of the run, and each mark told of once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from include.ecocomply import update_compliance_clocks
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL = {"company_id": None, "site_id": None, "module_id": None, "batch_size": 1000}
DAY = timedelta(days=1)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site and its manager."""
    made = Rows(database_of("ecocomply"))
    made.user("manager", "MANAGER", sites=[made.site])
    return made


def clock(rows: Rows, days: int, **values: Any) -> UUID:
    """Add a clock with so many days left, without marks."""
    given = {
        "company_id": rows.company, "site_id": rows.site, "entity_type": "PERMIT", "entity_id": uuid4(),
        "clock_type": "PERMIT_RENEWAL", "target_date": TODAY + timedelta(days=days), "reminder_days": [],
    }  # fmt: skip
    return rows.add("compliance_clocks_universal", **(given | values))


def perform(rows: Rows, as_of: Any = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(update_compliance_clocks, NothingOutside(), as_of, **(ALL | params))


def standing(rows: Rows, key: UUID) -> tuple[int, str, str]:
    """Return a clock's days, criticality and status."""
    (found,) = (one for one in rows.all("compliance_clocks_universal") if one.id == key)
    return found.days_remaining, found.criticality, found.status


@pytest.mark.parametrize(
    ("days", "criticality", "status"),
    [
        (-1, "RED", "OVERDUE"),
        (0, "RED", "ACTIVE"),
        (7, "RED", "ACTIVE"),
        (8, "AMBER", "ACTIVE"),
        (30, "AMBER", "ACTIVE"),
        (31, "GREEN", "ACTIVE"),
    ],
)
def test_criticality(rows: Rows, days: int, criticality: str, status: str) -> None:
    """The boundary days: a clock whose date is today is not overdue."""
    key = clock(rows, days)
    run = perform(rows)
    assert standing(rows, key) == (days, criticality, status)
    assert run.counts["transitioned_to_overdue"] == (status == "OVERDUE")
    assert run.counts[criticality.lower()] == run.counts["processed"] == 1


def test_an_overdue_clock_is_counted_on_and_recovers(rows: Rows) -> None:
    """As ruled, OVERDUE is recomputed as well: its days go on, and a date that moved makes it ACTIVE again."""
    key = clock(rows, -1)
    perform(rows)
    perform(rows, AS_OF + DAY)
    assert standing(rows, key) == (-2, "RED", "OVERDUE")
    rows.change("compliance_clocks_universal", key, target_date=TODAY + 10 * DAY)
    perform(rows, AS_OF + DAY)
    assert standing(rows, key) == (9, "AMBER", "ACTIVE")


def test_a_completed_clock_is_left_alone(rows: Rows) -> None:
    """What has ended counts no days and reminds of nothing."""
    key = clock(rows, -1, status="COMPLETED", days_remaining=5, criticality="GREEN", reminder_days=[7])
    run = perform(rows)
    assert standing(rows, key) == (5, "GREEN", "COMPLETED")
    assert not run.counts["processed"]
    assert not rows.all("notifications")


def test_only_rows_that_change_are_written(rows: Rows) -> None:
    """A second run on the same day writes nothing."""
    clock(rows, 5)
    first, second = perform(rows), perform(rows)
    assert (first.counts["updated"], second.counts["updated"]) == (1, 0)


@pytest.mark.parametrize(
    ("days", "sent", "told"),
    [
        (91, [], None),
        (90, [], 90),
        (89, [90], None),
        (31, [90], None),
        (30, [90], 30),
        (29, [], 30),
        (7, [90], 7),
        (6, [90, 30, 7], None),
        (0, [90, 30], 7),
        (-3, [], 7),
        (5, [7], None),
        (29, [7], None),
        (90, [30], None),
    ],
)
def test_marks_are_crossed(rows: Rows, days: int, sent: list[int], told: int | None) -> None:
    """Ruling 4: the most urgent mark that is crossed and was not told goes out; milder missed ones do not.

    Nor afterwards, by a run of an older day.
    """
    key = clock(rows, days, reminder_days=[90, 30, 7], reminders_sent=sent)
    run = perform(rows)
    assert run.counts["reminders"] == (told is not None)
    assert not run.counts["skipped"]
    (found,) = rows.all("compliance_clocks_universal")
    assert found.reminders_sent == [*sent, *([told] if told else [])]
    assert {row.entity_id for row in rows.all("notifications")} == ({key} if told else set())
    perform(rows)
    assert len(rows.all("notifications")) == 2 * (told is not None)


def test_a_moved_date_is_reminded_of_anew(rows: Rows) -> None:
    """The key holds the date: whoever moves it, the marks begin again."""
    key = clock(rows, 7, reminder_days=[7])
    perform(rows)
    rows.change("compliance_clocks_universal", key, target_date=TODAY + 6 * DAY)
    perform(rows)
    assert {row.subject for row in rows.all("notifications")} == {
        "Due in 7 days: Permit renewal",
        "Due in 6 days: Permit renewal",
    }


def test_the_assignee_else_the_site(rows: Rows) -> None:
    """Who is assigned is told; without anybody, the site's managers."""
    ana = rows.user("ana", "STAFF")
    clock(rows, 3, reminder_days=[7], assigned_to=ana)
    clock(rows, 4, reminder_days=[7])
    perform(rows)
    told = {(row.subject, row.recipient_email) for row in rows.all("notifications")}
    assert told == {
        ("Due in 3 days: Permit renewal", "ana@ecocomply.test"),
        ("Due in 4 days: Permit renewal", "manager@ecocomply.test"),
    }


@pytest.mark.parametrize("param", ["company_id", "site_id", "module_id"])
def test_a_param_narrows_it(rows: Rows, param: str) -> None:
    """Rows of another company, site or module stay as they are."""
    module = rows.add("modules", module_code="M9", module_name="Nine")
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    wanted = {"company_id": company, "site_id": site, "module_id": module}
    mine = clock(rows, 5, reminder_days=[7])
    theirs = clock(rows, 5, company_id=company, site_id=site, module_id=module, reminder_days=[7])
    perform(rows, **{param: str(wanted[param])})
    assert standing(rows, mine) == (None, None, "ACTIVE")
    assert standing(rows, theirs) == (5, "RED", "ACTIVE")
    (found,) = (one for one in rows.all("compliance_clocks_universal") if one.id == mine)
    assert found.reminders_sent == []


def test_days_are_those_of_the_calendar(rows: Rows) -> None:
    """Over a leap day and a year's end the days are counted as they pass."""
    leap = clock(rows, 0, target_date=date(2028, 3, 1))
    perform(rows, AS_OF.replace(year=2026, month=2, day=27))
    assert standing(rows, leap)[0] == (date(2028, 3, 1) - date(2026, 2, 27)).days == 733


def test_words_may_be_an_enum(rows: Rows) -> None:
    """An application may have enum types where this platform has words, and its database is taken as it is."""
    for column, words in (
        ("criticality", "'RED', 'AMBER', 'GREEN'"),
        ("status", "'ACTIVE', 'OVERDUE', 'COMPLETED'"),
    ):
        rows.run_sql(f"CREATE TYPE clock_{column} AS ENUM ({words})")
        for constraint in rows.run_sql(
            "SELECT conname FROM pg_constraint WHERE conrelid = 'compliance_clocks_universal'::regclass"
            f" AND contype = 'c' AND pg_get_constraintdef(oid) LIKE '%{column}%'"
        ).scalars():
            rows.run_sql(f'ALTER TABLE compliance_clocks_universal DROP CONSTRAINT "{constraint}"')
    rows.run_sql("DROP INDEX ix_compliance_clocks_universal_running")
    rows.run_sql("DROP MATERIALIZED VIEW compliance_clock_dashboard CASCADE")
    rows.run_sql("ALTER TABLE compliance_clocks_universal ALTER status DROP DEFAULT")
    for column in ("criticality", "status"):
        rows.run_sql(
            f"ALTER TABLE compliance_clocks_universal ALTER {column} TYPE clock_{column} USING {column}::clock_{column}"
        )
    key = clock(rows, -1, status="ACTIVE")
    perform(rows)
    assert standing(rows, key) == (-1, "RED", "OVERDUE")


@pytest.mark.parametrize("odd", ["infinity", "-infinity", "0044-03-15 BC"])
def test_an_odd_date_is_its_own_clocks_fault(rows: Rows, odd: str) -> None:
    """No days are left to infinity: that clock is counted as failed, and the other is reminded of all the same."""
    good, bad = clock(rows, 5, reminder_days=[7]), clock(rows, 5, reminder_days=[7])
    rows.run_sql("UPDATE compliance_clocks_universal SET target_date = :odd WHERE id = :id", odd=odd, id=bad)
    run = perform(rows)
    assert run.counts["failed"] > 0
    assert standing(rows, good) == (5, "RED", "ACTIVE")
    assert {row.entity_id for row in rows.all("notifications")} == {good}


def test_marks_with_nothing_among_them(rows: Rows) -> None:
    """An array with a NULL in it holds no mark: the clock is reminded of, once."""
    clock(rows, 5, reminder_days=[7], reminders_sent=[None])
    assert [perform(rows).counts["reminders"] for _ in range(2)] == [1, 0]
