"""What a newcomer follows from page to page: runs beside previews, params, and links that lead somewhere."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from urllib.parse import urljoin

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from include.platform.summaries import RunKey, begin_run
from include.platform.tables import RUN_SUMMARY
from tests.console import sample
from tests.console.conftest import Console
from tests.console.sample import DISPATCH, EXPIRY, LAB, number
from tests.console.test_pages import MAIL, words

RUNS = "/almanac/runs"


def test_a_preview_does_not_hide_the_run_before_it(console: Console, viewer: TestClient) -> None:
    """Whoever looks ahead must not take away from others what was done last night."""
    minute = timedelta(minutes=1)
    for name, ago, preview in (
        ("real and late", 5, False),
        ("preview of before", 9, True),
        ("first look", 3, True),
        ("second look", 2, True),
    ):
        run = {"dag_id": DISPATCH, "run_id": name, "as_of": console.now, "state": "success"}
        at = console.now - ago * minute
        sample.put(console.almanac.engine, RUN_SUMMARY, run | {"started_at": at, "preview": preview})
    html = viewer.get(RUNS).text
    assert f"/runs/{DISPATCH}/real%20and%20late" in html
    assert f"/runs/{DISPATCH}/second%20look" in html
    assert "preview%20of%20before" not in html
    assert "first%20look" not in html
    shown = words(html)
    assert shown.index(f"{DISPATCH} all runs") < shown.index("a preview since then")
    assert shown.count("a preview since then") == 1


def test_a_dag_that_was_only_previewed_is_listed(reader: TestClient) -> None:
    """The sample's session expiry has never run but in a preview, which is then all there is to show."""
    assert f"{EXPIRY} all runs success preview" in words(reader.get(RUNS).text)


def test_a_run_shows_what_it_was_given(console: Console, viewer: TestClient) -> None:
    """Two runs of one night that did different things differ in their params."""
    given = {"grace_days": 30, "certificate_id": None, "name": "<b>x</b>"}
    begin_run(console.almanac, RunKey(EXPIRY, "given"), console.now, preview=False, params=given)
    begin_run(console.almanac, RunKey(EXPIRY, "plain"), console.now, preview=False, params={})
    page = viewer.get(f"{RUNS}/{EXPIRY}/given").text
    assert "Params certificate_id none, grace_days 30, name <b>x</b>" in words(page)
    assert "none of its own" in words(viewer.get(f"{RUNS}/{EXPIRY}/plain").text)
    before = f"{RUNS}/{EXPIRY}/manual__2027-03-10T08:00:00+00:00"
    assert "Params not kept" in words(viewer.get(before).text)


@pytest.mark.parametrize(
    "run_id", [".", "..", "a/b", "../lab", "abc\n", "a\nb", "a\\b", "?after=1", "%2E", "ñ #1"]
)
def test_every_id_of_a_run_has_a_page(console: Console, viewer: TestClient, run_id: str) -> None:
    """Airflow takes almost any text from who triggers; a browser takes some of them for steps through folders."""
    begin_run(console.almanac, RunKey(EXPIRY, run_id), console.now, preview=False, params={"grace_days": 77})
    page = viewer.get(f"{RUNS}/{EXPIRY}").text
    links = re.findall(r'<th scope="row" class="code"><a href="([^"]*)">', page)
    pages = [viewer.get(urljoin(RUNS, unescape(each))) for each in links]
    assert {found.status_code for found in pages} == {200}
    assert [found for found in pages if "grace_days 77" in words(found.text)]


@pytest.mark.parametrize("path", [f"{RUNS}/no_such_dag", f"{RUNS}/clearpath_sesion_expiry"])
def test_a_dag_that_is_not_there_is_not_found(reader: TestClient, path: str) -> None:
    """A slip in an address must not look like a DAG that has never run."""
    answer = reader.get(path)
    assert answer.status_code == 404
    assert "Airflow knows no DAG" in words(answer.text)


def test_a_dag_without_runs_is_found(reader: TestClient) -> None:
    """It is there, and has not run: two different things."""
    answer = reader.get(f"{RUNS}/clearpath_cnrpp_expiry_alert")
    assert answer.status_code == 200
    assert "It has not run yet" in words(answer.text)


def test_only_a_run_with_a_page_is_a_link(console: Console, viewer: TestClient) -> None:
    """A claim outlives the summary of its run, and may be of another installation's: no link to nowhere."""
    known = viewer.get(f"{MAIL}/{number('claimed')}").text
    assert f'href="/almanac/runs/{DISPATCH}/scheduled__2027-03-10T09:00:00+00:00"' in known
    unknown = viewer.get(f"{MAIL}/{number('sent')}").text
    assert "scheduled__2027-03-01T09:00:00+00:00" in words(unknown)
    assert f'href="/almanac/runs/{DISPATCH}/' not in unknown
    console.opened.close()
    clearpath, nowhere = (
        console.clearpath.engine.url,
        console.almanac.engine.url.set(query={"host": "/nowhere"}),
    )
    console.opened._look_up = lambda name: nowhere if name == "almanac_db" else clearpath  # noqa: SLF001 - as Airflow would say
    assert viewer.get(f"{MAIL}/{number('claimed')}").status_code == 200


def test_tries_that_nobody_claimed_here_are_told_apart(reader: TestClient) -> None:
    """A mail of an adopted database was tried three times, and not by this platform."""
    assert "was tried without this platform" in words(reader.get(f"{MAIL}/{number('abandoned')}").text)
    assert "No run has claimed this mail" in words(reader.get(f"{MAIL}/{number('due')}").text)


def test_an_id_that_is_none_is_said_in_our_words(reader: TestClient) -> None:
    """The library's words are about hexadecimal characters and groups."""
    answer = reader.get(f"{MAIL}/nonsense")
    assert answer.status_code == 422
    assert "mail id: 'nonsense' is no id" in words(answer.text)
    place = reader.get(f"{MAIL}/{number('sent')}/message/{number('claim sent')}/first")
    assert "position: 'first' is no whole number" in words(place.text)


def test_all_lab_records_are_counted(reader: TestClient) -> None:
    """The first choice has its number like the others, so that they can be compared with a run's count."""
    assert "all 2 ambiguous 1 no unit 1" in words(reader.get("/almanac/clearpath/lab").text)
    assert LAB in reader.get("/almanac/clearpath/lab").text


def test_a_mail_that_waits_for_a_person_has_the_statement(reader: TestClient) -> None:
    """At night nobody should have to work out which flags to set; every other mail offers nothing."""
    unknown = words(reader.get(f"{MAIL}/{number('unknown')}").text)
    assert "make sql DB=clearpath" in unknown
    assert unknown.count(f"WHERE e.id = '{number('unknown')}'") == 2
    assert "The address is mended" in words(reader.get(f"{MAIL}/{number('abandoned')}").text)
    for name in ("sent", "due", "retry", "cancelled"):
        assert "A person decides" not in words(reader.get(f"{MAIL}/{number(name)}").text)


def test_a_duplicate_leads_to_the_mail_that_was_sent(reader: TestClient) -> None:
    """The sentence names that mail, so it must be one click away."""
    page = reader.get(f"{MAIL}/{number('duplicate')}").text
    assert f'href="/almanac/clearpath/mail/{number("sent")}"' in page
    assert "Sent in its place" not in words(reader.get(f"{MAIL}/{number('retry')}").text)


def test_a_badge_is_not_said_twice(reader: TestClient) -> None:
    """Badge and sentence are read together: `duplicate`, `of the mail sent on …`."""
    shown = words(reader.get(MAIL).text)
    assert "duplicate of the mail sent on" in shown
    for word in ("duplicate duplicate", "sent sent", "outcome unknown outcome unknown"):
        assert word not in shown
        for name in ("duplicate", "sent", "unknown"):
            assert word not in words(reader.get(f"{MAIL}/{number(name)}").text)


def test_what_nobody_said_is_not_the_providers(console: Console, viewer: TestClient) -> None:
    """Of a claim that was never answered the reason is ours."""
    lost = "UPDATE email_attempts SET outcome = 'unknown', reason = 'begun and never answered' WHERE email_id = :id"
    with console.clearpath.engine.begin() as connection:
        connection.execute(text(lost), {"id": number("retry")})
    shown = words(viewer.get(f"{MAIL}/{number('retry')}").text)
    assert "outcome unknown begun and never answered" in shown
    assert "Provider said" not in shown
