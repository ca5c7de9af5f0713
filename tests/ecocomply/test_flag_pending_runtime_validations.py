"""Manual entries that wait for their validation: which of them, who is told, and how often."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import flag_pending_runtime_validations
from include.ecocomply.generator import generate
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL = {"company_id": None, "pending_threshold_hours": 24}
HOUR = timedelta(hours=1)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site and a manager."""
    made = Rows(database_of("ecocomply"))
    made.user("manager", "MANAGER")
    return made


def generator(rows: Rows, **values: Any) -> UUID:
    """Add a generator."""
    where = {
        "company_id": values.get("company_id", rows.company),
        "site_id": values.get("site_id", rows.site),
    }
    document = rows.add("documents", title="MCPD", document_type="REGISTRATION", **where)
    return rows.add(
        "generators", **(where | {"document_id": document, "generator_identifier": "G1"} | values)
    )


def entry(rows: Rows, key: UUID, age: timedelta = 48 * HOUR, **values: Any) -> UUID:
    """Add an entry that was written down by hand so long ago."""
    given = {
        "generator_id": key,
        "run_date": date(2026, 11, 20),
        "runtime_hours": 2,
        "created_at": AS_OF - age,
    }
    return rows.add("runtime_monitoring", **(given | values))


def job(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(flag_pending_runtime_validations, NothingOutside(), as_of, **(ALL | params))


def mails(rows: Rows) -> list[Any]:
    """Return the mails."""
    return [row for row in rows.all("notifications", "created_at") if row.channel == "EMAIL"]


@pytest.mark.parametrize(
    ("hours", "age", "told"),
    [
        (24, 24 * HOUR, False),
        (24, 24 * HOUR + timedelta(seconds=1), True),
        (48, 47 * HOUR, False),
        (48, 49 * HOUR, True),
        (0.5, timedelta(minutes=31), True),
        (0, timedelta(0), False),
    ],
)
def test_how_long_an_entry_may_wait(rows: Rows, *, hours: float, age: timedelta, told: bool) -> None:
    """More than the given hours, to the second."""
    entry(rows, generator(rows), age)
    run = job(rows, pending_threshold_hours=hours)
    assert len(mails(rows)) == told
    assert run.counts["processed"] == run.counts["pending_entries"] == run.counts["generators"] == told


@pytest.mark.parametrize(
    "values",
    [
        {"validation_status": "APPROVED"},
        {"validation_status": "REJECTED"},
        {"data_source": "AUTOMATED"},
        {"data_source": "CSV"},
        {"data_source": "MAINTENANCE_RECORD"},
    ],
)
def test_what_waits_for_nobody(rows: Rows, values: dict[str, Any]) -> None:
    """Only entries by hand wait, until they are approved or rejected."""
    entry(rows, generator(rows), **values)
    assert job(rows).counts["processed"] == 0
    assert not rows.all("notifications")


def test_a_generator_that_is_gone(rows: Rows) -> None:
    """Nobody could open it."""
    entry(rows, generator(rows, deleted_at=AS_OF))
    assert job(rows).counts["processed"] == 0


def test_one_notice_a_generator(rows: Rows) -> None:
    """How many, since when, and which, the oldest first."""
    key = generator(rows)
    younger = entry(rows, key, run_date=date(2026, 11, 21))
    older = entry(rows, key, run_date=date(2026, 11, 10))
    entry(rows, key, HOUR, run_date=date(2026, 11, 1))
    entry(rows, generator(rows, generator_identifier="G2"))
    run = job(rows)
    told = {row.variables["generator"]: row for row in mails(rows)}
    assert sorted(told) == ["G1", "G2"]
    assert told["G1"].subject == "2 Manual Runtime Entries Pending Validation"
    assert told["G1"].metadata == {
        "pending_count": 2,
        "oldest_entry_date": "2026-11-10",
        "pending_entry_ids": [str(older), str(younger)],
    }
    assert told["G1"].notification_type == "RUNTIME_VALIDATION_PENDING"
    assert told["G1"].priority == "NORMAL"
    assert (run.counts["pending_entries"], run.counts["generators"]) == (3, 2)


def test_once_a_day(rows: Rows) -> None:
    """The same day again tells nothing; the next day does, until it is validated."""
    key = entry(rows, generator(rows))
    job(rows)
    again = job(rows, AS_OF + HOUR)
    assert len(mails(rows)) == 1
    assert again.counts["already_told"] == 2
    job(rows, AS_OF + 24 * HOUR)
    assert len(mails(rows)) == 2
    rows.change("runtime_monitoring", key, validation_status="APPROVED")
    job(rows, AS_OF + 48 * HOUR)
    assert len(mails(rows)) == 2


def test_who_is_told(rows: Rows) -> None:
    """Managers and admins of the company; nobody there is a warning and a count."""
    rows.user("admin", "ADMIN")
    rows.user("owner", "OWNER")
    rows.user("staff", "STAFF", sites=[rows.site])
    company = rows.add("companies", name="Nobody")
    site = rows.add("sites", company_id=company, name="Ghost")
    entry(rows, generator(rows))
    entry(rows, generator(rows, company_id=company, site_id=site))
    run = job(rows)
    assert {row.recipient_email for row in mails(rows)} == {"manager@ecocomply.test", "admin@ecocomply.test"}
    assert run.counts["without_recipient"] == 1


def test_many_entries_are_counted_and_a_hundred_named(rows: Rows) -> None:
    """A notification stays small, however many entries wait."""
    key = generator(rows)
    rows.run_sql(
        "INSERT INTO runtime_monitoring (generator_id, run_date, runtime_hours, created_at) "
        "SELECT :key, CAST(:today AS date) - n, 1, CAST(:as_of AS timestamptz) - interval '9 days' "
        "FROM generate_series(1, 150) AS n",
        key=key,
        today=TODAY,
        as_of=AS_OF,
    )
    job(rows)
    (mail,) = mails(rows)
    assert mail.metadata["pending_count"] == 150
    assert len(mail.metadata["pending_entry_ids"]) == 100
    assert mail.metadata["oldest_entry_date"] == str(TODAY - timedelta(days=150))


def test_a_company_narrows_it(rows: Rows) -> None:
    """Nobody hears of another company's entries."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    rows.user("them", "OWNER", company=company)
    entry(rows, generator(rows))
    theirs = generator(rows, company_id=company, site_id=site)
    entry(rows, theirs)
    job(rows, company_id=str(company))
    assert {row.entity_id for row in rows.all("notifications")} == {theirs}


def test_the_demo_data_gives_it_work(database_of: Callable[..., EngineDatabase]) -> None:
    """A demo shows entries that wait."""
    database = database_of("ecocomply")
    with database.engine.begin() as connection:
        generate(connection, today=TODAY, companies=3, obligations=90)
    assert job(Rows(database)).counts["pending_entries"] > 0


@pytest.mark.parametrize("odd", ["infinity", "-infinity", "20261-11-25", "0044-03-15 BC"])
def test_an_odd_day_of_an_entry_is_told_as_it_is(rows: Rows, odd: str) -> None:
    """The entry waits all the same, and nobody else's is held up."""
    good, bad = generator(rows), generator(rows)
    entry(rows, good)
    wrong = entry(rows, bad)
    rows.run_sql("UPDATE runtime_monitoring SET run_date = :odd WHERE id = :id", odd=odd, id=wrong)
    assert not job(rows).counts["failed"]
    told = {row.entity_id: row.metadata["oldest_entry_date"] for row in rows.all("notifications")}
    assert told == {good: "2026-11-20", bad: odd}
