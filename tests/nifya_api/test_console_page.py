"""The console's pages of scheduled jobs: who sees them, what they say, and what their one button does."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from console.app import create_app
from console.databases import Databases
from include.run import EngineDatabase
from tests.console.conftest import OWN, token
from tests.nifya.conftest import DAILY, DIGEST, SUBSCRIPTION, Jobs
from tests.nifya.test_job_runs import BROKEN, DOWN, WELL

PAGE = "/almanac/nifya/jobs"
HERE = {"origin": OWN, "sec-fetch-site": "same-origin"}
HOSTILE = '<a href="https://evil.test">Reset</a> & Co'


def words(html: str) -> str:
    """Return a page's text as a reader has it."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


class Pages:
    """The console over jobs, and browsers in it."""

    def __init__(self, app: FastAPI, jobs: Jobs) -> None:
        self.app, self.jobs = app, jobs

    def browser(self, name: str | None = "otto", role: str = "USER") -> TestClient:
        client = TestClient(self.app, base_url=OWN, follow_redirects=False)
        client.headers["accept"] = "text/html"
        if name is not None:
            client.cookies.set("_token", token(name, role))
        return client


@pytest.fixture
def pages(airflow: None, database_of: Callable[..., EngineDatabase]) -> Iterator[Pages]:
    """Return the console over a database of the test's own."""
    database = database_of("nifya")
    opened = Databases({"nifya_db": database.engine.url}.__getitem__)
    app = FastAPI()
    app.mount("/almanac", create_app(opened))
    yield Pages(app, Jobs(database))
    opened.close()


def test_the_list_says_what_waits_and_what_failed(pages: Pages) -> None:
    """A person must see without SQL which job failed, why, and what comes next."""
    pages.jobs.add(schedule=DAILY)
    pages.jobs.perform(DOWN)
    pages.jobs.add(
        DIGEST,
        data={"hourOfDay": 9},
        schedule={"type": "interval", "intervalMs": 7_200_000},
        ago=-timedelta(hours=2),
    )
    pages.jobs.add(
        DIGEST, schedule={"type": "weekly", "daysOfWeek": [1, 4], "hourOfDay": 7}, ago=-timedelta(hours=3)
    )
    page = words(pages.browser("vera", "VIEWER").get(PAGE).text)
    for sentence in (
        "every day at 09:00, Europe/Madrid", "boe: 503", "tried 1 of 3", "next try", "every 2 hours",
        "every Monday and Thursday at 07:00, Europe/Madrid",
    ):  # fmt: skip
        assert sentence in page


@pytest.mark.parametrize(
    ("query", "listed"),
    [
        ("", 3), ("?status=failed", 1), ("?status=pending", 2), ("?type=send-digest-emails", 1),
        (f"?subscription={SUBSCRIPTION}", 2), (f"?subscription={uuid.UUID(int=1)}", 0),
    ],
)  # fmt: skip
def test_filters(pages: Pages, query: str, listed: int) -> None:
    """The page is searched when something is wrong, so each filter must hold."""
    pages.jobs.add(schedule=DAILY)
    pages.jobs.perform(BROKEN)
    pages.jobs.add(DIGEST, ago=-timedelta(hours=3))
    page = pages.browser().get(PAGE + query)
    assert len(set(re.findall(rf'href="{PAGE}/([0-9a-f-]{{36}})"', page.text))) == listed


@pytest.mark.parametrize("query", ["?status=done", "?type=x", "?subscription=7", "?after=x"])
def test_a_filter_that_can_not_be(pages: Pages, query: str) -> None:
    """A slip in an address says so."""
    assert pages.browser().get(PAGE + query).status_code == 422


def test_a_job_with_its_history(pages: Pages) -> None:
    """One page answers: when did it run, what did each try say, what came before and after."""
    job = pages.jobs.add(schedule=DAILY)
    pages.jobs.perform(DOWN)
    pages.jobs.execute("UPDATE scheduled_jobs SET retry_at = now()")
    pages.jobs.perform(BROKEN)
    (following,) = pages.jobs.after(job)
    html = pages.browser("vera", "VIEWER").get(f"{PAGE}/{job}").text
    page = words(html)
    for sentence in ("2 of 3", "boe: 503", "boe: no such section", "processing failed 2", "this one"):
        assert sentence in page
    assert f'href="{PAGE}/{following.id}"' in html
    assert "<form" not in html
    assert (
        words(pages.browser().get(f"{PAGE}/{following.id}").text).count("Failures in a row before it 1") == 1
    )


def test_a_page_of_many_jobs(pages: Pages) -> None:
    """The second page follows the first without losing or repeating a job."""
    when = datetime.now(UTC) + timedelta(days=1)
    for n in range(60):
        pages.jobs.add(DIGEST, next_run_at=when + timedelta(minutes=n // 7))
    browser = pages.browser()
    first = browser.get(PAGE).text
    more = re.search(r'href="([^"]*)" rel="next"', first)
    assert more is not None
    second = browser.get(unescape(more[1])).text
    ids = [set(re.findall(rf'href="{PAGE}/([0-9a-f-]{{36}})"', html)) for html in (first, second)]
    assert (len(ids[0]), len(ids[1]), ids[0] & ids[1]) == (50, 10, set())


def test_hostile_text_is_text(pages: Pages) -> None:
    """E4: what an application or a parser wrote is shown, not obeyed."""
    job = pages.jobs.add(schedule={HOSTILE: HOSTILE}, error=HOSTILE, data={"subscriptionId": HOSTILE})
    for path in (PAGE, f"{PAGE}/{job}"):
        html = pages.browser().get(path).text
        assert '<a href="https://evil.test' not in html
        assert "&lt;a href=" in html


def test_dates_that_python_lacks(pages: Pages) -> None:
    """An application may plan for infinity; one such row must not take the page away."""
    job = pages.jobs.add(DIGEST)
    pages.jobs.execute("UPDATE scheduled_jobs SET next_run_at = 'infinity'")
    assert "infinity" in pages.browser().get(PAGE).text
    assert pages.browser().get(f"{PAGE}/{job}").status_code == 200


def test_run_now(pages: Pages) -> None:
    """The button runs the job once, for who may trigger, and only from this page."""
    job = pages.jobs.add(schedule=DAILY, ago=-timedelta(hours=2))
    browser = pages.browser()
    html = browser.get(f"{PAGE}/{job}").text
    form = re.search(r'name="form_token" value="([0-9a-f]+)"', html)
    assert form is not None
    sent = {"form_token": form[1]}
    assert browser.post(f"{PAGE}/{job}/run", data=sent).status_code == 403
    assert browser.post(f"{PAGE}/{job}/run", data={}, headers=HERE).status_code == 403
    assert len(set(re.findall(rf'href="{PAGE}/([0-9a-f-]{{36}})"', browser.get(PAGE).text))) == 1
    answer = browser.post(f"{PAGE}/{job}/run", data=sent, headers=HERE)
    assert answer.status_code == 303
    # A copy: its own next time stays.
    assert re.fullmatch(rf"{PAGE}/[0-9a-f-]{{36}}\?asked=1", answer.headers["location"])
    assert str(job) not in answer.headers["location"]
    assert "The job is due now" in words(browser.get(answer.headers["location"]).text)
    assert pages.jobs.perform(WELL).counts["completed"] == 1


def test_run_now_where_it_can_not_be(pages: Pages) -> None:
    """A job that is being worked on has no button, and says why when it is asked all the same."""
    job = pages.jobs.add(schedule=DAILY)
    browser = pages.browser()
    form = re.search(r'name="form_token" value="([0-9a-f]+)"', browser.get(f"{PAGE}/{job}").text)
    assert form is not None
    pages.jobs.execute(
        "UPDATE scheduled_jobs SET status = 'processing', claimed_by = 'w', heartbeat_at = now()"
    )
    assert "<form" not in browser.get(f"{PAGE}/{job}").text
    sent = {"data": {"form_token": form[1]}, "headers": HERE}
    assert browser.post(f"{PAGE}/{job}/run", **sent).status_code == 409
    assert browser.post(f"{PAGE}/{uuid.UUID(int=5)}/run", **sent).status_code == 404
    assert browser.get(f"{PAGE}/{uuid.UUID(int=5)}").status_code == 404
    assert pages.browser("vera", "VIEWER").post(f"{PAGE}/{job}/run", **sent).status_code == 403
    assert pages.browser(None).get(PAGE).status_code == 401
