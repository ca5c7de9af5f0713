"""Exceedances: each approved run once, by the year and month that it was in; flags, clocks and who is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import check_runtime_exceedances
from include.ecocomply.generator import generate
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL = {"company_id": None, "generator_id": None, "batch_size": 100}
DAY = timedelta(days=1)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site and its owner, and the module of generators."""
    made = Rows(database_of("ecocomply"))
    made.user("owner", "OWNER")
    made.add("modules", module_code="MODULE_3", module_name="Generators")
    return made


def generator(rows: Rows, annual: float | None = 100, monthly: float | None = None, **values: Any) -> UUID:
    """Add a generator with limits."""
    where = {
        "company_id": values.get("company_id", rows.company),
        "site_id": values.get("site_id", rows.site),
    }
    document = rows.add("documents", title="MCPD", document_type="REGISTRATION", **where)
    limits = {"annual_run_hour_limit": annual, "monthly_run_hour_limit": monthly}
    return rows.add(
        "generators", **(where | limits | {"document_id": document, "generator_identifier": "G1"} | values)
    )


def entry(rows: Rows, key: UUID, hours: float, day: date = TODAY, **values: Any) -> UUID:
    """Add an approved run."""
    given = {"generator_id": key, "run_date": day, "runtime_hours": hours, "validation_status": "APPROVED"}
    return rows.add("runtime_monitoring", **(given | values))


def job(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(check_runtime_exceedances, NothingOutside(), as_of, **(ALL | params))


def flags(rows: Rows) -> dict[UUID, tuple[bool, bool, bool, bool]]:
    """Return of each run whether it is flagged: threshold, annual limit, monthly limit, told."""
    return {
        row.id: (
            row.job_escalation_threshold_exceeded,
            row.job_escalation_annual_limit_exceeded,
            row.job_escalation_monthly_limit_exceeded,
            row.job_escalation_notification_sent,
        )
        for row in rows.all("runtime_monitoring")
    }


def clocks(rows: Rows) -> dict[str, tuple[str, date, str]]:
    """Return each clock's status, target date and end of its window, by type."""
    found = rows.all("compliance_clocks_universal")
    return {row.clock_type: (row.status, row.target_date, row.metadata["window_end"]) for row in found}


def mails(rows: Rows) -> list[Any]:
    """Return the mails, by subject and kind of exceedance."""
    found = [row for row in rows.all("notifications") if row.channel == "EMAIL"]
    return sorted(found, key=lambda row: (row.metadata["exceedance_type"], row.dedupe_key))


@pytest.mark.parametrize(
    ("annual", "monthly", "hours", "flagged", "types"),
    [
        (100, None, 89.9, (False, False, False, False), []),
        (100, None, 90, (True, False, False, True), ["THRESHOLD_EXCEEDED"]),
        (100, None, 99.9, (True, False, False, True), ["THRESHOLD_EXCEEDED"]),
        (100, None, 100, (True, True, False, True), ["ANNUAL_LIMIT_EXCEEDED"]),
        (None, 100, 89.9, (False, False, False, False), []),
        (None, 100, 90, (True, False, False, True), ["THRESHOLD_EXCEEDED"]),
        (None, 100, 100, (True, False, True, True), ["MONTHLY_LIMIT_EXCEEDED"]),
        (100, 100, 100, (True, True, True, True), ["ANNUAL_LIMIT_EXCEEDED", "MONTHLY_LIMIT_EXCEEDED"]),
        (None, None, 9000, (False, False, False, False), []),
        (-1, None, 9000, (False, False, False, False), []),
    ],
)
def test_what_is_exceeded(
    rows: Rows,
    annual: float | None,
    monthly: float | None,
    hours: float,
    flagged: tuple[bool, bool, bool, bool],
    types: list[str],
) -> None:
    """90 and 100 % of either limit; a limit that is missing, or none, is not looked at."""
    key = entry(rows, generator(rows, annual, monthly), hours)
    run = job(rows)
    assert flags(rows) == {key: flagged}
    assert sorted(clocks(rows)) == types
    assert [row.metadata["exceedance_type"] for row in mails(rows)] == types
    assert run.counts["processed"] == 1
    assert run.counts["flags_set"] == bool(types)
    assert {name: run.counts[name.lower()] for name in types} == dict.fromkeys(types, 1)


def test_a_run_is_looked_at_once(rows: Rows) -> None:
    """It is stamped with the run's as-of, and a second run finds nothing."""
    entry(rows, generator(rows), 100)
    job(rows)
    before = [
        rows.all(name) for name in ("runtime_monitoring", "compliance_clocks_universal", "notifications")
    ]
    again = job(rows, AS_OF + timedelta(hours=1))
    after = [
        rows.all(name) for name in ("runtime_monitoring", "compliance_clocks_universal", "notifications")
    ]
    assert before == after
    assert again.counts["processed"] == 0
    assert before[0][0].exceedance_checked_at == AS_OF


@pytest.mark.parametrize("day", [date(2024, 2, 29), TODAY])
def test_no_age_limit(rows: Rows, day: date) -> None:
    """A run that is approved years later is held against the year that it was in, which is over."""
    entry(rows, generator(rows), 100, day)
    job(rows)
    status = "ACTIVE" if day == TODAY else "COMPLETED"
    assert clocks(rows) == {"ANNUAL_LIMIT_EXCEEDED": (status, TODAY, f"{day.year}-12-31")}
    assert len(mails(rows)) == 1


@pytest.mark.parametrize(
    "values", [{"validation_status": "PENDING"}, {"validation_status": "REJECTED"}, {"run_date": TODAY + DAY}]
)
def test_what_is_not_looked_at(rows: Rows, values: dict[str, Any]) -> None:
    """Only approved runs, and none before its day."""
    entry(rows, generator(rows), 100, **values)
    assert job(rows).counts["processed"] == 0
    assert rows.all("runtime_monitoring")[0].exceedance_checked_at is None


@pytest.mark.parametrize(
    ("day", "exceeded"),
    [
        (date(2026, 3, 31), False),
        (date(2026, 4, 1), True),
        (date(2026, 11, 25), True),
    ],
)
def test_the_year_is_that_of_the_run(rows: Rows, *, day: date, exceeded: bool) -> None:
    """From the last anniversary on or before the run's own day to the next, and all of its hours up to today."""
    key = generator(rows, anniversary_date=date(2020, 4, 1))
    stamped = {"exceedance_checked_at": AS_OF - DAY}
    entry(rows, key, 60, date(2026, 10, 1), **stamped)
    late = entry(rows, key, 40, day)
    job(rows)
    assert flags(rows)[late][1] is exceeded


@pytest.mark.parametrize(("day", "exceeded"), [(date(2026, 9, 30), False), (date(2026, 10, 1), True)])
def test_the_month_is_that_of_the_run(rows: Rows, *, day: date, exceeded: bool) -> None:
    """A run that is approved late may be what makes a month that is over too much."""
    key = generator(rows, None, 100)
    entry(rows, key, 60, date(2026, 10, 31), exceedance_checked_at=AS_OF - DAY)
    late = entry(rows, key, 40, day)
    job(rows)
    assert flags(rows)[late][2] is exceeded


def test_once_a_generator_type_and_window(rows: Rows) -> None:
    """More runs of the same month tell nothing new; the next month's do; 90 % and 100 % are each told."""
    key = generator(rows, None, 100)
    for day, hours in (
        (date(2026, 10, 1), 90),
        (date(2026, 10, 5), 10),
        (date(2026, 10, 9), 10),
        (date(2026, 11, 2), 100),
    ):
        entry(rows, key, hours, day)
        job(rows, datetime(day.year, day.month, day.day, 23, tzinfo=UTC))
    told = [(row.metadata["exceedance_type"], row.variables["run_date"]) for row in mails(rows)]
    assert told == [
        ("MONTHLY_LIMIT_EXCEEDED", "2026-10-05"),
        ("MONTHLY_LIMIT_EXCEEDED", "2026-11-02"),
        ("THRESHOLD_EXCEEDED", "2026-10-01"),
    ]


def test_the_clock(rows: Rows) -> None:
    """Red and due on the day that it was found, of the module by its code, without reminders of its own."""
    key = generator(rows)
    run_of = entry(rows, key, 100)
    job(rows)
    (clock,) = rows.all("compliance_clocks_universal")
    (module,) = rows.all("modules")
    assert (clock.entity_type, clock.entity_id, clock.module_id) == ("generator", key, module.id)
    assert (clock.target_date, clock.days_remaining, clock.criticality) == (TODAY, 0, "RED")
    assert clock.reminder_days == []
    assert clock.metadata == {
        "runtime_entry_id": str(run_of),
        "run_date": "2026-11-25",
        "runtime_hours": 100.0,
        "annual_percentage": 100.0,
        "monthly_percentage": None,
        "window_end": "2026-12-31",
    }


@pytest.mark.parametrize(
    ("day", "status"), [(date(2026, 11, 30), "ACTIVE"), (date(2026, 12, 1), "COMPLETED")]
)
def test_the_clock_ends_with_its_window(rows: Rows, day: date, status: str) -> None:
    """On the month's last day it runs still; also one that the clocks' own job has made overdue ends."""
    entry(rows, generator(rows, None, 100), 100)
    job(rows)
    (clock,) = rows.all("compliance_clocks_universal")
    rows.change("compliance_clocks_universal", clock.id, status="OVERDUE", days_remaining=-5)
    run = job(rows, datetime(day.year, day.month, day.day, tzinfo=UTC))
    (clock,) = rows.all("compliance_clocks_universal")
    assert clock.status == ("OVERDUE" if status == "ACTIVE" else status)
    assert run.counts["clocks_completed"] == (status == "COMPLETED")


def test_a_clock_is_wound_up_again(rows: Rows) -> None:
    """A new run moves the target date; an old one approved late does not; a new window opens it again."""
    key = generator(rows, None, 100)
    entry(rows, key, 100)
    job(rows)
    entry(rows, key, 100, date(2026, 10, 5))
    job(rows, AS_OF + DAY)
    assert clocks(rows) == {"MONTHLY_LIMIT_EXCEEDED": ("ACTIVE", TODAY, "2026-11-30")}
    entry(rows, key, 1, TODAY + DAY)
    job(rows, AS_OF + DAY)
    assert clocks(rows) == {"MONTHLY_LIMIT_EXCEEDED": ("ACTIVE", TODAY + DAY, "2026-11-30")}
    job(rows, AS_OF + 10 * DAY)
    entry(rows, key, 100, TODAY + 10 * DAY)
    job(rows, AS_OF + 10 * DAY)
    assert clocks(rows) == {"MONTHLY_LIMIT_EXCEEDED": ("ACTIVE", TODAY + 10 * DAY, "2026-12-31")}


def test_another_jobs_clock_is_left_alone(rows: Rows) -> None:
    """Only clocks of exceedances end with a window."""
    key = generator(rows)
    given = {"company_id": rows.company, "entity_type": "generator", "entity_id": key, "target_date": TODAY}
    rows.add(
        "compliance_clocks_universal",
        **given,
        clock_type="SERVICE",
        metadata={"window_end": "2026-01-01"},
    )
    job(rows)
    assert rows.all("compliance_clocks_universal")[0].status == "ACTIVE"


def test_who_is_told_and_what(rows: Rows) -> None:
    """Managers, admins and owners, in words that say which limit, and how far."""
    rows.user("manager", "MANAGER")
    rows.user("admin", "ADMIN")
    rows.user("staff", "STAFF", sites=[rows.site])
    entry(rows, generator(rows, 100, 200), 95)
    job(rows)
    assert {row.recipient_email.partition("@")[0] for row in mails(rows)} == {"owner", "manager", "admin"}
    mail = mails(rows)[0]
    assert (mail.notification_type, mail.priority) == ("RUNTIME_EXCEEDANCE", "HIGH")
    assert mail.subject == "Generator Runtime Limit Nearly Reached: G1"
    assert mail.body_text == (
        "Generator G1 has nearly reached its annual runtime limit. Run date: 25 November 2026. "
        "Annual: 95.0% of limit. Monthly: 47.5% of limit. Please review and take corrective action."
    )


@pytest.mark.parametrize("param", ["company_id", "generator_id"])
def test_a_param_narrows_it(rows: Rows, param: str) -> None:
    """Another company's runs and clocks stay as they are."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    mine, theirs = generator(rows), generator(rows, company_id=company, site_id=site)
    entry(rows, mine, 100)
    checked = entry(rows, theirs, 100)
    run = job(rows, AS_OF, **{param: str({"company_id": company, "generator_id": theirs}[param])})
    stamped = {row.id for row in rows.all("runtime_monitoring") if row.exceedance_checked_at is not None}
    assert stamped == {checked}
    assert {row.entity_id for row in rows.all("compliance_clocks_universal")} == {theirs}
    assert run.counts["without_recipient"] == 1


def test_a_batch_is_a_chunk_and_a_bad_row_stands_alone(rows: Rows) -> None:
    """All runs are checked, two at a time; one that can't be written waits for the next hour."""
    key = generator(rows, 10_000)
    keys = [entry(rows, key, 1) for _ in range(5)]
    rows.run_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN RAISE EXCEPTION 'bad' USING ERRCODE = '23514'; END $$"
    )
    rows.run_sql(
        "CREATE TRIGGER refuse BEFORE UPDATE ON runtime_monitoring FOR EACH ROW "
        f"WHEN (OLD.id = '{keys[2]}') EXECUTE FUNCTION refuse()"
    )
    run = job(rows, batch_size=2)
    waiting = [row.id for row in rows.all("runtime_monitoring") if row.exceedance_checked_at is None]
    assert waiting == [keys[2]]
    assert (run.counts["processed"], run.counts["failed"]) == (4, 1)


def test_the_demo_data_gives_it_work(database_of: Callable[..., EngineDatabase]) -> None:
    """A demo shows runs that were checked."""
    database = database_of("ecocomply")
    with database.engine.begin() as connection:
        generate(connection, today=TODAY, companies=3, obligations=90)
    run = job(Rows(database))
    assert run.counts["processed"] > 0
    assert run.counts["flags_set"] > 0
