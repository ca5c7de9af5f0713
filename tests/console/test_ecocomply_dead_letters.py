"""EcoComply's dead letters: by their cause, one by one, and what a person decides on one or on many."""

from __future__ import annotations

import itertools
import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from airflow.models.log import Log
from airflow.utils.session import create_session
from fastapi.testclient import TestClient
from sqlalchemy import select

import console.ecocomply.dead_letters
from tests.console.conftest import OWN, token
from tests.console.ecocomply_sample import HERE, REPORT, RISK, SECRET, Desk, pages, row_of, words
from tests.console.sample import HOSTILE, number

PAGE = "/almanac/ecocomply/dead-letters"
ROW = r'href="/almanac/ecocomply/dead-letters/([0-9a-f-]{36})"'


def listed(html: str) -> set[str]:
    """Return the letters that a page lists."""
    return set(re.findall(ROW, html))


def form_of(client: TestClient, url: str, **params: str) -> tuple[str, dict[str, str]]:
    """Return where the form of a page that changes something goes, and its fields."""
    page = client.get(url, params=params or None).text
    found = re.search(r'<form method="post" action="([^"]+)"(.*?)</form>', page, re.DOTALL)
    assert found is not None, words(page)
    return unescape(found[1]), dict(re.findall(r'name="(\w+)" value="([^"]*)"', found[2]))


def many(desk: Desk, count: int, why: str = "disk of node 7 is full") -> list[UUID]:
    """Let jobs fail for good, by statements alone; return their letters, the oldest first."""
    records = desk.records
    records.execute(
        "INSERT INTO background_jobs (id, job_type, status, company_id)"
        " SELECT gen_random_uuid(), 'BULK', 'PENDING', :company FROM generate_series(1, :count)",
        company=records.company, count=count,
    )  # fmt: skip
    records.execute(
        "UPDATE background_jobs SET status = 'RUNNING', attempts = 1, claimed_by = 'w'"
        " WHERE job_type = 'BULK' AND status = 'PENDING'"
    )
    records.execute(
        "UPDATE background_jobs SET status = 'FAILED', error_message = :why"
        " WHERE job_type = 'BULK' AND status = 'RUNNING'",
        why=why,
    )
    records.execute(
        "INSERT INTO dead_letter_queue (job_id, company_id, error_message, created_at)"
        " SELECT q.id, q.company_id, :why, now() - row_number() OVER () * interval '1 second' FROM background_jobs AS q"
        " WHERE q.job_type = 'BULK' AND q.status = 'FAILED'"
        " AND NOT EXISTS (SELECT FROM dead_letter_queue AS d WHERE d.job_id = q.id)",
        why=why,
    )
    return [
        row.id
        for row in records.rows(
            "SELECT d.id FROM dead_letter_queue AS d JOIN background_jobs AS q ON q.id = d.job_id"
            " WHERE q.job_type = 'BULK' AND d.resolved_at IS NULL ORDER BY d.created_at, d.id"
        )
    ]


def test_letters_by_their_cause(eco_common: Desk, eco_reader: TestClient) -> None:
    """Two failures that differ in numbers alone are one cause, and it leads to these two."""
    page = eco_reader.get(PAGE).text
    assert listed(page) == {str(one) for one in eco_common.letters.values()}
    assert re.search(r"HTTP # from feed # RISK_SCORE_CALCULATION 2 \d+ \w+ 20\d\d", words(page))
    cause = re.search(r'href="([^"]*)"[^>]*><bdi>HTTP # from feed #', page)
    assert cause is not None
    narrowed = eco_reader.get(unescape(cause[1])).text
    assert listed(narrowed) == {str(eco_common.letters["run 1"]), str(eco_common.letters["run 2"])}
    assert "2 letters match" in words(narrowed)


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        ({"type": "RISK_SCORE_CALCULATION"}, ["run 1", "run 2"]),
        ({"company": "acme"}, ["run 1", "run 2"]),
        ({"company": HOSTILE}, ["run 3"]),
        ({"words": "FEED 4"}, ["run 2"]),
        ({"words": "%"}, []),
        ({"cause": "0123456789abcdef"}, []),
        ({"state": "retried"}, []),
        ({"state": "all"}, ["run 1", "run 2", "run 3"]),
        ({"type": "no such type"}, []),
    ],
    ids=str,
)
def test_letters_are_narrowed(
    eco_common: Desk, eco_reader: TestClient, query: dict[str, str], runs: list[str]
) -> None:
    """Each filter alone, words never read as a pattern."""
    page = eco_reader.get(PAGE, params=query).text
    assert listed(page) == {str(eco_common.letters[run]) for run in runs}


def test_a_whole_id_finds_its_letter(eco_common: Desk, eco_reader: TestClient) -> None:
    """Of the letter, as in an alert, or of its job, as in a log."""
    letter = eco_common.letters["run 1"]
    for one in (letter, eco_common.letter(letter).job_id):
        assert listed(eco_reader.get(PAGE, params={"words": f" {one} "}).text) == {str(letter)}


def test_a_letter_has_all_that_a_decision_needs(eco_common: Desk, eco_reader: TestClient) -> None:
    """Why, in which step, with which payload, how far it was, its job now, and what was done; no secret."""
    page = eco_reader.get(f"{PAGE}/{eco_common.letters['run 3']}").text
    said = words(page)
    assert REPORT.removeprefix("ecocomply_").replace("_", "-") in said
    assert "execution step" in said.replace("_", " ")
    assert "JOB_ERROR" in said
    assert "RUNNING FAILED 1" in said
    assert '"token": "***"' in said
    assert SECRET not in page
    assert SECRET not in eco_reader.get(f"{PAGE}/{eco_common.letters['run 2']}").text
    assert "/almanac/queues/ecocomply.background_jobs/row?key=" in page
    assert 'method="post"' not in page


def test_hostile_text_stays_text(eco_common: Desk, eco_reader: TestClient) -> None:
    """Case E4: errors, payloads and companies are other people's words."""
    operator = eco_common.as_user("otto", "USER")
    found = [
        eco_reader.get(PAGE).text,
        eco_reader.get(PAGE, params={"words": HOSTILE, "company": HOSTILE}).text,
        eco_reader.get(f"{PAGE}/{eco_common.letters['run 3']}").text,
        operator.get(f"{PAGE}/all/retry", params={"words": HOSTILE}).text,
    ]
    for page in found:
        assert "evil.test" in page
        assert '<a href="https://evil.test">' not in page


def test_one_is_retried_and_its_new_state_is_shown(eco_desk: Desk, eco_operator: TestClient) -> None:
    """Due at once, from the first attempt; both trails say who it was, and so does the page."""
    letter = eco_desk.letters["run 1"]
    action, fields = form_of(eco_operator, f"{PAGE}/{letter}")
    assert urlsplit(action).path == f"{PAGE}/{letter}/retry"
    answer = eco_operator.post(action, data=fields | {"note": "the feed is back"}, headers=HERE)
    assert answer.status_code == 303
    row = eco_desk.letter(letter)
    assert (row.resolution, row.resolved_by_airflow_user, row.job_status, row.attempts) == (
        "RETRIED", "otto", "PENDING", 0,
    )  # fmt: skip
    page = words(eco_operator.get(answer.headers["location"]).text)
    assert re.search(r"The job is PENDING, due \d+ \w+ \d{4}, \d\d:\d\d , from its first attempt\.", page)
    assert "as RETRIED by otto" in page
    assert "DEAD_LETTER_RESOLVED otto RETRIED the feed is back" in page
    assert "FAILED PENDING 0 otto" in page
    again = eco_operator.post(action, data=fields, headers=HERE)
    assert again.status_code == 409
    assert "it is resolved as RETRIED by otto" in words(again.text)


def test_one_is_a_permanent_failure(eco_desk: Desk, eco_operator: TestClient) -> None:
    """Its job stays failed."""
    letter = eco_desk.letters["run 1"]
    _, fields = form_of(eco_operator, f"{PAGE}/{letter}")
    answer = eco_operator.post(f"{PAGE}/{letter}/permanent", data=fields, headers=HERE)
    row = eco_desk.letter(letter)
    assert (row.resolution, row.resolved_by_airflow_user, row.job_status) == (
        "PERMANENT_FAILURE",
        "otto",
        "FAILED",
    )
    assert "the job stays FAILED" in words(eco_operator.get(answer.headers["location"]).text)


def test_a_note_leaves_the_letter_open(eco_desk: Desk, eco_operator: TestClient) -> None:
    """Line by line, with who wrote them; one without words is refused, and so is one on what is decided."""
    letter = eco_desk.letters["run 1"]
    _, fields = form_of(eco_operator, f"{PAGE}/{letter}")
    answer = eco_operator.post(
        f"{PAGE}/{letter}/note", data=fields | {"note": f"asked {HOSTILE}"}, headers=HERE
    )
    page = eco_operator.get(answer.headers["location"]).text
    assert f"otto: asked {HOSTILE}" in unescape(page)
    assert '<a href="https://evil.test">' not in page
    assert eco_desk.letter(letter).resolved_at is None
    for note in (" ", "x" * 2_001):
        sent = eco_operator.post(f"{PAGE}/{letter}/note", data=fields | {"note": note}, headers=HERE)
        assert sent.status_code == 422
    eco_operator.post(f"{PAGE}/{letter}/permanent", data=fields, headers=HERE)
    assert (
        eco_operator.post(f"{PAGE}/{letter}/note", data=fields | {"note": "late"}, headers=HERE).status_code
        == 409
    )


def test_one_whose_job_is_at_work_again_is_left_alone(eco_desk: Desk, eco_operator: TestClient) -> None:
    """The queue's page let it be tried again: the person is told how it stands."""
    letter = eco_desk.letters["run 1"]
    action, fields = form_of(eco_operator, f"{PAGE}/{letter}")
    eco_desk.records.execute(
        "UPDATE background_jobs SET status = 'PENDING', attempts = 0 WHERE id = :id",
        id=eco_desk.letter(letter).job_id,
    )
    answer = eco_operator.post(action, data=fields, headers=HERE)
    assert answer.status_code == 409
    assert "its job is PENDING now" in words(answer.text)
    assert eco_desk.letter(letter).resolved_at is None


def test_all_that_match_are_retried_one_after_another(eco_desk: Desk, eco_operator: TestClient) -> None:
    """No more than so many a minute begin, the oldest first; the page says when the rest has its turn."""
    letters = many(eco_desk, 5)
    page = eco_operator.get(PAGE, params={"words": "disk"}).text
    offer = re.search(r'href="([^"]*)">Retry all 5…', page)
    assert offer is not None
    asks = unescape(offer[1])
    assert "Retry the jobs of 5 letters?" in words(eco_operator.get(asks).text)
    action, fields = form_of(eco_operator, asks)
    assert fields["a_minute"] == "30"
    answer = eco_operator.post(
        action, data=fields | {"a_minute": "4", "note": "disk is bigger"}, headers=HERE
    )
    assert answer.status_code == 303
    rows = [eco_desk.letter(one) for one in letters]
    turns = [row.scheduled_for for row in rows]
    assert [later - sooner for sooner, later in itertools.pairwise(turns)] == [timedelta(seconds=15)] * 4
    assert {(row.job_status, row.attempts, row.resolution_notes) for row in rows} == {
        ("PENDING", 0, "disk is bigger")
    }
    back = eco_operator.get(answer.headers["location"]).text
    assert "5 jobs wait for another try, from the first attempt. At most 4 a minute begin" in words(back)
    assert listed(back) == {str(one) for one in letters}
    assert "its job: PENDING, due" in row_of(back, str(letters[4]))
    assert "decided by otto" in row_of(back, str(letters[4]))
    assert eco_desk.letter(eco_desk.letters["run 1"]).resolved_at is None


def test_those_retried_later_come_after_those_that_wait(eco_desk: Desk, eco_operator: TestClient) -> None:
    """Two people with one idea must not let twice as many begin."""
    first = many(eco_desk, 3)
    for words_of in ("disk", "disk"):
        action, fields = form_of(eco_operator, f"{PAGE}/all/retry", words=words_of)
        eco_operator.post(action, data=fields | {"a_minute": "2"}, headers=HERE)
        second = many(eco_desk, 2)
    last = eco_desk.letter(first[-1]).scheduled_for
    action, fields = form_of(eco_operator, f"{PAGE}/all/retry", words="disk")
    eco_operator.post(action, data=fields | {"a_minute": "2"}, headers=HERE)
    turns = sorted(
        row.scheduled_for
        for row in eco_desk.records.rows("SELECT scheduled_for FROM background_jobs WHERE job_type = 'BULK'")
    )
    assert len(turns) == 7
    assert all(later - sooner == timedelta(seconds=30) for sooner, later in itertools.pairwise(turns))
    assert eco_desk.letter(second[0]).scheduled_for > last


def test_only_those_ticked(eco_desk: Desk, eco_operator: TestClient) -> None:
    """Two of three boxes, by the form around the list, which changes nothing by itself."""
    letters = many(eco_desk, 3)
    page = eco_operator.get(PAGE, params={"words": "disk"}).text
    assert page.count('type="checkbox" name="letter"') == 3
    asks = f"{PAGE}/all/permanent?letter={letters[0]}&letter={letters[2]}"
    assert "Mark 2 letters as permanent failures?" in words(eco_operator.get(asks).text)
    action, fields = form_of(eco_operator, asks)
    answer = eco_operator.post(action, data=fields, headers=HERE)
    resolved = [eco_desk.letter(one).resolution for one in letters]
    assert resolved == ["PERMANENT_FAILURE", None, "PERMANENT_FAILURE"]
    assert "2 letters are a permanent failure now" in words(eco_operator.get(answer.headers["location"]).text)


def test_without_a_tick_none_is_meant(eco_common: Desk) -> None:
    """Who presses the button below the list without a tick must not be asked about every letter."""
    operator = eco_common.as_user("otto", "USER")
    assert 'type="hidden" name="ticked" value="1"' in operator.get(PAGE).text
    page = operator.get(f"{PAGE}/all/retry", params={"ticked": "1"}).text
    assert "No open letter matches." in words(page)
    assert 'method="post"' not in page


def test_no_more_than_the_number_that_was_agreed_to(eco_desk: Desk, eco_operator: TestClient) -> None:
    """What failed while a person was reading was not asked for; somebody else's decision stands."""
    letters = many(eco_desk, 3)
    action, fields = form_of(eco_operator, f"{PAGE}/all/retry", words="disk")
    assert fields["number"] == "3"
    eco_operator.post(f"{PAGE}/{letters[0]}/permanent", data=fields, headers=HERE)
    many(eco_desk, 4)
    answer = eco_operator.post(action, data=fields, headers=HERE)
    assert eco_desk.letter(letters[0]).resolution == "PERMANENT_FAILURE"
    (done,) = eco_desk.records.rows(
        "SELECT count(*) AS n FROM dead_letter_queue WHERE resolution = 'RETRIED'"
    )
    assert done.n == 3
    assert answer.status_code == 303


def test_what_was_not_done_in_time_is_said(
    eco_desk: Desk, eco_operator: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request has an end; who asked reads how far it came, and where the rest is."""
    many(eco_desk, 2)
    monkeypatch.setattr(console.ecocomply.dead_letters, "CHANGE_SECONDS", 0.0)
    action, fields = form_of(eco_operator, f"{PAGE}/all/retry", words="disk")
    back = words(
        eco_operator.get(eco_operator.post(action, data=fields, headers=HERE).headers["location"]).text
    )
    assert "0 jobs wait for another try" in back
    assert "2 of those asked for are not changed" in back


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", None), ("number", "-1"), ("number", "x"), ("a_minute", "0"), ("a_minute", "601"),
        ("a_minute", "many"), ("note", "x" * 2_001),
    ],
)  # fmt: skip
def test_a_form_that_nobody_was_shown_changes_nothing(
    eco_desk: Desk, eco_operator: TestClient, name: str, value: str | None
) -> None:
    """Who did not see the number has agreed to nothing; the throttle has bounds."""
    action, fields = form_of(eco_operator, f"{PAGE}/all/retry")
    fields.pop(name, None)
    sent = fields if value is None else fields | {name: value}
    assert eco_operator.post(action, data=sent, headers=HERE).status_code == 422
    assert all(eco_desk.letter(one).resolved_at is None for one in eco_desk.letters.values())


def test_only_who_may_trigger_decides(eco_desk: Desk, eco_operator: TestClient) -> None:
    """Reading is for viewers; hiding a button guards nothing, and neither does another site's form."""
    letter = eco_desk.letters["run 1"]
    viewer = eco_desk.as_user("vera")
    assert "/all/" not in viewer.get(PAGE).text
    one, fields = form_of(eco_operator, f"{PAGE}/{letter}")
    every, all_fields = form_of(eco_operator, f"{PAGE}/all/retry")
    assert viewer.get(every).status_code == 403
    for cookie, value in eco_operator.cookies.items():
        if cookie != "_token":
            viewer.cookies.set(cookie, value)
    bearer = {"authorization": f"Bearer {token('vera', 'VIEWER')}"}
    foreign = {"origin": "https://evil.test", "sec-fetch-site": "cross-site"}
    for action, sent in (
        (one, fields), (f"{PAGE}/{letter}/permanent", fields), (f"{PAGE}/{letter}/note", fields | {"note": "x"}),
        (every, all_fields),
    ):  # fmt: skip
        assert viewer.post(action, data=sent, headers=HERE).status_code == 403
        assert eco_desk.as_user(None).post(action, data=sent, headers=HERE).status_code == 401
        assert eco_desk.as_user(None).post(action, data=sent, headers=bearer).status_code == 403
        assert eco_operator.post(action, data=sent, headers=foreign).status_code == 403
        assert (
            eco_operator.post(
                action, data=sent | {"form_token": "0" * 64}, headers={"origin": OWN}
            ).status_code
            == 403
        )
    assert all(eco_desk.letter(one).resolved_at is None for one in eco_desk.letters.values())
    assert eco_desk.letter(letter).resolution_notes is None


def test_airflows_audit_log_knows_it_too(eco_desk: Desk, eco_operator: TestClient) -> None:
    """Where an auditor looks first; the form's token is no business of it."""
    letter = eco_desk.letters["run 1"]
    action, fields = form_of(eco_operator, f"{PAGE}/{letter}")
    eco_operator.post(f"{PAGE}/{letter}/note", data=fields | {"note": "looking"}, headers=HERE)
    eco_operator.post(action, data=fields, headers=HERE)
    every, all_fields = form_of(eco_operator, f"{PAGE}/all/retry")
    eco_operator.post(every, data=all_fields, headers=HERE)
    with create_session() as session:
        found = {
            str(row.event): (str(row.owner), str(row.extra))
            for row in session.scalars(select(Log).where(Log.event.like("console_%")))
        }
    assert set(found) == {
        "console_note_dead_letter",
        "console_decide_dead_letter",
        "console_decide_dead_letters",
    }
    assert {owner for owner, _ in found.values()} == {"otto"}
    assert all("form_token" not in extra for _, extra in found.values())


def test_long_lists_come_in_pages(eco_desk: Desk) -> None:
    """Each letter once; a filter stays on every page."""
    letters = many(eco_desk, 101)
    found, count = pages(eco_desk.as_user("vera"), f"{PAGE}?type=BULK", ROW)
    assert (count, len(found)) == (3, 101)
    assert found == [str(one) for one in reversed(letters)]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{PAGE}/{number('nobody')}", 404),
        (f"{PAGE}/nonsense", 422),
        (f"{PAGE}/all/explode", 404),
        (f"{PAGE}?state=lost", 422),
        (f"{PAGE}?did=explode", 422),
        (f"{PAGE}?did=retry&first=nonsense", 422),
        (f"{PAGE}?did=retry&first=2027-01-01T00:00:00", 422),
        (f"{PAGE}?letter=nonsense", 422),
        (f"{PAGE}?after=x&after_id={number('nobody')}", 422),
        (f"{PAGE}?words={'x' * 201}", 422),
    ],
)
def test_what_is_not_there(eco_common: Desk, path: str, status: int) -> None:
    """A made-up address gets a sentence, never a stack."""
    answer: Any = eco_common.as_user("otto", "USER").get(path)
    assert answer.status_code == status


def test_the_queue_itself_is_shown(eco_common: Desk, eco_reader: TestClient) -> None:
    """The queues' pages see what row-level security keeps from every login."""
    page = words(eco_reader.get("/almanac/queues/ecocomply.background_jobs").text)
    assert "6 rows match" in page
    assert RISK.removeprefix("ecocomply_").upper() in page
