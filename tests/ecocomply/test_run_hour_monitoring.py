"""Run hours: a generator's year and month, its limits, and who hears of what was reached."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import run_hour_monitoring
from include.ecocomply.generator import generate
from include.ecocomply.run_hours import percentage, shown
from include.errors import BadInput
from include.job import NothingOutside, perform
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL = {"company_id": None, "generator_id": None, "check_monthly": True, "check_annual": True}
DAY = timedelta(days=1)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site and its owner."""
    made = Rows(database_of("ecocomply"))
    made.user("owner", "OWNER")
    return made


def generator(rows: Rows, *hours: tuple[date, float], **values: Any) -> UUID:
    """Add a generator with recorded hours."""
    where = {
        "company_id": values.get("company_id", rows.company),
        "site_id": values.get("site_id", rows.site),
    }
    document = rows.add("documents", title="MCPD", document_type="REGISTRATION", **where)
    given = where | {"document_id": document, "generator_identifier": "G1", "annual_run_hour_limit": 500}
    key = rows.add("generators", **(given | values))
    for day, count in hours:
        rows.add("run_hour_records", generator_id=key, recording_date=day, hours_recorded=count)
    return key


def job(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(run_hour_monitoring, NothingOutside(), as_of, **(ALL | params))


def hours(rows: Rows) -> dict[UUID, tuple[Decimal, Decimal]]:
    """Return each generator's hours of its year and of the month."""
    return {row.id: (row.current_year_hours, row.current_month_hours) for row in rows.all("generators")}


def mails(rows: Rows) -> list[Any]:
    """Return the mails, the oldest first."""
    return [row for row in rows.all("notifications", "created_at", "subject") if row.channel == "EMAIL"]


@pytest.mark.parametrize(
    ("anniversary", "today", "start"),
    [
        (None, date(2026, 11, 25), date(2026, 1, 1)),
        (date(2020, 11, 24), date(2026, 11, 25), date(2026, 11, 24)),
        (date(2020, 11, 25), date(2026, 11, 25), date(2026, 11, 25)),
        (date(2020, 11, 26), date(2026, 11, 25), date(2025, 11, 26)),
        (date(2027, 3, 1), date(2026, 11, 25), date(2026, 3, 1)),
        (date(2024, 2, 29), date(2026, 2, 27), date(2025, 2, 28)),
        (date(2024, 2, 29), date(2026, 2, 28), date(2026, 2, 28)),
        (date(2024, 2, 29), date(2028, 2, 28), date(2027, 2, 28)),
        (date(2024, 2, 29), date(2028, 2, 29), date(2028, 2, 29)),
        (date(2020, 12, 31), date(2026, 1, 1), date(2025, 12, 31)),
    ],
)
def test_the_year_begins_at_the_last_anniversary(
    rows: Rows, anniversary: date | None, today: date, start: date
) -> None:
    """On or before the day; without one, the calendar year; 29 February is the 28th where there is none."""
    key = generator(rows, (start - DAY, 1), (start, 2), (today + DAY, 4), anniversary_date=anniversary)
    job(rows, datetime(today.year, today.month, today.day, 7, tzinfo=UTC))
    assert hours(rows)[key][0] == 2


@pytest.mark.parametrize(
    "today", [date(2026, 3, 1), date(2026, 2, 28), date(2028, 2, 29), date(2026, 12, 31)]
)
def test_the_month_is_the_calendar_month(rows: Rows, today: date) -> None:
    """Whatever the anniversary; today counts, tomorrow does not."""
    first = today.replace(day=1)
    key = generator(
        rows, (first - DAY, 1), (first, 2), (today, 4), (today + DAY, 8), anniversary_date=date(2020, 2, 10)
    )
    job(rows, datetime(today.year, today.month, today.day, tzinfo=UTC))
    assert hours(rows)[key][1] == 6


def test_hours_that_were_approved_where_none_were_recorded(rows: Rows) -> None:
    """One view of hours: entries of a meter count once they are approved, and only without records."""
    metered, both = generator(rows), generator(rows, (TODAY, 3))
    for key in (metered, both):
        for status, count in (("APPROVED", 5), ("PENDING", 7)):
            rows.add(
                "runtime_monitoring",
                generator_id=key,
                run_date=TODAY,
                runtime_hours=count,
                validation_status=status,
            )
    job(rows)
    assert hours(rows) == {metered: (5, 5), both: (3, 3)}


@pytest.mark.parametrize(
    ("ran", "subject"),
    [
        (399, None),
        (400, "Run-Hour Limit 80% Warning"),
        (449.9, "Run-Hour Limit 80% Warning"),
        (450, "Run-Hour Limit 90% Reached"),
        (499.9, "Run-Hour Limit 90% Reached"),
        (500, "Run-Hour Limit Breached"),
        (9000, "Run-Hour Limit Breached"),
    ],
)
def test_the_highest_threshold_alone(rows: Rows, ran: float, subject: str | None) -> None:
    """80, 90 and 100 %: of those that were reached, the highest, once."""
    generator(rows, (date(2026, 3, 1), ran))
    run = job(rows)
    again = job(rows)
    assert [row.subject for row in mails(rows)] == ([subject] if subject else [])
    assert run.counts["threshold_breaches"] == again.counts["threshold_breaches"] == (subject is not None)
    assert (run.counts["updated"], again.counts["updated"]) == (1, 0)


def test_what_it_says(rows: Rows) -> None:
    """The specification's words and what the application reads, capped at 999.9 %."""
    key = generator(rows, (TODAY, 5.5), annual_run_hour_limit=Decimal("0.50"), generator_identifier="G<1>")
    job(rows)
    (mail,) = mails(rows)
    assert mail.body_text == (
        "Generator G<1> has reached 999.9% (100% threshold) of its annual 0.5 hour limit. Year-to-date: 5.5 hours."
    )
    assert (mail.notification_type, mail.entity_type, mail.entity_id) == ("BREACH", "generator", key)
    assert mail.metadata == {
        "threshold_level": 100,
        "window": "annual",
        "window_start": "2026-01-01",
        "percentage": 999.9,
    }


def test_the_year_and_the_month_apart(rows: Rows) -> None:
    """In January both windows begin on one day; each has its own alert, and the next month its own again."""
    generator(
        rows,
        (date(2026, 1, 10), 45),
        (date(2026, 2, 10), 48),
        annual_run_hour_limit=50,
        monthly_run_hour_limit=50,
    )
    for month in (1, 2):
        job(rows, datetime(2026, month, 20, 7, tzinfo=UTC))
        job(rows, datetime(2026, month, 21, 7, tzinfo=UTC))
    told = sorted((row.metadata["window"], row.metadata["window_start"], row.subject) for row in mails(rows))
    assert told == [
        ("annual", "2026-01-01", "Run-Hour Limit 90% Reached"),
        ("annual", "2026-01-01", "Run-Hour Limit Breached"),
        ("monthly", "2026-01-01", "Run-Hour Limit 90% Reached"),
        ("monthly", "2026-02-01", "Run-Hour Limit 90% Reached"),
    ]


def test_an_older_day_tells_of_no_lower_threshold(rows: Rows) -> None:
    """After 100 % nobody hears of the 80 % that a day that is made up for had reached; the month apart."""
    generator(rows, (TODAY - 9 * DAY, 410), (TODAY, 100), monthly_run_hour_limit=10_000)
    job(rows)
    run = job(rows, AS_OF - 5 * DAY)
    assert [row.subject for row in mails(rows)] == ["Run-Hour Limit Breached"]
    assert run.counts["threshold_breaches"] == 0


def test_an_older_day_sets_back_no_hours(rows: Rows) -> None:
    """The hours shown stay those of the latest day; those of the older day decide what it had reached."""
    key = generator(rows, (date(2026, 10, 5), 85), (date(2026, 11, 24), 20), monthly_run_hour_limit=100)
    job(rows)
    assert hours(rows)[key] == (105, 20)
    run = job(rows, datetime(2026, 10, 20, 7, tzinfo=UTC))
    assert hours(rows)[key] == (105, 20)
    assert run.counts["updated"] == 0
    assert [(row.subject, row.metadata["window_start"]) for row in mails(rows)] == [
        ("Run-Hour Limit 80% Warning", "2026-10-01")
    ]
    rows.add("run_hour_records", generator_id=key, recording_date=TODAY, hours_recorded=1)
    job(rows, AS_OF + DAY)
    assert hours(rows)[key] == (106, 21)


def test_a_new_year_is_told_anew(rows: Rows) -> None:
    """The key holds the window: after the anniversary the same threshold is news again."""
    generator(rows, (date(2026, 5, 1), 480), (date(2026, 7, 1), 480), anniversary_date=date(2020, 6, 1))
    job(rows, datetime(2026, 5, 31, tzinfo=UTC))
    job(rows, datetime(2026, 7, 1, tzinfo=UTC))
    assert {row.metadata["window_start"] for row in mails(rows)} == {"2025-06-01", "2026-06-01"}


def test_a_missing_limit(rows: Rows, caplog: pytest.LogCaptureFixture) -> None:
    """It skips that check alone; a missing annual one is a warning."""
    key = generator(rows, (TODAY, 50), annual_run_hour_limit=None, monthly_run_hour_limit=50)
    generator(rows, (TODAY, 50), monthly_run_hour_limit=None)
    run = job(rows)
    assert [(row.entity_id, row.metadata["window"]) for row in mails(rows)] == [(key, "monthly")]
    assert run.counts["without_annual_limit"] == 1
    assert f"no annual limit: job=runHourMonitoring recordId={key}" in caplog.text


def test_a_limit_that_is_none(rows: Rows) -> None:
    """It stands in the audit trail once a day; the other limit is still held, and so are other generators."""
    bad = generator(rows, (TODAY, 50), annual_run_hour_limit=-1, monthly_run_hour_limit=50)
    fine = generator(rows, (TODAY, 500))
    job(rows)
    job(rows)
    assert {row.entity_id for row in mails(rows)} == {bad, fine}
    (entry,) = [row for row in rows.all("audit_logs") if row.action_type == "JOB_ROW_ERROR"]
    assert (entry.entity_type, entry.entity_id) == ("GENERATOR", bad)
    assert entry.new_values["reason"] == "annual: a limit of -1 hours is none"


@pytest.mark.parametrize(
    ("ran", "limit", "percent"),
    [
        ("0", "0", "0"),
        ("0.1", "0", "999.9"),
        ("5000", "500", "999.9"),
        ("1", "3", "33.33333333333333333333333333"),
    ],
)
def test_percentages(ran: str, limit: str, percent: str) -> None:
    """A limit of nothing is broken by any hour; more than 999.9 % is not told."""
    assert percentage(Decimal(ran), Decimal(limit)) == Decimal(percent)


def test_no_percentage_of_no_number() -> None:
    """Nor is there one of less than nothing."""
    for limit in ("-1", "NaN"):
        with pytest.raises(BadInput, match="is none"):
            percentage(Decimal(1), Decimal(limit))


@pytest.mark.parametrize(
    ("number", "text"), [("500.00", "500"), ("0.50", "0.5"), ("0", "0"), ("1E+3", "1000")]
)
def test_hours_as_people_write_them(number: str, text: str) -> None:
    """Whatever scale the database keeps them with."""
    assert shown(Decimal(number)) == text


@pytest.mark.parametrize(("param", "window"), [("check_annual", "monthly"), ("check_monthly", "annual")])
def test_a_check_that_is_left_out(rows: Rows, param: str, window: str) -> None:
    """The hours are summed up all the same."""
    key = generator(rows, (TODAY, 500), monthly_run_hour_limit=50)
    job(rows, AS_OF, **{param: False})
    assert [row.metadata["window"] for row in mails(rows)] == [window]
    assert hours(rows)[key] == (500, 500)


def test_who_is_told(rows: Rows) -> None:
    """Managers, admins and owners; a breach also by SMS, where there is a phone."""
    rows.user("manager", "MANAGER", phone="+447700900123")
    rows.user("admin", "ADMIN")
    rows.user("staff", "STAFF", sites=[rows.site])
    generator(rows, (TODAY, 500))
    run = job(rows)
    assert {row.recipient_email.partition("@")[0] for row in mails(rows)} == {"owner", "manager", "admin"}
    sms = [row.recipient_phone for row in rows.all("notifications") if row.channel == "SMS"]
    assert sms == ["+447700900123"]
    assert run.counts["without_phone"] == 2


@pytest.mark.parametrize("param", ["company_id", "generator_id"])
def test_a_param_narrows_it(rows: Rows, param: str) -> None:
    """Another company's generators stay as they are, and so do those that are put away."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    mine = generator(rows, (TODAY, 500))
    theirs = generator(rows, (TODAY, 500), company_id=company, site_id=site)
    away = generator(rows, (TODAY, 500), company_id=company, site_id=site, is_active=False)
    gone = generator(rows, (TODAY, 500), company_id=company, site_id=site, deleted_at=AS_OF)
    run = job(rows, AS_OF, **{param: str({"company_id": company, "generator_id": theirs}[param])})
    assert hours(rows) == {mine: (0, 0), theirs: (500, 500), away: (0, 0), gone: (0, 0)}
    assert (run.counts["processed"], run.counts["without_recipient"]) == (1, 1)


def test_a_row_that_can_not_be_written_stands_alone(rows: Rows) -> None:
    """It is counted, and stands in the audit trail; the others have their hours."""
    keys = [generator(rows, (TODAY, 5)) for _ in range(5)]
    rows.run_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN RAISE EXCEPTION 'bad' USING ERRCODE = '23514'; END $$"
    )
    rows.run_sql(
        "CREATE TRIGGER refuse BEFORE UPDATE ON generators FOR EACH ROW "
        f"WHEN (OLD.id = '{keys[2]}') EXECUTE FUNCTION refuse()"
    )
    run = job(rows)
    found = hours(rows)
    assert found.pop(keys[2]) == (0, 0)
    assert set(found.values()) == {(5, 5)}
    assert (run.counts["failed"], run.counts["updated"]) == (1, 4)
    (entry,) = [row for row in rows.all("audit_logs") if row.action_type == "JOB_ROW_ERROR"]
    assert entry.new_values["reason"] == "its hours could not be written"


def test_how_far_it_has_come(rows: Rows) -> None:
    """5.1's progress, and what a dead letter would show."""
    key = generator(rows, (TODAY, 500))
    said: list[Any] = []
    run = rows.run(AS_OF, "runHourMonitoring", **ALL)
    run.progress = lambda *about, **more: said.append((about, more))
    perform(run_hour_monitoring, run, NothingOutside())
    assert said[-1] == (
        (1, 1, "Checked 1/1 generators, 1 threshold breaches"),
        {"ids": [key], "counts": {"threshold_breaches": 1}},
    )


def test_the_demo_data_gives_it_work(database_of: Callable[..., EngineDatabase]) -> None:
    """A demo shows hours, and alerts."""
    database = database_of("ecocomply")
    with database.engine.begin() as connection:
        generate(connection, today=TODAY, companies=3, obligations=90)
    run = job(Rows(database))
    assert run.counts["updated"] > 0
    assert run.counts["threshold_breaches"] > 0


@pytest.mark.parametrize("odd", ["infinity", "-infinity", "5874897-12-31", "0044-03-15 BC", "1899-12-31"])
def test_an_odd_anniversary_is_its_own_generators_fault(rows: Rows, odd: str) -> None:
    """From such a day no year can be reckoned: an error that a person finds, and the other generators are told of."""
    good, bad = generator(rows, (TODAY, 450)), generator(rows, (TODAY, 450))
    rows.run_sql("UPDATE generators SET anniversary_date = :odd WHERE id = :id", odd=odd, id=bad)
    run = job(rows)
    assert run.counts["failed"] == 1
    assert (hours(rows)[good][0], hours(rows)[bad][0]) == (450, 0)
    assert {row.entity_id for row in rows.all("notifications")} == {good}
    (error,) = [row for row in rows.all("audit_logs") if row.entity_id == bad]
    assert "anniversary_date" in str(error.new_values)
