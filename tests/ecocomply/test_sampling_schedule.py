"""Sampling: the next day by frequency and public holidays, reminders at its marks, and what the audit trail hears."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import sampling_schedule
from include.ecocomply.generator import generate
from include.ecocomply.sampling_dates import next_sample_date
from include.errors import BadInput
from include.job import NothingOutside, perform
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL = {"company_id": None, "site_id": None, "parameter_id": None, "force_generate": False}
DAY = timedelta(days=1)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site and who works there."""
    made = Rows(database_of("ecocomply"))
    made.user("ana", "STAFF", sites=[made.site])
    return made


def consent(rows: Rows, **values: Any) -> UUID:
    """Add a consent in force."""
    given = {"company_id": rows.company, "site_id": rows.site, "title": "Consent", "document_type": "CONSENT"}
    return rows.add("documents", **(given | values))


def parameter(rows: Rows, frequency: str = "WEEKLY", last: date | None = None, **values: Any) -> UUID:
    """Add a parameter, made long ago, with its last sample."""
    given = {
        "company_id": rows.company, "site_id": rows.site, "parameter_type": "pH", "sampling_frequency": frequency,
        "created_at": datetime(2025, 3, 12, 23, 30, tzinfo=UTC),
    }  # fmt: skip
    if "document_id" not in values:
        where = {name: values.get(name, given[name]) for name in ("company_id", "site_id")}
        values["document_id"] = consent(rows, **where)
    key = rows.add("parameters", **(given | values))
    if last is not None:
        sample(rows, key, last)
    return key


def sample(rows: Rows, key: UUID, day: date) -> UUID:
    """Add a sample."""
    return rows.add("lab_results", parameter_id=key, sample_date=day)


def job(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(sampling_schedule, NothingOutside(), as_of, **(ALL | params))


def dates(rows: Rows) -> dict[UUID, date | None]:
    """Return the next day of each parameter."""
    return {row.id: row.next_sample_date for row in rows.all("parameters")}


def audited(rows: Rows, action: str = "SAMPLING_SCHEDULE_GENERATED") -> list[Any]:
    """Return what the audit trail has of an action, the oldest first."""
    return [row.new_values for row in rows.all("audit_logs", "created_at") if row.action_type == action]


@pytest.mark.parametrize(
    ("frequency", "weekday", "base", "after"),
    [
        ("DAILY", 1, date(2026, 11, 25), date(2026, 11, 26)),
        ("DAILY", 1, date(2026, 11, 27), date(2026, 11, 30)),
        ("DAILY", 1, date(2026, 11, 29), date(2026, 11, 30)),
        ("WEEKLY", 1, date(2026, 11, 29), date(2026, 11, 30)),
        ("WEEKLY", 1, date(2026, 11, 30), date(2026, 12, 7)),
        ("WEEKLY", 3, date(2026, 11, 30), date(2026, 12, 2)),
        ("WEEKLY", 7, date(2026, 11, 28), date(2026, 11, 29)),
        ("MONTHLY", 1, date(2026, 11, 1), date(2026, 12, 1)),
        ("MONTHLY", 1, date(2026, 11, 30), date(2026, 12, 1)),
        ("MONTHLY", 1, date(2026, 12, 31), date(2027, 1, 1)),
        ("MONTHLY", 1, date(2028, 1, 31), date(2028, 2, 1)),
        ("QUARTERLY", 1, date(2026, 1, 1), date(2026, 4, 1)),
        ("QUARTERLY", 1, date(2026, 3, 31), date(2026, 4, 1)),
        ("QUARTERLY", 1, date(2026, 4, 1), date(2026, 7, 1)),
        ("QUARTERLY", 1, date(2026, 11, 30), date(2027, 1, 1)),
        ("ANNUAL", 1, date(2026, 11, 25), date(2027, 11, 25)),
        ("ANNUAL", 1, date(2028, 1, 10), date(2029, 1, 10)),
        ("ANNUAL", 1, date(2028, 2, 29), date(2029, 2, 28)),
        ("ANNUAL", 1, date(2027, 2, 28), date(2028, 2, 28)),
    ],
)
def test_the_next_day(frequency: str, weekday: int, base: date, after: date) -> None:
    """Each frequency over the ends of weeks, months, quarters and years, and over a leap day."""
    assert next_sample_date(frequency, weekday, base, "GB", "ENG") == after


@pytest.mark.parametrize(
    ("country", "region", "base", "after"),
    [
        # 26 December is a Saturday in 2026, so Monday the 28th is free instead; in 2024 it is a Thursday.
        ("GB", "ENG", date(2026, 12, 24), date(2026, 12, 29)),
        ("GB", "ENG", date(2024, 12, 25), date(2024, 12, 27)),
        ("US", "NY", date(2024, 12, 25), date(2024, 12, 26)),
        # 2 January, St Andrew's Day and the first Monday of August are free in Scotland alone.
        ("GB", "SCT", date(2025, 1, 1), date(2025, 1, 3)),
        ("GB", "ENG", date(2025, 1, 1), date(2025, 1, 2)),
        ("GB", "SCT", date(2026, 11, 27), date(2026, 12, 1)),
        ("GB", "ENG", date(2026, 11, 27), date(2026, 11, 30)),
        ("GB", "SCT", date(2026, 7, 31), date(2026, 8, 4)),
        ("GB", "", date(2026, 12, 24), date(2026, 12, 29)),
        ("gb", "sct", date(2025, 1, 1), date(2025, 1, 3)),
    ],
)
def test_public_holidays_are_those_of_the_site(country: str, region: str, base: date, after: date) -> None:
    """A daily sample waits for the next business day where the site is."""
    assert next_sample_date("DAILY", 1, base, country, region) == after


@pytest.mark.parametrize(
    ("frequency", "country", "region", "wrong"),
    [
        ("HOURLY", "GB", "ENG", "'HOURLY' is unknown"),
        ("DAILY", "XX", "ENG", "of 'XX'"),
        ("DAILY", "GB", "QQ", "region 'QQ'"),
    ],
)
def test_what_can_not_be_worked_out(frequency: str, country: str, region: str, wrong: str) -> None:
    """The error names the value."""
    with pytest.raises(BadInput, match=wrong):
        next_sample_date(frequency, 1, TODAY, country, region)


def test_sites_are_in_england_unless_they_say_otherwise(rows: Rows) -> None:
    """The default of country and region, and another site's own: 30 November is St Andrew's Day."""
    scotland = rows.add("sites", company_id=rows.company, name="Falkirk", region="SCT")
    south = parameter(rows, "DAILY", date(2026, 11, 27))
    north = parameter(rows, "DAILY", date(2026, 11, 27), site_id=scotland)
    job(rows, datetime(2026, 11, 28, 6, tzinfo=UTC))
    assert dates(rows) == {south: date(2026, 11, 30), north: date(2026, 12, 1)}


def test_it_counts_from_the_last_sample_else_from_when_it_was_made(rows: Rows) -> None:
    """Samples to come are none yet; without any, the day in UTC that the parameter was made."""
    sampled = parameter(rows, "MONTHLY", date(2026, 10, 5))
    sample(rows, sampled, date(2026, 9, 5))
    sample(rows, sampled, TODAY + DAY)
    fresh = parameter(rows, "ANNUAL")
    job(rows)
    assert dates(rows) == {sampled: date(2026, 11, 1), fresh: date(2026, 3, 12)}


def test_only_consents_in_force(rows: Rows) -> None:
    """What is put away, expired or deleted is not sampled."""
    parameter(rows, is_active=False)
    parameter(rows, document_id=consent(rows, status="EXPIRED"))
    parameter(rows, document_id=consent(rows, deleted_at=AS_OF))
    run = job(rows)
    assert set(dates(rows).values()) == {None}
    assert not rows.all("notifications")
    assert run.counts["processed"] == 0


def test_the_audit_trail_hears_of_changes_alone(rows: Rows) -> None:
    """A second run writes nothing; a sample moves the day, and that is audited."""
    key = parameter(rows, "MONTHLY", date(2026, 10, 5))
    assert job(rows).counts["scheduled"] == 1
    (before,) = rows.all("parameters")
    again = job(rows)
    assert (again.counts["scheduled"], again.counts["skipped"]) == (0, 0)
    assert rows.all("parameters") == [before]
    sample(rows, key, TODAY)
    job(rows)
    assert audited(rows) == [
        {"next_sample_date": "2026-11-01", "sampling_frequency": "MONTHLY"},
        {"next_sample_date": "2026-12-01", "sampling_frequency": "MONTHLY"},
    ]
    (entry, _) = [row for row in rows.all("audit_logs") if row.entity_id == key]
    assert (entry.company_id, entry.entity_type, entry.user_id) == (rows.company, "PARAMETER", None)


def test_a_day_made_up_for_later_undoes_nothing(rows: Rows) -> None:
    """A newer run knows a sample that the day made up for does not."""
    key = parameter(rows, "MONTHLY", date(2026, 10, 5))
    sample(rows, key, TODAY)
    job(rows)
    run = job(rows, AS_OF - DAY)
    assert dates(rows) == {key: date(2026, 12, 1)}
    assert len(audited(rows)) == 1
    assert run.counts["skipped"] == 1
    assert not rows.all("notifications")


@pytest.mark.parametrize(
    ("days", "priority"),
    [(-1, None), (0, "NORMAL"), (1, "HIGH"), (7, "HIGH"), (8, "CRITICAL"), (300, "CRITICAL")],
)
def test_reminders(rows: Rows, days: int, priority: str | None) -> None:
    """On the day, the day after, a week after that: by mail and in the application, once each."""
    key = parameter(rows, "MONTHLY", date(2026, 10, 5))
    as_of = datetime(2026, 11, 1, 6, tzinfo=UTC) + days * DAY
    run = job(rows, as_of)
    job(rows, as_of)
    told = {(row.channel, row.priority, row.notification_type) for row in rows.all("notifications")}
    channels = ("EMAIL", "IN_APP") if priority else ()
    assert told == {(channel, priority, "EVIDENCE_REMINDER") for channel in channels}
    assert len(rows.all("notifications")) == len(channels)
    assert run.counts["reminders"] == (priority is not None)
    assert {row.entity_id for row in rows.all("notifications")} == ({key} if priority else set())


def test_the_marks_one_after_another(rows: Rows) -> None:
    """Day by day there are three reminders; after days without a run, the most urgent one alone."""
    parameter(rows, "MONTHLY", date(2026, 10, 5))
    first = datetime(2026, 11, 1, 6, tzinfo=UTC)
    for days in range(12):
        job(rows, first + days * DAY)
    urgency = [row.priority for row in rows.all("notifications", "urgency") if row.channel == "EMAIL"]
    assert urgency == ["NORMAL", "HIGH", "CRITICAL"]


def test_a_result_ends_the_reminders(rows: Rows) -> None:
    """The sample of the day, or a late one: nobody is reminded of what is there."""
    sampled = parameter(rows, "MONTHLY", date(2026, 10, 5))
    sample(rows, sampled, date(2026, 11, 3))
    job(rows, datetime(2026, 11, 3, 6, tzinfo=UTC))
    assert not rows.all("notifications")
    assert dates(rows) == {sampled: date(2026, 12, 1)}


def test_who_works_at_the_site(rows: Rows) -> None:
    """Everyone assigned to it; with nobody there, the admins; nobody at all is counted."""
    rows.user("bo", "MANAGER", sites=[rows.site])
    rows.user("admin", "ADMIN")
    empty = rows.add("sites", company_id=rows.company, name="York")
    company = rows.add("companies", name="Nobody")
    deserted = rows.add("sites", company_id=company, name="Ghost")
    parameter(rows, last=date(2026, 11, 18))
    parameter(rows, last=date(2026, 11, 18), site_id=empty, parameter_type="COD")
    parameter(rows, last=date(2026, 11, 18), site_id=deserted, company_id=company)
    run = job(rows)
    mails = [row for row in rows.all("notifications") if row.channel == "EMAIL"]
    assert {(row.recipient_email, row.subject) for row in mails} == {
        ("ana@ecocomply.test", "Sampling Reminder: pH"),
        ("bo@ecocomply.test", "Sampling Reminder: pH"),
        ("admin@ecocomply.test", "Sampling Reminder: COD"),
    }
    assert run.counts["without_recipient"] == 1
    assert mails[0].metadata == {"next_sample_date": "2026-11-23", "days_overdue": 2}


@pytest.mark.parametrize("param", ["company_id", "site_id", "parameter_id"])
def test_a_param_narrows_it(rows: Rows, param: str) -> None:
    """Another company's, site's or parameter's rows stay as they are, and nobody hears of them."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    rows.user("them", "OWNER", company=company)
    mine = parameter(rows, last=date(2026, 11, 18))
    theirs = parameter(rows, last=date(2026, 11, 18), company_id=company, site_id=site)
    wanted = {"company_id": company, "site_id": site, "parameter_id": theirs}
    job(rows, AS_OF, **{param: str(wanted[param])})
    assert dates(rows) == {mine: None, theirs: date(2026, 11, 23)}
    assert {row.entity_id for row in rows.all("notifications")} == {theirs}


def test_a_day_that_can_not_be_worked_out_is_a_week_later(rows: Rows) -> None:
    """It is logged in the audit trail once a day, and the parameter is sampled all the same; the others too."""
    nowhere = rows.add("sites", company_id=rows.company, name="Atlantis", country_code="XX")
    lost = parameter(rows, "DAILY", date(2026, 11, 24), site_id=nowhere)
    fine = parameter(rows, "DAILY", date(2026, 11, 24))
    run = job(rows)
    job(rows)
    assert dates(rows) == {lost: date(2026, 12, 1), fine: date(2026, 11, 25)}
    (error,) = audited(rows, "JOB_ROW_ERROR")
    assert error == {
        "job_type": "SAMPLING_SCHEDULE",
        "reason": "public holidays of 'XX', region 'ENG', are unknown; sampled weekly instead",
        "day": "2026-11-25",
    }
    assert run.counts["failed"] == 1


def test_a_row_that_can_not_be_written_stands_alone(rows: Rows) -> None:
    """It is counted, and stands in the audit trail once a day; the others have their days."""
    keys = [parameter(rows, last=date(2026, 11, 24)) for _ in range(5)]
    rows.run_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN RAISE EXCEPTION 'bad' USING ERRCODE = '23514'; END $$"
    )
    rows.run_sql(
        "CREATE TRIGGER refuse BEFORE UPDATE ON parameters FOR EACH ROW "
        f"WHEN (OLD.id = '{keys[2]}') EXECUTE FUNCTION refuse()"
    )
    run = job(rows)
    job(rows)
    found = dates(rows)
    assert found.pop(keys[2]) is None
    assert set(found.values()) == {date(2026, 11, 30)}
    assert (run.counts["failed"], run.counts["scheduled"]) == (1, 4)
    (error,) = audited(rows, "JOB_ROW_ERROR")
    assert error["reason"] == "the day 2026-11-30 could not be written"


def test_a_sample_that_comes_in_meanwhile(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """The day is worked out, then a sample is written before the change: the change finds that, and is skipped."""
    key = parameter(rows, "MONTHLY", date(2026, 10, 5))
    run = rows.run(AS_OF, "samplingSchedule", **ALL)

    def meanwhile(*about: Any) -> date:
        sample(rows, key, TODAY)
        return next_sample_date(*about)

    monkeypatch.setattr(sampling_schedule, "next_sample_date", meanwhile)
    sampling_schedule.generate_schedule(run, NothingOutside())
    assert dates(rows) == {key: None}
    assert run.counts["skipped"] == 1


def test_how_far_it_has_come(rows: Rows) -> None:
    """4.1's progress, and what a dead letter would show."""
    keys = [parameter(rows, last=date(2026, 11, 24)) for _ in range(3)]
    said: list[Any] = []
    run = rows.run(AS_OF, "samplingSchedule", **ALL)
    run.progress = lambda *about, **more: said.append((about, more))
    perform(sampling_schedule, run, NothingOutside())
    assert said == [
        (
            (3, 3, "Processed 3/3 parameters"),
            {"ids": sorted(keys), "counts": {"scheduled": 3, "failed": 0}},
        )
    ]


def test_the_demo_data_gives_it_work(database_of: Callable[..., EngineDatabase]) -> None:
    """A demo shows days and reminders."""
    database = database_of("ecocomply")
    with database.engine.begin() as connection:
        generate(connection, today=TODAY, companies=3, obligations=90)
        connection.exec_driver_sql("DELETE FROM notifications")
    made = Rows(database)
    run = job(made)
    assert run.counts["scheduled"] > 0
    assert run.counts["reminders"] > 0


@pytest.mark.parametrize("frequency", ["DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "ANNUAL"])
@pytest.mark.parametrize("odd", ["-infinity", "0044-03-15 BC", "0001-01-01"])
def test_an_odd_last_sample_is_its_own_parameters_fault(rows: Rows, frequency: str, odd: str) -> None:
    """No day can be counted from it: an error that a person finds, and the other parameters are planned."""
    good, bad = parameter(rows, frequency, TODAY), parameter(rows, frequency, TODAY)
    rows.run_sql("UPDATE lab_results SET sample_date = :odd WHERE parameter_id = :id", odd=odd, id=bad)
    assert job(rows).counts["failed"] == 1
    assert dates(rows)[good] is not None
    assert dates(rows)[bad] is None
    (error,) = [row for row in rows.all("audit_logs") if row.entity_id == bad]
    assert "lab_results.sample_date" in str(error.new_values)


@pytest.mark.parametrize("odd", ["infinity", "-infinity", "9999-12-31"])
def test_a_parameter_that_was_made_on_no_day(rows: Rows, odd: str) -> None:
    """As above, where there is no sample to count from."""
    good, bad = parameter(rows), parameter(rows)
    rows.run_sql("UPDATE parameters SET created_at = :odd WHERE id = :id", odd=odd, id=bad)
    assert job(rows).counts["failed"] == 1
    assert dates(rows)[good] is not None
    assert dates(rows)[bad] is None


@pytest.mark.parametrize("odd", ["-infinity", "0044-03-15 BC"])
def test_an_odd_next_day_that_nothing_puts_right(rows: Rows, odd: str) -> None:
    """Its reminder can't say how late it is; the other is reminded of."""
    good, bad = parameter(rows, last=TODAY - 7 * DAY), parameter(rows)
    rows.run_sql(
        "UPDATE parameters SET created_at = '-infinity', next_sample_date = :odd WHERE id = :id",
        odd=odd,
        id=bad,
    )
    assert job(rows).counts["failed"] == 2
    assert {row.entity_id for row in rows.all("notifications")} == {good}
