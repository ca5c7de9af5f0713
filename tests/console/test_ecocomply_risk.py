"""EcoComply's pages of risk: the latest score of each site, what it is made of, and its history as a picture."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest
from fastapi.testclient import TestClient

from console.ecocomply.chart import Chart
from tests.console.ecocomply_sample import Desk, pages, row_of, words
from tests.console.sample import HOSTILE, number

PAGE = "/almanac/ecocomply/risk"


def test_the_latest_score_of_each_site(eco_common: Desk, eco_reader: TestClient) -> None:
    """One row a site: its latest day, with the parts, and what it was before."""
    page = eco_reader.get(PAGE).text
    assert row_of(page, ">Works<").startswith(
        "Works Acme 62.5 was 61.5 HIGH day 3 in a row 80.0 40.0 60.0 55.5"
    )
    assert len(re.findall(r'href="/almanac/ecocomply/risk/', page)) == 2


@pytest.mark.parametrize(
    ("query", "sites"),
    [({"company": "acm"}, 1), ({"band": "HIGH"}, 2), ({"band": "LOW"}, 0), ({"company": "%"}, 0)],
    ids=str,
)
def test_the_sites_are_narrowed(eco_reader: TestClient, query: dict[str, str], sites: int) -> None:
    """By company and by band; words are no pattern."""
    page = eco_reader.get(PAGE, params=query).text
    assert len(re.findall(r'href="/almanac/ecocomply/risk/', page)) == sites
    assert ("No site matches" in words(page)) == (sites == 0)


def test_what_a_score_is_made_of(eco_common: Desk, eco_reader: TestClient) -> None:
    """Each part with its weight and what it adds: the sum is the score that the rules give."""
    page = eco_reader.get(f"{PAGE}/{eco_common.records.site}").text
    assert row_of(page, "Overdue obligations") == "Overdue obligations 80.0 40 % 32.0"
    assert row_of(page, "Gaps in the evidence") == "Gaps in the evidence 40.0 25 % 10.0"
    assert row_of(page, '<th scope="row">Escalations') == "Escalations 60.0 20 % 12.0"
    assert row_of(page, "The last 90 days") == "The last 90 days 55.5 15 % 8.3"
    assert "overdue items 3" in words(page)


def test_the_history_is_a_picture_and_a_table(eco_common: Desk, eco_reader: TestClient) -> None:
    """Who can't see the picture reads the sentence and the table; a day without a score breaks the line."""
    page = eco_reader.get(f"{PAGE}/{eco_common.records.site}", params={"days": "30"}).text
    assert 'role="img" aria-labelledby="chart-title chart-said"' in page
    assert "From 58.5 to 62.5, the lowest 58.5, the highest 62.5, on 4 of 30 days." in words(page)
    assert len(re.findall("<circle", page)) == 4
    assert len(re.findall("<polyline", page)) == 1
    table = page[page.index("Scores day by day") :]
    assert re.findall(r'<td class="number">([\d.]+)</td>', table) == ["62.5", "61.5", "60.5", "58.5"]
    whole = eco_reader.get(f"{PAGE}/{eco_common.records.site}", params={"days": "90"}).text
    assert len(re.findall("<circle", whole)) == 5
    assert "style=" not in whole
    assert whole.count("<script") == 1


def test_where_a_day_stands_in_the_picture() -> None:
    """The first day left, the last right, 0 below, 100 above, nothing beyond the edges."""
    last = date(2024, 3, 1)
    chart = Chart.of(
        [(last - timedelta(days=29), 0.0), (last - timedelta(days=1), 100.0), (last, 50.0)], last, 30
    )
    first, before, end = chart.points
    assert chart.first == date(2024, 2, 1)
    assert (first.x, first.y) == (chart.left, chart.bottom)
    assert before.y == 10
    assert (end.x, end.y) == (chart.right, (10 + chart.bottom) / 2)
    assert chart.lines == [f"{before.x},{before.y} {end.x},{end.y}"]
    assert sum(band.height for band in chart.bands) == chart.bottom - 10
    assert Chart.of([], last, 30).said == "There is no score in these days."
    assert Chart.of([(last, 1.0)], last, 1).points[0].x == chart.left


def test_hostile_text_stays_text(eco_reader: TestClient) -> None:
    """Case E4: names of sites and companies, and what a job kept as factors."""
    for address in (PAGE, f"{PAGE}?company={HOSTILE}", f"{PAGE}/{number('evil site')}"):
        page = eco_reader.get(address).text
        assert "evil.test" in page
        assert '<a href="https://evil.test">' not in page


def test_long_lists_come_in_pages(eco_desk: Desk) -> None:
    """Each site once, though all have one score."""
    for n in range(101):
        site = {"id": number(f"bulk site {n}"), "company_id": eco_desk.records.company, "name": f"S{n}"}
        eco_desk.add("sites", site)
        eco_desk.add(
            "risk_scores",
            {
                "site_id": site["id"], "score_date": eco_desk.today, "risk_score": 80.1, "risk_band": "CRITICAL",
                "overdue_score": 0, "evidence_gap_score": 0, "escalation_score": 0, "historical_score": 0,
                "calculated_at": eco_desk.now,
            },
        )  # fmt: skip
    found, count = pages(
        eco_desk.as_user("vera"), f"{PAGE}?band=CRITICAL", r'href="/almanac/ecocomply/risk/([^"]+)"'
    )
    assert (count, len(found), len(set(found))) == (3, 101, 101)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{PAGE}/{number('nobody')}", 404),
        (f"{PAGE}/nonsense", 422),
        (f"{PAGE}?band=AWFUL", 422),
        (f"{PAGE}?after=x&after_id={number('nobody')}", 422),
        (f"{PAGE}?after=nan&after_id={number('nobody')}", 422),
        (f"{PAGE}/{number('evil site')}?days=7", 422),
    ],
)
def test_what_is_not_there(eco_reader: TestClient, path: str, status: int) -> None:
    """A made-up address gets a sentence, never a stack."""
    assert eco_reader.get(path).status_code == status
