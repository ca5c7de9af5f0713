"""EcoComply's page of its jobs: the health with its limits, what runs, and how each type did."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from include.ecocomply.console import jobs
from include.ecocomply.console.jobs import HowFar, how_far
from include.ecocomply.job_records.metrics import JobSystemHealth
from tests.console.ecocomply_sample import RISK, Desk, row_of, words

PAGE = "/almanac/ecocomply/jobs"


def test_the_health_says_by_which_limits(eco_reader: TestClient) -> None:
    """Who reads `degraded` must see at a glance which figure makes it so."""
    page = eco_reader.get(PAGE).text
    assert "Health degraded" in words(page)
    assert row_of(page, "Stale jobs") == (
        "Stale jobs 1 degraded degraded with more than 0, unhealthy with more than 10"
    )
    assert row_of(page, "Open dead letters") == (
        "Open dead letters 3 healthy degraded with more than 10, unhealthy with more than 50"
    )
    assert row_of(page, "Jobs of the last hour that failed") == (
        "Jobs of the last hour that failed 3 healthy degraded with more than 20"
    )


@pytest.mark.parametrize(
    ("stale", "letters", "failed", "by_themselves"),
    [
        (0, 10, 20, ["healthy", "healthy", "healthy"]),
        (1, 11, 21, ["degraded", "degraded", "degraded"]),
        (10, 50, 9_999, ["degraded", "degraded", "degraded"]),
        (11, 51, 0, ["unhealthy", "unhealthy", "healthy"]),
    ],
)
def test_each_figure_by_itself(
    eco_common: Desk, stale: int, letters: int, failed: int, by_themselves: list[str]
) -> None:
    """The thresholds are more than 0, 10, 20 and more than 10, 50: each at its edge."""
    health = JobSystemHealth("healthy", stale, letters, failed, eco_common.now)
    assert [one.health for one in jobs.measures(health)] == by_themselves


def test_what_runs_says_how_far_it_is(eco_common: Desk, eco_reader: TestClient) -> None:
    """Progress, since when, whose it is, and the way to its run and its row."""
    page = eco_reader.get(PAGE).text
    running = row_of(page, "Processed 20/45 sites")
    assert "Acme" in running
    assert "20 of 45" in running
    assert "1 of 3" in running
    assert f'href="/almanac/runs/{RISK}/scheduled__3"' in page
    assert "/almanac/queues/ecocomply.background_jobs/row?key=" in page
    silent = row_of(page, "alert(1)")
    assert "says nothing of it" in silent
    assert "stale" in silent
    assert "<script>alert" not in page


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (None, HowFar()),
        ("half", HowFar()),
        ([1, 2], HowFar()),
        ({"current": 1, "total": 2, "said": "x"}, HowFar(1, 2, "x")),
        ({"current": -1, "total": True, "said": 7}, HowFar()),
        ({"current": 3, "total": 0}, HowFar(3, 0)),
    ],
)
def test_progress_is_an_applications_to_write(progress: object, expected: HowFar) -> None:
    """A worker of the application's own may put anything there; the page is shown all the same."""
    assert how_far(progress) == expected
    assert not HowFar(3, 0).is_known


def test_metrics_by_period(eco_desk: Desk) -> None:
    """An hour, a day, a week: each has the jobs that were made in it."""
    records = eco_desk.records
    old = records.add("DEADLINE_ALERT")
    records.execute(
        "UPDATE background_jobs SET created_at = now() - interval '2 days' WHERE id = :id", id=old
    )
    reader = eco_desk.as_user("vera")
    day, week = (reader.get(PAGE, params={"period": one}).text for one in ("day", "week"))
    assert "DEADLINE_ALERT" not in words(day)
    assert row_of(week, "DEADLINE_ALERT").startswith("DEADLINE_ALERT 1 0 0 0.00 % none none none 0")
    risk = row_of(day, '>RISK_SCORE_CALCULATION</bdi></a></th>\n      <td class="number">3</td>')
    assert risk.startswith("RISK_SCORE_CALCULATION 3 0 2 0.00 %")
    assert risk.endswith(" 2")
    refreshed = row_of(day, "kind=REFRESH_COMPLIANCE_DASHBOARD")
    assert refreshed.startswith("REFRESH_COMPLIANCE_DASHBOARD 1 1 0 100.00 %")


def test_an_unknown_period_is_refused(eco_reader: TestClient) -> None:
    """A made-up address gets a sentence."""
    assert eco_reader.get(PAGE, params={"period": "year"}).status_code == 422


def test_nothing_runs_and_nothing_was_made(eco_desk: Desk) -> None:
    """No table without rows."""
    eco_desk.records.forget()
    said = words(eco_desk.as_user("vera").get(PAGE).text)
    assert "Health healthy" in said
    assert "Nothing runs now." in said
    assert "No job was made in the last day." in said
