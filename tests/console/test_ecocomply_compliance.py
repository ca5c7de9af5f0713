"""EcoComply's compliance dashboard: the materialised view by company, site and module."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from tests.console.ecocomply_sample import Desk, pages, row_of, words
from tests.console.sample import HOSTILE, number

PAGE = "/almanac/ecocomply/compliance"


def test_the_clocks_by_company(eco_common: Desk, eco_reader: TestClient) -> None:
    """All four aggregates of the view: all, by criticality, by status, the next date; and how fresh they are."""
    page = eco_reader.get(PAGE).text
    assert row_of(page, ">Acme<").startswith("Acme 1 red 1 amber 2 green 4 3 1 0")
    assert "refreshed on" in words(page)


def test_the_clocks_of_a_company(eco_common: Desk, eco_reader: TestClient) -> None:
    """By site and module, with the dates that come up and how far they are."""
    page = eco_reader.get(f"{PAGE}/{eco_common.records.company}").text
    said = row_of(page, ">Works<")
    assert said.startswith("Works Permits 1 red 1 amber 2 green 4 3 1 0")
    assert "(in 20 days)" in said
    assert "(in 70 days)" in said


def test_the_page_has_what_the_view_has(eco_desk: Desk) -> None:
    """The view is as of its refresh; what changed since is not there until the next one."""
    eco_desk.records.execute("DELETE FROM compliance_clocks_universal")
    reader = eco_desk.as_user("vera")
    assert "Acme" in words(reader.get(PAGE).text)
    with eco_desk.engine.begin() as connection:
        connection.execute(text("REFRESH MATERIALIZED VIEW compliance_clock_dashboard"))
    eco_desk.records.forget()
    page = words(reader.get(PAGE).text)
    assert "The dashboard has no clocks." in page
    assert "no refresh of it is on record" in page


def test_companies_are_found_by_name_or_id(eco_common: Desk, eco_reader: TestClient) -> None:
    """Part of a name or a whole id."""
    for query in ("ACME", str(eco_common.records.company)):
        page = words(eco_reader.get(PAGE, params={"company": query}).text)
        assert "Acme" in page
        assert "evil" not in page
    assert "No company matches" in words(eco_reader.get(PAGE, params={"company": "_cme"}).text)


def test_hostile_text_stays_text(eco_common: Desk, eco_reader: TestClient) -> None:
    """Case E4: names of companies and sites."""
    for address in (PAGE, f"{PAGE}?company={HOSTILE}", f"{PAGE}/{eco_common.records.other}"):
        page = eco_reader.get(address).text
        assert "evil.test" in page
        assert '<a href="https://evil.test">' not in page


def test_long_lists_come_in_pages(eco_desk: Desk) -> None:
    """Each company once, those with more red clocks first."""
    for n in range(101):
        company = number(f"bulk {n}")
        eco_desk.add("companies", {"id": company, "name": f"Bulk {n}"})
        eco_desk.add(
            "compliance_clocks_universal",
            {
                "company_id": company, "entity_type": "OBLIGATION", "entity_id": company, "clock_type": "x",
                "target_date": eco_desk.today, "criticality": "RED" if n < 60 else "GREEN",
            },
        )  # fmt: skip
    with eco_desk.engine.begin() as connection:
        connection.execute(text("REFRESH MATERIALIZED VIEW compliance_clock_dashboard"))
    found, count = pages(eco_desk.as_user("vera"), PAGE, r'href="/almanac/ecocomply/compliance/([^"]+)"')
    assert (count, len(found), len(set(found))) == (3, 103, 103)
    assert set(found[:62]) == {
        str(one)
        for one in (
            *(number(f"bulk {n}") for n in range(60)),
            eco_desk.records.company,
            eco_desk.records.other,
        )
    }


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{PAGE}/{number('nobody')}", 404),
        (f"{PAGE}/nonsense", 422),
        (f"{PAGE}?after=x&after_id={number('nobody')}", 422),
        (f"{PAGE}?company={'x' * 201}", 422),
    ],
)
def test_what_is_not_there(eco_reader: TestClient, path: str, status: int) -> None:
    """A made-up address gets a sentence, never a stack."""
    assert eco_reader.get(path).status_code == status
