"""ArcVest's page of its job queue: the plan's two monitoring queries, for whoever may read the worker's runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from html import unescape

import pytest
from airflow.api_fastapi.auth.middlewares.refresh_token import JWTRefreshMiddleware
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text

from console.app import create_app
from console.databases import Databases
from include.arcvest import console
from include.run import EngineDatabase
from tests.console import queue_sample
from tests.console.conftest import OWN, token
from tests.console.sample import HOSTILE, number

PAGE = "/almanac/arcvest/jobs"


@pytest.fixture
def arcvest(database_of: Callable[..., EngineDatabase]) -> EngineDatabase:
    """Make ArcVest's database with jobs of every kind in it."""
    made = database_of("arcvest")
    queue_sample.fill_arcvest(made.engine, datetime.now(UTC))
    return made


@pytest.fixture
def page(airflow: None, arcvest: EngineDatabase) -> Iterator[TestClient]:
    """Return a browser of somebody who may read."""
    opened = Databases({"arcvest_db": arcvest.engine.url}.__getitem__)
    app = FastAPI()
    app.mount("/almanac", create_app(opened))
    app.add_middleware(JWTRefreshMiddleware)
    client = TestClient(app, base_url=OWN, follow_redirects=False)
    client.headers["accept"] = "text/html"
    client.cookies.set("_token", token("vera", "VIEWER"))
    yield client
    opened.close()


def words(html: str) -> str:
    """Return a page's text on one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_the_queue_by_type_and_status(arcvest: EngineDatabase, page: TestClient) -> None:
    """The plan's first query: type, status, count and attempts on average, of the last 24 hours."""
    with arcvest.engine.begin() as connection:
        connection.execute(
            text("UPDATE job_queue SET attempts = 4 WHERE id = :id"), {"id": number("job failed 1")}
        )
        connection.execute(
            text("UPDATE job_queue SET created_at = now() - interval '25 h' WHERE id = :id"),
            {"id": number("job done")},
        )
    with arcvest.transaction() as tx:
        found = {
            (row.job_type, row.status): (row.jobs, float(row.avg_attempts))
            for row in console.queue_status(tx)
        }
    assert found[("news_scan", "failed")] == (2, 2.5)
    assert ("news_scan", "completed") not in found
    said = words(page.get(PAGE).text)
    assert "news_scan failed 2 2.5" in said
    assert "select_daily pending 1 0.0" in said


def test_what_failed_for_good(arcvest: EngineDatabase, page: TestClient) -> None:
    """The plan's second query: failed in the last 24 hours, the latest first, each with its reason and its row."""
    with arcvest.engine.begin() as connection:
        connection.execute(
            text("UPDATE job_queue SET completed_at = now() - interval '25 h' WHERE id = :id"),
            {"id": number("job failed 2")},
        )
    answer = page.get(PAGE)
    assert answer.status_code == 200
    assert "HTTP 503 from feed 17" in words(answer.text)
    assert "HTTP 502 from feed 4" not in words(answer.text)
    assert f"/almanac/queues/arcvest.job_queue/row?key={number('job failed 1')}" in answer.text


def test_hostile_text_is_text(page: TestClient) -> None:
    """An application's type or a feed's error may be markup."""
    answer = page.get(PAGE)
    assert HOSTILE in words(answer.text) or HOSTILE in unescape(answer.text)
    assert HOSTILE not in answer.text


def test_an_empty_queue_says_so(arcvest: EngineDatabase, page: TestClient) -> None:
    """No table without rows."""
    with arcvest.engine.begin() as connection:
        connection.execute(text("DELETE FROM job_queue"))
    said = words(page.get(PAGE).text)
    assert "No job was made in the last 24 hours." in said
    assert "Nothing failed for good." in said
