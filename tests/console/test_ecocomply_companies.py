"""EcoComply's companies: each with what is open and late, and what the jobs did for it; and who may see what."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from airflow.api_fastapi.app import get_auth_manager
from fastapi.testclient import TestClient

from console.ecocomply.companies import DAGS
from include.ecocomply.console.companies import MOST
from include.ecocomply.generator import generate
from include.ecocomply.job_types import DAGS as CATALOGUE
from include.ecocomply.tables import METADATA
from tests.console.ecocomply_sample import Desk, pages, row_of, words
from tests.console.sample import HOSTILE, number

PAGE = "/almanac/ecocomply/companies"
ALL = ("jobs", "dead-letters", "notifications", "compliance", "risk", "companies")


def section(html: str, name: str) -> str:
    """Return one of a company's lists."""
    return html[html.index(f'<section aria-labelledby="{name}">') :].split("</section>", 1)[0]


def test_a_company_at_a_glance(eco_common: Desk, eco_reader: TestClient) -> None:
    """Each list has its rows, and none of another company's."""
    page = eco_reader.get(f"{PAGE}/{eco_common.records.company}").text
    said = {
        name: words(section(page, name)) for name in re.findall(r'<section aria-labelledby="(\w+)"', page)
    }
    assert "Works 62.5 HIGH active" in said["sites"]
    assert re.search(r"Sample the outfall Works \d+ \w+ \d{4} 2 days ago OVERDUE", said["deadlines"])
    assert "in 3 days DUE_SOON" in said["deadlines"]
    assert "COMPLETED" not in said["deadlines"]
    assert "MONTHLY OVERDUE" in said["obligations"]
    assert "-1 days red overdue" in said["clocks"]
    assert "60 days green" in said["clocks"]
    assert "no evidence" in said["gaps"]
    assert "2 to 1 person" in said["escalations"]
    assert "RISK_SCORE_CALCULATION FAILED" in said["jobs"]
    assert "HTTP 503 from feed 17" in said["jobs"]
    assert "waits for the daily digest" in said["notifications"]
    assert "JOB_ERROR BACKGROUND_JOB" in said["entries"]
    assert "evil.test" not in page


def test_every_list_is_bounded(eco_desk: Desk) -> None:
    """A company of any size is one quick page; it says where the rest is."""
    for n in range(MOST + 1):
        eco_desk.told(f"bulk {n}", channel="IN_APP")
    page = eco_desk.as_user("vera").get(f"{PAGE}/{eco_desk.records.company}").text
    told = section(page, "notifications")
    assert told.count("/almanac/ecocomply/notifications/") == MOST
    assert f"The first {MOST}." in words(told)
    assert f"notifications?company={eco_desk.records.company}" in told


def test_a_company_without_anything(eco_desk: Desk) -> None:
    """No table without rows."""
    eco_desk.add("companies", {"id": number("empty"), "name": "Empty", "is_active": False})
    said = words(eco_desk.as_user("vera").get(f"{PAGE}/{number('empty')}").text)
    for sentence in (
        "It has no site.", "No deadline is open.", "No obligation is open.", "No clock is running.", "No gap is open.",
        "Nothing is escalated.", "No job was its own.", "Nobody was told anything.", "It has no entries.", "not active",
    ):  # fmt: skip
        assert sentence in said


def test_companies_by_name(eco_common: Desk, eco_reader: TestClient) -> None:
    """With how many sites and what is late; found by part of the name or the id."""
    page = eco_reader.get(PAGE).text
    assert row_of(page, ">Acme<") == "Acme 1 1 active"
    for query in ("cm", str(eco_common.records.company)):
        assert len(re.findall(rf'href="{PAGE}/', eco_reader.get(PAGE, params={"q": query}).text)) == 1


def test_hostile_text_stays_text(eco_common: Desk, eco_reader: TestClient) -> None:
    """Case E4: a company, its site, its obligations and all that is said of them."""
    for address in (PAGE, f"{PAGE}?q={HOSTILE.replace('&', '%26')}", f"{PAGE}/{eco_common.records.other}"):
        page = eco_reader.get(address).text
        assert "evil.test" in page
        assert '<a href="https://evil.test">' not in page


def test_long_lists_come_in_pages(eco_desk: Desk) -> None:
    """Each company once, though all have one name."""
    eco_desk.add("companies", *({"id": number(f"same {n}"), "name": "Same"} for n in range(101)))
    found, count = pages(eco_desk.as_user("vera"), f"{PAGE}?q=same", rf'href="{PAGE}/([^"]+)"')
    assert (count, len(found), len(set(found))) == (3, 101, 101)


@pytest.mark.parametrize(("path", "status"), [(f"{PAGE}/{number('nobody')}", 404), (f"{PAGE}/nonsense", 422)])
def test_what_is_not_there(eco_reader: TestClient, path: str, status: int) -> None:
    """A made-up address gets a sentence, never a stack."""
    assert eco_reader.get(path).status_code == status


@pytest.mark.parametrize("page", ALL)
def test_nobody_gets_nothing_and_a_viewer_reads(eco_common: Desk, eco_reader: TestClient, page: str) -> None:
    """Every page of EcoComply wants a login, and no more than reading."""
    anonymous = eco_common.as_user(None).get(f"/almanac/ecocomply/{page}")
    assert anonymous.status_code == 401
    assert "Acme" not in anonymous.text
    answer = eco_reader.get(f"/almanac/ecocomply/{page}")
    assert answer.status_code == 200
    assert 'aria-current="page"' in answer.text
    assert ("evil.test" in answer.text) == (page != "jobs")


@pytest.mark.parametrize(
    ("dag", "closed"),
    [
        ("ecocomply_job_dispatcher", {"jobs", "dead-letters", "companies"}),
        ("ecocomply_notification_delivery", {"notifications", "companies"}),
        ("ecocomply_refresh_compliance_dashboard", {"compliance"}),
        ("ecocomply_risk_score_calculation", {"risk", "companies"}),
        *((dag, {"companies"}) for dag in DAGS[2:-1]),
    ],
)
def test_a_page_is_for_who_reads_its_dags(
    eco_common: Desk, eco_reader: TestClient, monkeypatch: pytest.MonkeyPatch, dag: str, closed: set[str]
) -> None:
    """Roles may differ by DAG: a page shows what its DAGs do, and takes the right to read their runs."""
    manager = get_auth_manager()
    allowed = manager.is_authorized_dag

    def decide(**asked: Any) -> bool:
        return asked["details"].id != dag and allowed(**asked)

    monkeypatch.setattr(manager, "is_authorized_dag", decide)
    answers = {page: eco_reader.get(f"/almanac/ecocomply/{page}").status_code for page in ALL}
    assert answers == {page: 403 if page in closed else 200 for page in ALL}


def test_the_guards_name_dags_that_there_are() -> None:
    """A name that is none would guard nothing that a role could be given."""
    assert set(DAGS) - set(CATALOGUE) == {"ecocomply_job_dispatcher"}


def test_data_of_any_kind_has_something_on_every_page(eco_desk: Desk) -> None:
    """The generator fills every table: all of it can be read, and leads on."""
    with eco_desk.engine.begin() as connection:
        for table in reversed(METADATA.sorted_tables):
            connection.execute(table.delete())
        generate(connection, today=eco_desk.today, companies=3, obligations=90)
    reader = eco_desk.as_user("vera")
    for page in ALL:
        answer = reader.get(f"/almanac/ecocomply/{page}")
        assert answer.status_code == 200, page
        links = re.findall(rf'href="(/almanac/ecocomply/{page}/[^"]+)"', answer.text)
        assert page == "jobs" or links, page
        for link in links[:3]:
            assert reader.get(unescape(link)).status_code == 200, link
