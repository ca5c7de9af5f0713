"""The schedule: due dates in a fixed series, deadlines 90 days ahead, and statuses by the day of the run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from dateutil.relativedelta import relativedelta

from include.ecocomply import monitoring_schedule
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL: dict[str, Any] = {"company_id": None, "site_id": None, "force_recalculate": False}
DAY = timedelta(days=1)
PERIODS = {
    "DAILY": relativedelta(days=1), "WEEKLY": relativedelta(weeks=1), "MONTHLY": relativedelta(months=1),
    "QUARTERLY": relativedelta(months=3), "ANNUAL": relativedelta(years=1),
}  # fmt: skip


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site."""
    return Rows(database_of("ecocomply"))


def obligation(rows: Rows, frequency: str | None, base: date | None, **values: Any) -> UUID:
    """Add an obligation that was created 30 days before the run."""
    given = {
        "company_id": rows.company, "site_id": rows.site, "summary": "Stack test", "frequency": frequency,
        "base_date": base, "created_at": AS_OF - 30 * DAY,
    }  # fmt: skip
    return rows.add("obligations", **(given | values))


def deadline(rows: Rows, key: UUID, due: date, status: str = "PENDING", **values: Any) -> UUID:
    """Add a deadline of an obligation."""
    return rows.add("deadlines", obligation_id=key, due_date=due, status=status, **values)


def perform(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(monitoring_schedule, NothingOutside(), as_of, **(ALL | params))


def found(rows: Rows, key: UUID) -> Any:
    """Return an obligation's row."""
    (one,) = (row for row in rows.all("obligations") if row.id == key)
    return one


def due_dates(rows: Rows, key: UUID) -> list[date]:
    """Return the due dates of an obligation's deadlines, in order."""
    return [row.due_date for row in rows.all("deadlines", "due_date") if row.obligation_id == key]


@pytest.mark.parametrize("frequency", PERIODS)
@pytest.mark.parametrize(
    "base", [date(2026, 8, 31), date(2024, 2, 29), date(2026, 11, 24), date(2026, 11, 25), date(2026, 12, 1)]
)
def test_due_dates_are_whole_periods_from_the_base_date(rows: Rows, frequency: str, base: date) -> None:
    """T5: no month's end drifts; the series as dateutil reckons it, from the next date to 90 days ahead."""
    key = obligation(rows, frequency, base)
    perform(rows)
    series = [base + PERIODS[frequency] * place for place in range(1, 1100)]
    created = (AS_OF - 30 * DAY).date()
    last = TODAY + 90 * DAY
    assert due_dates(rows, key) == [
        day for place, day in enumerate(series) if day <= last and (place == 0 or day >= created)
    ]
    assert found(rows, key).deadline_date == series[0]


@pytest.mark.parametrize(
    ("base", "completed", "following"),
    [
        (date(2026, 8, 31), None, date(2026, 9, 30)),
        (date(2026, 8, 31), date(2026, 9, 30), date(2026, 10, 31)),
        (date(2026, 8, 31), date(2026, 9, 29), date(2026, 9, 30)),
        (date(2026, 8, 31), date(2026, 10, 1), date(2026, 10, 31)),
        (date(2026, 8, 31), date(2027, 1, 31), date(2027, 2, 28)),
        (date(2027, 8, 31), date(2028, 1, 31), date(2028, 2, 29)),
        (date(2026, 12, 31), date(2027, 1, 30), date(2027, 1, 31)),
        (date(2026, 12, 31), date(2026, 6, 1), date(2027, 1, 31)),
    ],
)
def test_the_next_is_the_first_after_the_last_completed(
    rows: Rows, base: date, completed: date | None, following: date
) -> None:
    """As ruled: not a period after the day on which somebody happened to complete it."""
    key = obligation(rows, "MONTHLY", base)
    if completed is not None:
        deadline(rows, key, completed, "COMPLETED", completed_at=AS_OF)
        deadline(rows, key, completed - 400 * DAY, "COMPLETED", completed_at=AS_OF)
    perform(rows)
    assert found(rows, key).deadline_date == following


def test_none_before_it_was_created_but_the_next(rows: Rows) -> None:
    """An old permit that is entered today does not get years of deadlines that nobody could meet."""
    key = obligation(
        rows, "MONTHLY", date(2020, 1, 15), created_at=datetime(2026, 10, 15, 23, 59, tzinfo=UTC)
    )
    perform(rows)
    months = [(2020, 2), (2026, 10), (2026, 11), (2026, 12), (2027, 1), (2027, 2)]
    assert due_dates(rows, key) == [date(year, month, 15) for year, month in months]
    later = obligation(rows, "MONTHLY", date(2020, 1, 15), created_at=datetime(2026, 10, 16, tzinfo=UTC))
    perform(rows)
    assert date(2026, 10, 15) not in due_dates(rows, later)


@pytest.mark.parametrize(("days", "made"), [(89, True), (90, True), (91, False)])
def test_ninety_days_ahead(rows: Rows, days: int, *, made: bool) -> None:
    """The boundary; what is further ahead still has its next date, and its schedule too."""
    key = obligation(rows, "ONE_TIME", TODAY + days * DAY)
    perform(rows)
    assert due_dates(rows, key) == ([TODAY + days * DAY] if made else [])
    assert found(rows, key).deadline_date == TODAY + days * DAY
    (schedule,) = rows.all("schedules")
    assert (schedule.obligation_id, schedule.next_due_date, schedule.status, schedule.frequency) == (
        key,
        TODAY + days * DAY,
        "ACTIVE",
        "ONE_TIME",
    )


def test_periods_follow_each_other(rows: Rows) -> None:
    """A period is from the day after the date before it; the first one begins after the base date."""
    key = obligation(rows, "MONTHLY", date(2026, 10, 31))
    perform(rows)
    periods = [
        (row.compliance_period_start, row.compliance_period_end, row.due_date, row.status, row.site_id)
        for row in rows.all("deadlines", "due_date")
    ]
    ends = [date(2026, 11, 30), date(2026, 12, 31), date(2027, 1, 31)]
    starts = [date(2026, 11, 1), date(2026, 12, 1), date(2027, 1, 1)]
    assert periods == [
        (start, end, end, "PENDING", rows.site) for start, end in zip(starts, ends, strict=True)
    ]
    (schedule,) = rows.all("schedules")
    assert {row.schedule_id for row in rows.all("deadlines")} == {schedule.id}
    assert {row.obligation_id for row in rows.all("deadlines")} == {key}


def test_a_deadline_that_is_there_is_left_as_it_is(rows: Rows) -> None:
    """One deadline an obligation and due date, whoever made it."""
    key = obligation(rows, "MONTHLY", date(2026, 10, 31))
    own = deadline(rows, key, date(2026, 11, 30), "DUE_SOON", sla_target_date=TODAY)
    before = [row for row in rows.all("deadlines") if row.id == own]
    perform(rows)
    assert [row for row in rows.all("deadlines") if row.id == own] == before
    assert due_dates(rows, key) == [date(2026, 11, 30), date(2026, 12, 31), date(2027, 1, 31)]


@pytest.mark.parametrize(
    ("days", "before", "after"),
    [
        (-1, "PENDING", "OVERDUE"),
        (-1, "DUE_SOON", "OVERDUE"),
        (-1, "IN_PROGRESS", "OVERDUE"),
        (-1, "COMPLETED", "OVERDUE"),
        (-1, "NOT_APPLICABLE", "NOT_APPLICABLE"),
        (0, "PENDING", "DUE_SOON"),
        (0, "IN_PROGRESS", "IN_PROGRESS"),
        (7, "PENDING", "DUE_SOON"),
        (7, "COMPLETED", "DUE_SOON"),
        (8, "PENDING", "PENDING"),
        (8, "COMPLETED", "PENDING"),
        (8, "OVERDUE", "PENDING"),
        (8, "DUE_SOON", "PENDING"),
        (8, "IN_PROGRESS", "IN_PROGRESS"),
    ],
)
def test_status(rows: Rows, days: int, before: str, after: str) -> None:
    """Due today is due soon; passed is before today; work that has begun is only left for being late."""
    base = TODAY + days * DAY - relativedelta(years=1)
    key = obligation(rows, "ANNUAL", base, status=before)
    run = perform(rows)
    assert found(rows, key).status == after
    names = {
        "OVERDUE": "obligations_overdue",
        "DUE_SOON": "obligations_due_soon",
        "PENDING": "obligations_pending",
    }
    for status, name in names.items():
        assert run.counts[name] == (status == after != before)


@pytest.mark.parametrize(
    ("frequency", "base", "status"),
    [("ONE_TIME", TODAY - DAY, "COMPLETED"), ("MONTHLY", TODAY - 40 * DAY, "NOT_APPLICABLE")],
)
def test_what_is_left_out(rows: Rows, frequency: str, base: date, status: str) -> None:
    """Only what does not apply, and what was due once and is done, has no schedule."""
    key = obligation(rows, frequency, base, status=status)
    before = found(rows, key)
    run = perform(rows)
    assert found(rows, key) == before
    assert not rows.all("deadlines")
    assert not rows.all("schedules")
    assert not run.counts["processed"]


def test_a_deleted_obligation_is_left_alone(rows: Rows) -> None:
    """Nothing is due of what is gone."""
    key = obligation(rows, "MONTHLY", TODAY - 40 * DAY, deleted_at=AS_OF)
    before = found(rows, key)
    perform(rows)
    assert found(rows, key) == before
    assert not rows.all("deadlines")


def test_what_is_due_once_and_done_is_not_overdue(rows: Rows) -> None:
    """Its deadline is completed, though nobody has set the obligation's own status."""
    key = obligation(rows, "ONE_TIME", TODAY - DAY, status="IN_PROGRESS")
    deadline(rows, key, TODAY - DAY, "COMPLETED", completed_at=AS_OF)
    perform(rows)
    assert found(rows, key).status == "IN_PROGRESS"


def test_without_a_frequency_the_status_still_follows_the_date(rows: Rows) -> None:
    """Somebody set a date by hand: it has no schedule, and becomes overdue all the same; what is done stays done."""
    open_one = obligation(rows, None, None, deadline_date=TODAY - DAY)
    done = obligation(rows, None, None, deadline_date=TODAY - DAY, status="COMPLETED")
    perform(rows)
    assert (found(rows, open_one).status, found(rows, done).status) == ("OVERDUE", "COMPLETED")
    assert not rows.all("schedules")


def test_a_schedules_next_date(rows: Rows) -> None:
    """The first open deadline to come, whose status is PENDING or DUE_SOON; a paused schedule keeps its date."""
    key = obligation(rows, "MONTHLY", date(2026, 8, 31))
    deadline(rows, key, date(2026, 11, 30), "COMPLETED", completed_at=AS_OF)
    paused = obligation(rows, "MONTHLY", date(2026, 8, 31))
    rows.add(
        "schedules", obligation_id=paused, frequency="MONTHLY", status="PAUSED", next_due_date=TODAY - DAY
    )
    perform(rows)
    dates = {row.obligation_id: row.next_due_date for row in rows.all("schedules")}
    assert dates == {key: date(2026, 12, 31), paused: TODAY - DAY}


def test_a_second_run_writes_nothing(rows: Rows) -> None:
    """It runs every hour over everything: only rows that change are written."""
    for frequency in PERIODS:
        obligation(rows, frequency, date(2026, 8, 31), status="COMPLETED")
    obligation(rows, "ONE_TIME", TODAY - DAY)
    obligation(rows, "MONTHLY", None)
    perform(rows)
    tables = ("obligations", "schedules", "deadlines", "audit_logs")
    before = {table: rows.all(table, "id") for table in tables}
    run = perform(rows)
    assert {table: rows.all(table, "id") for table in tables} == before
    changes = {name for name, count in run.counts.items() if count}
    assert changes == {"processed", "failed"}


@pytest.mark.parametrize("param", ["company_id", "site_id"])
def test_a_param_narrows_it(rows: Rows, param: str) -> None:
    """Rows of another company or site stay as they are."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    mine = obligation(rows, "MONTHLY", TODAY - 40 * DAY)
    theirs = obligation(rows, "MONTHLY", TODAY - 40 * DAY, company_id=company, site_id=site)
    before = found(rows, mine)
    narrowed: dict[str, Any] = {param: str({"company_id": company, "site_id": site}[param])}
    perform(rows, **narrowed)
    assert found(rows, mine) == before
    assert found(rows, theirs).status == "OVERDUE"
    assert {row.company_id for row in [*rows.all("deadlines"), *rows.all("schedules")]} == {company}


def test_a_row_that_cant_be_reckoned_is_told_once_a_day(rows: Rows) -> None:
    """2.1's row errors go to the audit log, once a row, reason and day, though the job runs every hour."""
    bad = obligation(rows, "MONTHLY", None)
    far = obligation(rows, "MONTHLY", date(9999, 1, 1))
    good = obligation(rows, "MONTHLY", TODAY)
    for hours in (0, 1, 24):
        run = perform(rows, AS_OF + timedelta(hours=hours))
        assert run.counts["failed"] == 2
    logged = [(row.entity_id, row.new_values["reason"], row.company_id) for row in rows.all("audit_logs")]
    reasons = {
        (bad, "it has a frequency, and no base date to reckon from", rows.company),
        (far, "its base date is no day between 1900 and 2999", rows.company),
    }
    assert set(logged) == reasons
    assert len(logged) == 4
    assert found(rows, good).deadline_date == TODAY + relativedelta(months=1)


def test_a_row_that_the_database_refuses_stands_alone(rows: Rows) -> None:
    """Ruling 6: the others of its chunk are scheduled, and the audit log has the database's reason."""
    keys = [obligation(rows, "MONTHLY", TODAY - place * DAY) for place in range(5)]
    rows.run_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'this row is bad' USING ERRCODE = '23514'; END $$"
    )
    rows.run_sql(
        f"CREATE TRIGGER refuse BEFORE UPDATE ON obligations FOR EACH ROW WHEN (OLD.id = '{keys[2]}') "
        "EXECUTE FUNCTION refuse()"
    )
    run = perform(rows)
    assert run.counts["failed"] >= 1
    assert {row.obligation_id for row in rows.all("schedules")} == {*keys} - {keys[2]}
    assert not due_dates(rows, keys[2])
    assert {(row.entity_id, row.new_values["reason"]) for row in rows.all("audit_logs")} == {
        (keys[2], "this row is bad")
    }


def test_progress_is_told(rows: Rows) -> None:
    """A person who waits for a million obligations sees how far it has come."""
    for _ in range(3):
        obligation(rows, "MONTHLY", TODAY)
    run = rows.run(AS_OF, **ALL)
    told: list[tuple[int, int]] = []
    run.progress = lambda current, total, *_, **__: told.append((current, total))
    monitoring_schedule.schedule_obligations(run, NothingOutside())
    assert told == [(3, 3)]


def open_dates(rows: Rows) -> list[date]:
    """Return the due dates that still apply."""
    return [row.due_date for row in rows.all("deadlines", "due_date") if row.status != "NOT_APPLICABLE"]


@pytest.mark.parametrize(
    ("change", "present"),
    [
        ({"base_date": date(2026, 11, 15)}, [date(2026, 12, 15), date(2027, 1, 15), date(2027, 2, 15)]),
        ({"frequency": "QUARTERLY"}, [date(2027, 2, 1)]),
        ({"frequency": "ANNUAL"}, []),
        ({"frequency": "ONE_TIME", "base_date": date(2027, 1, 9)}, [date(2027, 1, 9)]),
    ],
)
def test_a_changed_series_retires_the_former_ones_deadlines(
    rows: Rows, change: dict[str, Any], present: list[date]
) -> None:
    """Else people are told of breaches on days on which nothing is due; changed back, they are due again."""
    former = [date(2026, 12, 1), date(2027, 1, 1), date(2027, 2, 1)]
    key = obligation(rows, "MONTHLY", date(2026, 11, 1), created_at=AS_OF)
    other = obligation(rows, "MONTHLY", date(2026, 11, 1), created_at=AS_OF)
    perform(rows)
    assert open_dates(rows) == sorted([*former, *former])
    rows.change("obligations", key, **change)
    run = perform(rows)
    assert open_dates(rows) == sorted([*former, *present])
    assert run.counts["deadlines_retired"] == len({*former} - {*present})
    assert due_dates(rows, other) == former
    before = [rows.all(table, "id") for table in ("obligations", "schedules", "deadlines")]
    perform(rows)
    assert [rows.all(table, "id") for table in ("obligations", "schedules", "deadlines")] == before
    rows.change("obligations", key, frequency="MONTHLY", base_date=date(2026, 11, 1))
    run = perform(rows)
    assert open_dates(rows) == sorted([*former, *former])
    assert run.counts["deadlines_restored"] == len({*former} - {*present})


@pytest.mark.parametrize(
    "values",
    [
        {"status": "COMPLETED", "completed_at": AS_OF},
        {"status": "OVERDUE"},
        {"breach_notification_sent": True, "breach_detected_at": AS_OF},
        {"due_date": date(2026, 12, 3)},
        # Onto a day that the former series has too.
        {"due_date": date(2030, 1, 1)},
        {"due_date": TODAY, "compliance_period_end": TODAY},
        {"schedule_id": None},
    ],
)
def test_what_somebody_had_a_hand_in_is_not_retired(rows: Rows, values: dict[str, Any]) -> None:
    """Done, told of, moved by a person, past or due today, or made by somebody else: it stays as it is."""
    key = obligation(rows, "MONTHLY", date(2026, 11, 1), created_at=AS_OF)
    perform(rows)
    (first, *_) = rows.all("deadlines", "due_date")
    rows.change("deadlines", first.id, **values)
    rows.change("obligations", key, base_date=date(2026, 11, 15))
    perform(rows)
    (kept,) = (row for row in rows.all("deadlines") if row.id == first.id)
    assert kept.status == values.get("status", "PENDING")


def test_what_does_not_apply_by_a_persons_word_stays_so(rows: Rows) -> None:
    """Neither a change of the series nor its taking back asks for it again."""
    key = obligation(rows, "MONTHLY", date(2026, 11, 1), created_at=AS_OF)
    perform(rows)
    (first, *_) = rows.all("deadlines", "due_date")
    rows.change("deadlines", first.id, status="NOT_APPLICABLE")
    for base in (date(2026, 11, 15), date(2026, 11, 1)):
        rows.change("obligations", key, base_date=base)
        perform(rows)
    assert first.due_date not in open_dates(rows)


@pytest.mark.parametrize("made", ["schedule_id", "deadline_id"])
def test_what_a_rule_has_made_is_the_rules(rows: Rows, made: str) -> None:
    """A schedule that a rule has set says nothing of the obligation's own series; a rule's deadline is in no series."""
    key = obligation(rows, "MONTHLY", date(2026, 11, 1), created_at=AS_OF)
    perform(rows)
    (first, *_) = rows.all("deadlines", "due_date")
    rule = rows.add(
        "recurrence_trigger_rules", company_id=rows.company, rule_name="r", trigger_type="SCHEDULED",
        target_entity_type="DEADLINE", rule_config={}, template_data={},
    )  # fmt: skip
    rows.add(
        "recurrence_trigger_executions", company_id=rows.company, trigger_rule_id=rule, execution_date=TODAY,
        execution_result="SUCCESS", **{made: {"schedule_id": first.schedule_id, "deadline_id": first.id}[made]},
    )  # fmt: skip
    rows.change("obligations", key, base_date=date(2026, 11, 15))
    run = perform(rows)
    assert first.due_date in open_dates(rows)
    assert run.counts["deadlines_retired"] == (0 if made == "schedule_id" else 2)
