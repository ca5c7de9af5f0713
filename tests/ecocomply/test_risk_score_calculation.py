"""Risk: the points of each factor, their caps and weights, bands, who hears of a worse one, and days in a row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from include.ecocomply import risk_score_calculation
from include.ecocomply.generator import generate
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL = {"company_id": None, "site_id": None}
DAY = timedelta(days=1)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site and its manager."""
    made = Rows(database_of("ecocomply"))
    made.user("manager", "MANAGER", sites=[made.site])
    return made


def obligation(rows: Rows, **values: Any) -> UUID:
    """Add an obligation."""
    given = {"company_id": rows.company, "site_id": rows.site, "summary": "Duty"}
    return rows.add("obligations", **(given | values))


def deadline(rows: Rows, days: int, of: UUID | None = None, **values: Any) -> UUID:
    """Add a deadline that was due so many days ago."""
    given = {"obligation_id": of or obligation(rows), "due_date": TODAY - days * DAY}
    return rows.add("deadlines", **(given | values))


def gap(rows: Rows, severity: str, **values: Any) -> UUID:
    """Add an open gap of a deadline that is to come."""
    of = obligation(rows)
    given = {
        "obligation_id": of, "deadline_id": deadline(rows, -5, of), "gap_type": "NO_EVIDENCE",
        "severity": severity, "detected_at": AS_OF - DAY,
    }  # fmt: skip
    return rows.add("evidence_gaps", **(given | values))


def escalation(rows: Rows, entity: UUID, level: int, **values: Any) -> UUID:
    """Add an escalation of a deadline."""
    given = {
        "company_id": rows.company, "site_id": rows.site, "entity_type": "DEADLINE", "entity_id": entity,
        "escalation_level": level, "escalated_at": AS_OF - DAY,
    }  # fmt: skip
    return rows.add("escalations", **(given | values))


def score(rows: Rows, days: int, band: str, **values: Any) -> UUID:
    """Add the score of so many days ago."""
    parts = ("overdue_score", "evidence_gap_score", "escalation_score", "historical_score")
    given = {
        "site_id": rows.site, "score_date": TODAY - days * DAY, "risk_band": band, "risk_score": 10,
        "calculated_at": AS_OF - days * DAY,
    } | dict.fromkeys(parts, 0)  # fmt: skip
    return rows.add("risk_scores", **(given | values))


def job(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(risk_score_calculation, NothingOutside(), as_of, **(ALL | params))


def scored(rows: Rows, day: date = TODAY) -> Any:
    """Return the site's score of a day."""
    (found,) = [row for row in rows.all("risk_scores") if row.site_id == rows.site and row.score_date == day]
    return found


def critical(rows: Rows) -> None:
    """Make all that is overdue, open and escalated as bad as it gets: 40 + 25 + 20 + 15."""
    keys = [deadline(rows, 31, status="OVERDUE") for _ in range(3)]
    for key in keys:
        escalation(rows, key, 4)
        gap(rows, "CRITICAL")


@pytest.mark.parametrize(
    ("days", "points"), [(-1, 0), (0, 0), (1, 10), (7, 10), (8, 20), (30, 20), (31, 40), (400, 40)]
)
def test_points_of_what_is_overdue(rows: Rows, days: int, points: int) -> None:
    """By how long, from the day after; whatever its status says, since breaches wait for no other job."""
    deadline(rows, days, status="PENDING")
    job(rows)
    assert scored(rows).overdue_score == points


def test_by_deadline_else_by_obligation(rows: Rows) -> None:
    """An obligation with a deadline counts by that alone; one without, by its own date."""
    both = obligation(rows, deadline_date=TODAY - 40 * DAY, status="OVERDUE")
    deadline(rows, 5, both, status="OVERDUE")
    deadline(rows, 6, both, status="OVERDUE")
    obligation(rows, deadline_date=TODAY - 8 * DAY, status="OVERDUE")
    job(rows)
    assert scored(rows).overdue_score == 10 + 10 + 20
    assert scored(rows).factors["overdue"] == {
        "items": 3,
        "to_7_days": 2,
        "to_30_days": 1,
        "beyond_30_days": 0,
    }


@pytest.mark.parametrize(
    ("of", "due"),
    [
        ({"status": "NOT_APPLICABLE"}, {"status": "OVERDUE"}),
        ({"deleted_at": AS_OF}, {"status": "OVERDUE"}),
        ({}, {"status": "COMPLETED", "completed_at": AS_OF - DAY}),
        ({}, {"status": "NOT_APPLICABLE"}),
        ({"deadline_date": TODAY - DAY, "status": "COMPLETED"}, None),
        ({"deadline_date": TODAY - DAY, "deleted_at": AS_OF}, None),
    ],
)
def test_what_is_not_overdue(rows: Rows, of: dict[str, Any], due: dict[str, Any] | None) -> None:
    """What is done, or does not apply, or is gone."""
    key = obligation(rows, **of)
    if due is not None:
        deadline(rows, 40, key, **due)
    job(rows)
    assert scored(rows).overdue_score == 0


def test_as_of_a_day_that_is_past(rows: Rows) -> None:
    """A day made up for counts what was open then: completed, found, resolved and escalated since does not matter."""
    key = deadline(rows, 5, status="COMPLETED", completed_at=AS_OF - timedelta(hours=1))
    gap(rows, "HIGH", detected_at=AS_OF - 3 * DAY, resolved_at=AS_OF - timedelta(hours=1))
    gap(rows, "LOW", detected_at=AS_OF)
    escalation(rows, key, 1, escalated_at=AS_OF - 3 * DAY, resolved_at=AS_OF - timedelta(hours=1))
    escalation(rows, key, 2, escalated_at=AS_OF)
    for as_of, parts in ((AS_OF, (0, 5, 30)), (AS_OF - DAY, (10, 20, 15))):
        job(rows, as_of)
        found = scored(rows, as_of.date())
        assert (found.overdue_score, found.evidence_gap_score, found.escalation_score) == parts


@pytest.mark.parametrize(("severity", "points"), [("CRITICAL", 40), ("HIGH", 20), ("MEDIUM", 10), ("LOW", 5)])
def test_points_of_a_gap(rows: Rows, severity: str, points: int) -> None:
    """By its severity, while it is open."""
    gap(rows, severity)
    gap(rows, "CRITICAL", resolved_at=AS_OF)
    job(rows)
    assert scored(rows).evidence_gap_score == points
    assert scored(rows).factors["evidence_gaps"][severity.lower()] == 1


def test_the_highest_level_of_each_entity(rows: Rows) -> None:
    """15 points a level of what is not resolved; lower levels of the same entity add nothing."""
    one, two = uuid4(), uuid4()
    for level in (1, 2, 3):
        escalation(rows, one, level)
    escalation(rows, two, 1)
    escalation(rows, two, 4, resolved_at=AS_OF)
    job(rows)
    assert scored(rows).escalation_score == 15 * 3 + 15 * 1
    assert scored(rows).factors["escalations"] == {"entities": 2, "highest_level": 3}


@pytest.mark.parametrize(
    ("due", "share"),
    [
        ([], 0),
        ([(91, "OVERDUE", None)], 0),
        ([(90, "OVERDUE", None)], 100),
        ([(1, "PENDING", None)], 100),
        ([(0, "PENDING", None)], 0),
        ([(10, "COMPLETED", 10)], 0),
        ([(10, "COMPLETED", 9)], 100),
        ([(10, "COMPLETED", None)], 0),
        ([(10, "NOT_APPLICABLE", None)], 0),
        ([(10, "COMPLETED", 10), (20, "COMPLETED", 20), (30, "COMPLETED", 1)], Decimal("33.3")),
    ],
)
def test_history(rows: Rows, due: list[tuple[int, str, int | None]], share: Decimal) -> None:
    """The share of the last 90 days' deadlines that were missed, or completed after their day."""
    for days, status, done in due:
        completed = None if done is None else datetime(2026, 11, 25, 23, 59, tzinfo=UTC) - done * DAY
        deadline(rows, days, status=status, completed_at=completed)
    job(rows)
    assert scored(rows).historical_score == share


def test_caps_and_weights(rows: Rows) -> None:
    """Each factor ends at 100, so the sum does: 40, 25, 20 and 15 percent of it."""
    critical(rows)
    deadline(rows, 5, status="COMPLETED", completed_at=AS_OF - 9 * DAY)
    job(rows)
    found = scored(rows)
    parts = (found.overdue_score, found.evidence_gap_score, found.escalation_score, found.historical_score)
    assert parts == (100, 100, 100, 75)
    assert (found.risk_score, found.risk_band) == (Decimal("96.3"), "CRITICAL")


@pytest.mark.parametrize(
    ("overdue", "gaps", "levels", "total", "band"),
    [
        ([], [], [], "0.0", "LOW"),
        ([200], ["HIGH", "LOW"], [], "22.3", "LOW"),
        ([200], ["HIGH", "HIGH", "LOW"], [], "27.3", "MEDIUM"),
        ([], ["CRITICAL", "CRITICAL", "HIGH"], [], "25.0", "LOW"),
        ([200, 200, 200], ["CRITICAL"], [], "50.0", "MEDIUM"),
        ([200, 200, 200], ["CRITICAL"], [1], "53.0", "HIGH"),
        ([200, 200, 200], ["CRITICAL"] * 3, [3], "74.0", "HIGH"),
        ([200, 200, 200], ["CRITICAL"] * 3, [4], "77.0", "CRITICAL"),
    ],
)
def test_bands(
    rows: Rows, overdue: list[int], gaps: list[str], levels: list[int], total: str, band: str
) -> None:
    """Up to 25, 50 and 75; one decimal."""
    for days in overdue:
        deadline(rows, days, status="OVERDUE")
    for severity in gaps:
        gap(rows, severity)
    for level in levels:
        escalation(rows, uuid4(), level)
    run = job(rows)
    assert (scored(rows).risk_score, scored(rows).risk_band) == (Decimal(total), band)
    names = ("low", "medium", "high", "critical")
    assert {name: run.counts[name] for name in names} == {name: int(name == band.lower()) for name in names}
    assert run.counts["sites_processed"] == 1


def test_clocks_are_counted(rows: Rows) -> None:
    """Of those that run, how many of each criticality."""
    for criticality, status in (
        ("RED", "ACTIVE"),
        ("RED", "OVERDUE"),
        ("AMBER", "ACTIVE"),
        ("RED", "COMPLETED"),
    ):
        rows.add(
            "compliance_clocks_universal", company_id=rows.company, site_id=rows.site, entity_type="PERMIT",
            entity_id=uuid4(), clock_type="X", target_date=TODAY, criticality=criticality, status=status,
        )  # fmt: skip
    job(rows)
    assert scored(rows).factors["clocks"] == {"red": 2, "amber": 1, "green": 0}


def test_one_row_a_site_and_day(rows: Rows) -> None:
    """A second run writes nothing; when something changed it corrects the day's row; the next day has its own."""
    deadline(rows, 5, status="OVERDUE")
    first, second = job(rows), job(rows, AS_OF + timedelta(hours=1))
    assert (first.counts["scores_stored"], second.counts["scores_stored"]) == (1, 0)
    assert scored(rows).calculated_at == AS_OF
    deadline(rows, 5, status="OVERDUE")
    assert job(rows).counts["scores_stored"] == 1
    assert scored(rows).overdue_score == 20
    job(rows, AS_OF + DAY)
    assert len(rows.all("risk_scores")) == 2


@pytest.mark.parametrize(
    ("before", "told"),
    [([], 0), ([(1, "LOW")], 1), ([(9, "MEDIUM")], 1), ([(1, "HIGH"), (2, "LOW")], 1), ([(1, "CRITICAL")], 0),
     ([(1, "CRITICAL"), (2, "LOW")], 0)],
)  # fmt: skip
def test_a_worse_band_is_told(rows: Rows, before: list[tuple[int, str]], told: int) -> None:
    """Against the last score, whenever that was; a first score is no news, and each band is told once a day."""
    critical(rows)
    for days, band in before:
        score(rows, days, band)
    run = job(rows)
    job(rows)
    mails = [row for row in rows.all("notifications") if row.channel == "EMAIL"]
    assert run.counts["alerts_triggered"] == len(mails) == told


def test_what_it_says(rows: Rows) -> None:
    """To the managers of the site alone, with both scores."""
    rows.user("admin", "ADMIN")
    critical(rows)
    score(rows, 1, "MEDIUM", risk_score=Decimal("30.5"))
    job(rows)
    (mail,) = [row for row in rows.all("notifications") if row.channel == "EMAIL"]
    assert mail.recipient_email == "manager@ecocomply.test"
    assert mail.subject == "Risk of Leeds Is Now CRITICAL"
    assert mail.body_text == "The risk score of Leeds went from 30.5 (MEDIUM) to 100.0 (CRITICAL)."
    assert (mail.notification_type, mail.entity_id) == ("RISK_BAND_WORSENED", rows.site)


@pytest.mark.parametrize(
    ("before", "days"),
    [([], 1), ([(1, "HIGH", 1)], 2), ([(1, "CRITICAL", 8)], 9), ([(1, "MEDIUM", 0)], 1), ([(2, "HIGH", 4)], 1),
     ([(1, "HIGH", 0)], 2)],
)  # fmt: skip
def test_days_in_a_row(rows: Rows, before: list[tuple[int, str, int]], days: int) -> None:
    """In HIGH or above, this one included; a day without a score ends the row."""
    critical(rows)
    for ago, band, row_of in before:
        score(rows, ago, band, consecutive_high_days=row_of)
    job(rows)
    assert scored(rows).consecutive_high_days == days


def test_a_low_day_ends_the_row(rows: Rows) -> None:
    """The count begins anew."""
    score(rows, 1, "HIGH", consecutive_high_days=5)
    job(rows)
    assert scored(rows).consecutive_high_days == 0


@pytest.mark.parametrize("param", ["company_id", "site_id"])
def test_a_param_narrows_it(rows: Rows, param: str) -> None:
    """Other sites have no score, nor have those that are closed or deleted."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    rows.add("sites", company_id=company, name="Closed", is_active=False)
    rows.add("sites", company_id=company, name="Gone", deleted_at=AS_OF)
    run = job(rows, AS_OF, **{param: str({"company_id": company, "site_id": site}[param])})
    assert [(row.company_id, row.site_id) for row in rows.all("risk_scores")] == [(company, site)]
    assert run.counts["sites_processed"] == 1


def test_a_site_that_can_not_be_scored_stands_alone(rows: Rows) -> None:
    """It is counted, and every other site has its score."""
    sites = [rows.add("sites", company_id=rows.company, name=f"Site {n}") for n in range(4)]
    rows.run_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN RAISE EXCEPTION 'bad' USING ERRCODE = '23514'; END $$"
    )
    rows.run_sql(
        "CREATE TRIGGER refuse BEFORE INSERT ON risk_scores FOR EACH ROW "
        f"WHEN (NEW.site_id = '{sites[1]}') EXECUTE FUNCTION refuse()"
    )
    run = job(rows)
    assert {row.site_id for row in rows.all("risk_scores")} == {rows.site, *sites} - {sites[1]}
    assert (run.counts["failed"], run.counts["scores_stored"]) == (1, 4)


def test_the_demo_data_gives_it_work(database_of: Callable[..., EngineDatabase]) -> None:
    """A demo shows scores of more than one band."""
    database = database_of("ecocomply")
    with database.engine.begin() as connection:
        generate(connection, today=TODAY, companies=3, obligations=90)
    run = job(Rows(database))
    assert run.counts["sites_processed"] > 0
    assert sum(run.counts[band] > 0 for band in ("low", "medium", "high", "critical")) > 1
