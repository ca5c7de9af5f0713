"""Tasks that come back: one a definition and due date, missed periods included, anchored on the first date."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import recurring_task_generation
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

DAY = timedelta(days=1)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site."""
    return Rows(database_of("ecocomply"))


def definition(rows: Rows, frequency: str, due: date | None, **values: Any) -> UUID:
    """Add a definition whose next date is `due`."""
    given = {
        "company_id": rows.company, "site_id": rows.site, "title": "Walk the boundary", "frequency": frequency,
        "next_due_date": due,
    }  # fmt: skip
    return rows.add("recurring_tasks", **(given | values))


def perform(rows: Rows, as_of: datetime = AS_OF) -> Run:
    """Run the job."""
    return rows.perform(recurring_task_generation, NothingOutside(), as_of)


def on(day: date) -> datetime:
    """Return an instant of a day."""
    return datetime(day.year, day.month, day.day, 3, tzinfo=UTC)


def dates(rows: Rows, key: UUID) -> list[date]:
    """Return the due dates of a definition's tasks, in order."""
    return [row.due_date for row in rows.all("tasks", "due_date") if row.recurring_task_id == key]


def following(rows: Rows, key: UUID) -> date:
    """Return a definition's next date."""
    (found,) = (row.next_due_date for row in rows.all("recurring_tasks") if row.id == key)
    return found


@pytest.mark.parametrize(
    ("frequency", "due", "made", "after"),
    [
        ("DAILY", TODAY + DAY, [], TODAY + DAY),
        ("DAILY", TODAY, [TODAY], TODAY + DAY),
        ("DAILY", TODAY - 2 * DAY, [TODAY - 2 * DAY, TODAY - DAY, TODAY], TODAY + DAY),
        ("WEEKLY", TODAY - 7 * DAY, [TODAY - 7 * DAY, TODAY], TODAY + 7 * DAY),
        ("WEEKLY", TODAY - 6 * DAY, [TODAY - 6 * DAY], TODAY + DAY),
        ("MONTHLY", date(2026, 10, 25), [date(2026, 10, 25), date(2026, 11, 25)], date(2026, 12, 25)),
        ("MONTHLY", date(2026, 10, 26), [date(2026, 10, 26)], date(2026, 11, 26)),
        ("QUARTERLY", date(2026, 5, 31), [date(2026, 5, 31), date(2026, 8, 31)], date(2026, 11, 30)),
        (
            "ANNUAL",
            date(2024, 2, 29),
            [date(2024, 2, 29), date(2025, 2, 28), date(2026, 2, 28)],
            date(2027, 2, 28),
        ),
        ("ANNUAL", date(2025, 11, 26), [date(2025, 11, 26)], date(2026, 11, 26)),
        ("MONTHLY", None, [TODAY], date(2026, 12, 25)),
    ],
)
def test_one_a_due_date_up_to_today(
    rows: Rows, frequency: str, due: date | None, made: list[date], after: date
) -> None:
    """The day before, the day, and missed periods; without a next date it begins on the day of the run."""
    key = definition(rows, frequency, due)
    run = perform(rows)
    assert (dates(rows, key), following(rows, key)) == (made, after)
    assert run.counts["tasks_generated"] == len(made)
    assert run.counts["processed"] == bool(made)
    before = rows.all("tasks", "id"), rows.all("recurring_tasks")
    perform(rows)
    assert (rows.all("tasks", "id"), rows.all("recurring_tasks")) == before


@pytest.mark.parametrize("anchor", [None, date(2026, 1, 31)])
def test_a_months_end_does_not_drift(rows: Rows, anchor: date | None) -> None:
    """T5: the 31st, after February the 31st again, run month by month; the first date is the anchor if none is set."""
    key = definition(rows, "MONTHLY", date(2026, 1, 31), anchor_date=anchor)
    for month in range(1, 9):
        perform(rows, on(date(2026, month + 1, 1)))
    assert dates(rows, key) == [date(2026, month, day) for month, day in
        [(1, 31), (2, 28), (3, 31), (4, 30), (5, 31), (6, 30), (7, 31), (8, 31)]]  # fmt: skip
    assert following(rows, key) == date(2026, 9, 30)


def test_a_leap_day_comes_back(rows: Rows) -> None:
    """The anchor's day stands wherever the calendar has it."""
    key = definition(rows, "ANNUAL", date(2027, 2, 28), anchor_date=date(2024, 2, 29))
    perform(rows, on(date(2028, 3, 1)))
    assert dates(rows, key) == [date(2027, 2, 28), date(2028, 2, 29)]


def test_a_date_that_somebody_moved(rows: Rows) -> None:
    """It is done on that day once, and goes on in its series."""
    key = definition(rows, "MONTHLY", date(2026, 11, 10), anchor_date=date(2026, 1, 5))
    perform(rows)
    assert (dates(rows, key), following(rows, key)) == ([date(2026, 11, 10)], date(2026, 12, 5))


def test_the_task(rows: Rows) -> None:
    """It has the definition's words, place and assignee."""
    ana = rows.user("ana")
    key = definition(rows, "DAILY", TODAY, description="All of it", default_assignee_id=ana)
    perform(rows)
    (task,) = rows.all("tasks")
    assert (task.recurring_task_id, task.title, task.description, task.assigned_to, task.status) == (
        key,
        "Walk the boundary",
        "All of it",
        ana,
        "PENDING",
    )
    assert (task.company_id, task.site_id, task.due_date) == (rows.company, rows.site, TODAY)


def test_a_task_that_is_there_is_left_as_it_is(rows: Rows) -> None:
    """One a definition and due date, whoever made it."""
    key = definition(rows, "DAILY", TODAY - DAY)
    rows.add("tasks", recurring_task_id=key, title="Done by hand", due_date=TODAY, status="COMPLETED")
    run = perform(rows)
    assert [(row.title, row.due_date) for row in rows.all("tasks", "due_date")] == [
        ("Walk the boundary", TODAY - DAY),
        ("Done by hand", TODAY),
    ]
    assert run.counts["tasks_generated"] == 1


def test_what_is_switched_off_stays(rows: Rows) -> None:
    """Nothing is made of it, and its date is kept."""
    key = definition(rows, "DAILY", TODAY - DAY, is_active=False)
    before = rows.all("recurring_tasks")
    run = perform(rows)
    assert not dates(rows, key)
    assert rows.all("recurring_tasks") == before
    assert not run.counts["processed"]


def test_another_companys_tasks_are_theirs(rows: Rows) -> None:
    """A task belongs to the company and the site of its definition."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    definition(rows, "DAILY", TODAY)
    key = definition(rows, "DAILY", TODAY, company_id=company, site_id=site)
    perform(rows)
    owners = {(row.recurring_task_id == key, row.company_id, row.site_id) for row in rows.all("tasks")}
    assert owners == {(False, rows.company, rows.site), (True, company, site)}


def test_a_bad_row_stands_alone(rows: Rows) -> None:
    """Ruling 6: a date without an end is refused by the database; the others of its chunk are made."""
    good = [definition(rows, "DAILY", TODAY) for _ in range(3)]
    bad = definition(rows, "DAILY", None)
    rows.run_sql("UPDATE recurring_tasks SET next_due_date = '-infinity' WHERE id = :id", id=bad)
    run = perform(rows)
    assert run.counts["failed"] == 1
    assert all(dates(rows, key) == [TODAY] for key in good)
    assert not dates(rows, bad)


@pytest.mark.parametrize("frequency", ["DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "ANNUAL"])
@pytest.mark.parametrize("column", ["next_due_date", "anchor_date"])
@pytest.mark.parametrize("odd", ["-infinity", "0044-03-15 BC", "0026-11-25", "1899-12-31"])
def test_an_odd_date_is_its_own_definitions_fault(rows: Rows, frequency: str, column: str, odd: str) -> None:
    """A year that lacks two digits would make a hundred thousand tasks: none is made, and the other's are."""
    good, bad = definition(rows, frequency, TODAY), definition(rows, frequency, TODAY)
    rows.run_sql(f"UPDATE recurring_tasks SET {column} = :odd WHERE id = :id", odd=odd, id=bad)
    run = perform(rows)
    assert (run.counts["processed"], run.counts["failed"], run.counts["tasks_generated"]) == (2, 1, 1)
    assert (dates(rows, good), dates(rows, bad)) == ([TODAY], [])


def test_the_first_day_that_is_reckoned_from(rows: Rows) -> None:
    """1900, as with obligations."""
    key = definition(rows, "ANNUAL", date(1900, 1, 1))
    perform(rows)
    assert (len(dates(rows, key)), following(rows, key)) == (127, date(2027, 1, 1))


@pytest.mark.parametrize(("missed", "made"), [(998, 999), (999, 1000), (1000, 1000)])
def test_the_most_tasks_of_one_run(rows: Rows, missed: int, made: int) -> None:
    """A thousand of a definition; the rest comes with the next run, and none is lost or made twice."""
    key = definition(rows, "DAILY", TODAY - missed * DAY)
    assert perform(rows).counts["tasks_generated"] == made
    assert following(rows, key) == TODAY - (missed - made) * DAY
    perform(rows)
    assert dates(rows, key) == [TODAY - back * DAY for back in range(missed, -1, -1)]


def test_what_is_history_takes_no_room(rows: Rows) -> None:
    """What was missed before the adoption makes nothing, and so holds nothing up."""
    rows.run_sql("INSERT INTO baseline (name, at) VALUES ('adoption', :at)", at=AS_OF - DAY)
    key = definition(rows, "DAILY", TODAY - 5000 * DAY)
    perform(rows)
    assert (dates(rows, key), following(rows, key)) == ([TODAY - DAY, TODAY], TODAY + DAY)
