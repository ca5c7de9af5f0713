"""The pages of the queues: what they show, who may change what, and that a change is in the person's name."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import pytest
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.middlewares.refresh_token import JWTRefreshMiddleware
from airflow.models.log import Log
from airflow.utils.session import create_session
from fastapi import FastAPI
from fastapi.testclient import TestClient
from markupsafe import escape
from sqlalchemy import URL, Engine, delete, select, text

import console.queues
from console.app import create_app
from console.databases import Databases
from console.queues import all_queues
from hooks.connections import UnknownConnection
from include.platform.tables import RUN_SUMMARY
from include.queues import console as sight
from include.run import EngineDatabase
from tests.conftest import Databases as DatabaseMaker
from tests.console import queue_sample as sample
from tests.console.conftest import OWN, token
from tests.console.sample import HOSTILE, number, put

QUEUES = "/almanac/queues"
JOBS = f"{QUEUES}/arcvest.job_queue"
TASKS = f"{QUEUES}/leadmetrics.scheduled_task"
NIFYA = f"{QUEUES}/nifya.scheduled_jobs"
HERE = {"origin": OWN, "sec-fetch-site": "same-origin"}


@dataclass(frozen=True)
class Desk:
    """The console over the systems' queues; `urls` are the connections that it finds."""

    app: FastAPI
    urls: dict[str, URL]
    arcvest: EngineDatabase

    def as_user(self, name: str | None, role: str = "VIEWER") -> TestClient:
        """Return a browser in which somebody is signed in, or nobody if `name` is None."""
        client = TestClient(self.app, base_url=OWN, follow_redirects=False)
        client.headers["accept"] = "text/html"
        if name is not None:
            client.cookies.set("_token", token(name, role))
        return client

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Return what a statement finds in ArcVest's database."""
        with self.arcvest.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(statement))]

    def job(self, name: str) -> tuple[str, int]:
        """Return a job's status and attempts."""
        ((status, attempts),) = self.rows(
            f"SELECT status::text, attempts FROM job_queue WHERE id = '{number(name)}'"
        )
        return status, attempts

    def by_people(self) -> list[tuple[Any, ...]]:
        """Return row, new status and actor of what people changed, in its order."""
        return self.rows(
            "SELECT row_key, to_status, actor FROM queue_audit WHERE actor <> session_user ORDER BY id"
        )


@contextmanager
def desk_over(databases: DatabaseMaker) -> Generator[Desk]:
    """Make the databases, fill the sample in and mount the console over it."""
    now = datetime.now(UTC)
    with ExitStack() as stack:

        def make(system: str) -> Engine:
            name, engine = databases.make(system)
            stack.callback(databases.drop, name, engine)
            return engine

        engines = {system: make(system) for system in ("arcvest", "leadmetrics", "nifya")}
        sample.fill_arcvest(engines["arcvest"], now)
        sample.fill_leadmetrics(engines["leadmetrics"], now)
        sample.fill_nifya(engines["nifya"], now)
        almanac = make("platform")
        put(
            almanac,
            RUN_SUMMARY,
            {
                "dag_id": "arcvest_queue_worker", "run_id": sample.RUN, "job": "queue_worker", "as_of": now,
                "started_at": now, "state": "success",
            },
        )  # fmt: skip
        urls = {f"{system}_db": engine.url for system, engine in engines.items()}
        urls["almanac_db"] = almanac.url

        def look_up(conn_id: str) -> URL:
            if conn_id not in urls:
                raise UnknownConnection(f"Airflow: there is no connection {conn_id}")
            return urls[conn_id]

        opened = Databases(look_up)
        stack.callback(opened.close)
        app = FastAPI()
        app.mount("/almanac", create_app(opened))
        app.add_middleware(JWTRefreshMiddleware)
        yield Desk(app, urls, EngineDatabase(engines["arcvest"]))


@pytest.fixture
def desk(airflow: None, databases: DatabaseMaker) -> Iterator[Desk]:
    """Return the console over a sample that a test may change."""
    with create_session() as session:
        session.execute(delete(Log))
    with desk_over(databases) as made:
        yield made


@pytest.fixture(scope="module")
def common_desk(airflow: None, databases: DatabaseMaker) -> Iterator[Desk]:
    """Return the console over one sample for all tests that only read."""
    with desk_over(databases) as made:
        yield made


@pytest.fixture
def reader(common_desk: Desk) -> TestClient:
    """Return a browser of somebody who may read, over the sample that nothing changes."""
    return common_desk.as_user("vera")


@pytest.fixture
def viewer(desk: Desk) -> TestClient:
    """Return a browser of somebody who may read."""
    return desk.as_user("vera")


@pytest.fixture
def operator(desk: Desk) -> TestClient:
    """Return a browser of somebody who may trigger."""
    return desk.as_user("otto", "USER")


def words(html: str) -> str:
    """Return a page's text as a reader has it: no tags, no references, single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def article(html: str, label: str) -> str:
    """Return the words of the part of the overview that has this label."""
    return words(re.findall(rf'<article[^>]*aria-label="{label}".*?</article>', html, re.DOTALL)[0])


def listed(html: str) -> list[str]:
    """Return the keys that a page lists, in their order."""
    return [unescape(key) for key in re.findall(r'<a class="code"[^>]*>([^<]*)</a>', html)]


def named(*names: str) -> list[str]:
    """Return the keys of the sample's jobs."""
    return [str(number(name)) for name in names]


def form_of(client: TestClient, url: str, **params: str) -> tuple[str, dict[str, str]]:
    """Return where the first form of a page that changes something goes, and its fields."""
    page = client.get(url, params=params or None).text
    found = re.search(r'<form method="post" action="([^"]+)"(.*?)</form>', page, re.DOTALL)
    assert found is not None, words(page)
    return unescape(found[1]), dict(re.findall(r'name="(\w+)" value="([^"]*)"', found[2]))


def test_the_console_finds_every_systems_queues() -> None:
    """A system that is added is seen without being listed here; the addresses must differ."""
    names = [queue.name for queue in all_queues()]
    assert {"arcvest.job_queue", "leadmetrics.scheduled_task", "nifya.scheduled_jobs"} <= set(names)
    assert len(names) == len(set(names))


def test_the_overview_has_the_figures(reader: TestClient) -> None:
    """Depth, due, since when, rates and causes: what a person looks at before anything else."""
    page = reader.get(QUEUES).text
    jobs = article(page, "ArcVest: job_queue")
    assert "pending 2 processing 1 completed 1 failed 3 cancelled 0" in jobs
    assert "Due now 1 Oldest of them due since" in jobs
    assert "Completed in the last hour, day 1, 1" in jobs
    assert "Failed in the last hour, day 3, 3" in jobs
    assert re.search(r"HTTP # from feed # 2 0 \d+ \w+ 20\d\d", jobs)
    tasks = article(page, "LeadMetrics: scheduled_task")
    assert "pending 1 running 0 completed 0 failed 1" in tasks
    assert "no such session 1 0" in tasks
    assert "mail server refused 1 0" in article(page, "NIFYA: scheduled_jobs")
    assert "nothing is due" in article(page, "NIFYA: scheduled_jobs")


def test_a_cause_leads_to_its_rows(reader: TestClient) -> None:
    """From "two failures of this kind" to these two, by one click."""
    page = reader.get(QUEUES).text
    found = re.search(r'href="([^"]*)"[^>]*><bdi>HTTP # from feed #', page)
    assert found is not None
    assert sorted(listed(reader.get(unescape(found[1])).text)) == sorted(
        named("job failed 1", "job failed 2")
    )


@pytest.mark.parametrize("fault", ["unknown", "down", "no tables", "locked"])
def test_a_database_that_is_away_breaks_no_other(desk: Desk, viewer: TestClient, fault: str) -> None:
    """The page is for the night on which one of the databases is down."""
    url = desk.urls.pop("arcvest_db")
    if fault == "down":
        desk.urls["arcvest_db"] = url.set(database="no_such_database")
    elif fault == "no tables":
        desk.urls["arcvest_db"] = desk.urls["almanac_db"]
    elif fault == "locked":
        desk.urls["arcvest_db"] = url
    with desk.arcvest.engine.connect() as connection:
        if fault == "locked":
            connection.execute(text("LOCK TABLE job_queue"))
        page = viewer.get(QUEUES)
    assert page.status_code == 200
    assert "This queue can't be shown now:" in article(page.text, "ArcVest: job_queue")
    assert "no such session 1 0" in article(page.text, "LeadMetrics: scheduled_task")


def test_the_rows_say_where_they_are(reader: TestClient) -> None:
    """The latest planned first, each with its state, attempts and last error."""
    page = reader.get(JOBS).text
    assert listed(page) == named(
        "job to come",
        "job due",
        "job running",
        "job failed hostile",
        "job failed 2",
        "job failed 1",
        "job done",
    )
    assert "7 rows match" in words(page)
    assert re.search(r"failed 1 of 5 HTTP 503 from feed 17", words(page))
    assert "processing 1 of 5" in words(page)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"status": "failed"}, ["job failed hostile", "job failed 2", "job failed 1"]),
        ({"kind": "score_ideas"}, ["job running"]),
        ({"kind": HOSTILE}, ["job failed hostile"]),
        ({"words": "FEED 4"}, ["job failed 2"]),
        ({"words": f" {number('job due')} "}, ["job due"]),
        ({"words": "%"}, []),
        ({"cause": "0123456789abcdef"}, []),
        ({"kind": "no such kind"}, []),
        ({"status": "failed", "kind": "news_scan", "words": "http"}, ["job failed 2", "job failed 1"]),
    ],
    ids=str,
)
def test_the_rows_are_narrowed(reader: TestClient, filters: dict[str, str], found: list[str]) -> None:
    """Each filter alone and together, words never read as a pattern."""
    page = reader.get(JOBS, params=filters).text
    assert listed(page) == named(*found)
    for value in filters.values():
        assert str(escape(value.strip())) in page


@pytest.mark.parametrize(
    "query",
    [
        {"status": "lost"},
        {"after": "x", "after_key": str(number("job due"))},
        {"after": "", "after_key": "nonsense"},
        {"words": "x" * 201},
        {"did": "explode"},
        {"did": "retry", "changed": "-1"},
        {"changed": HOSTILE},
    ],
    ids=str,
)
def test_what_no_form_sends_is_refused_in_words(reader: TestClient, query: dict[str, str]) -> None:
    """An address that somebody made up gets a sentence, never a stack."""
    answer = reader.get(JOBS, params=query)
    assert answer.status_code == 422
    assert HOSTILE not in answer.text


def test_long_lists_come_in_pages(desk: Desk, viewer: TestClient) -> None:
    """Each row once, though all are planned for one instant; a filter stays on every page."""
    keys = {str(key) for key in sample.many_failed(desk.arcvest.engine, 2 * sight.PAGE + 1, "full")}
    url, seen, pages = f"{JOBS}?kind=bulk", [], 0
    while url:
        page = viewer.get(url).text
        seen += listed(page)
        pages += 1
        found = re.search(r'href="([^"]*)" rel="next"', page)
        url = unescape(found[1]) if found else ""
    assert pages == 3
    assert len(seen) == len(keys)
    assert set(seen) == keys


def test_a_rows_life_and_data(reader: TestClient) -> None:
    """From the enqueueing to the end: who held it, why it failed, what it holds; a run's name leads to the run."""
    page = reader.get(f"{JOBS}/row", params={"key": str(number("job failed hostile"))}).text
    said = words(page)
    assert re.search(r"enqueued \d+ \w+ \d{4}, \d\d:\d\d pending to processing", said)
    assert "enqueued, to start" in words(
        reader.get(f"{NIFYA}/row", params={"key": str(number("digest"))}).text
    )
    assert f"pending to processing 1 {sample.OWNER}" in said
    assert f"processing to failed 1 {sample.OWNER}" in said
    assert re.search(r'href="/almanac/runs/arcvest_queue_worker/scheduled__2027[^"]*">scheduled__2027', page)
    assert '"n": [ 1, { "token": "***" } ]' in said
    assert sample.SECRET not in page


def test_the_way_to_a_row_takes_any_key(reader: TestClient) -> None:
    """A key that is text may hold whatever an application wrote: marks, slashes, a question mark."""
    page = reader.get(TASKS, params={"status": "failed"}).text
    found = re.search(r'<a class="code" href="([^"]*)"', page)
    assert found is not None
    row = reader.get(unescape(found[1]))
    assert row.status_code == 200
    assert str(escape(f"{HOSTILE}?/#%")) in row.text
    assert '"a": 1' in words(row.text)


def test_hostile_text_stays_text(common_desk: Desk, reader: TestClient) -> None:
    """Case E4: kinds, errors, payloads and keys are other people's words."""
    operator = common_desk.as_user("otto", "USER")
    addresses = [
        QUEUES,
        JOBS,
        f"{JOBS}?kind={HOSTILE}&words={HOSTILE.replace('&', '%26')}",
        f"{JOBS}/row?key={number('job failed hostile')}",
        TASKS,
    ]
    pages = [reader.get(address).text for address in addresses]
    pages.append(operator.get(f"{JOBS}/all/retry", params={"words": HOSTILE, "kind": HOSTILE}).text)
    for page in pages:
        assert "evil.test" in page
        assert '<a href="https://evil.test">' not in page


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{QUEUES}/arcvest.no_such", 404),
        (f"{QUEUES}/clearpath.email_log", 404),
        (f"{QUEUES}/arcvest", 404),
        (f"{JOBS}/row?key={number('nobody')}", 404),
        (f"{JOBS}/row?key=nonsense", 404),
        (f"{JOBS}/row", 404),
        (f"{TASKS}/row?key=nonsense", 404),
        (f"{JOBS}/all/explode", 404),
        (f"{TASKS}/all/retry", 404),
        (f"{NIFYA}/all/cancel", 404),
    ],
)
def test_what_is_not_there(common_desk: Desk, path: str, status: int) -> None:
    """Only queues that a system lists, only rows that are there, only what the table lets people do."""
    assert common_desk.as_user("otto", "USER").get(path).status_code == status


def test_what_nests_too_deep_spoils_no_page(desk: Desk, viewer: TestClient) -> None:
    """An application may store any JSON; the row's life is shown all the same."""
    deep = "[" * 3_000 + "]" * 3_000
    with desk.arcvest.engine.begin() as connection:
        connection.execute(
            text("UPDATE job_queue SET payload = CAST(:deep AS jsonb) WHERE job_type = 'score_ideas'"),
            {"deep": deep},
        )
    page = viewer.get(f"{JOBS}/row", params={"key": str(number("job running"))})
    assert page.status_code == 200
    assert "pending to processing" in words(page.text)
    assert "nests too deep" in words(page.text)


@pytest.mark.parametrize(
    ("what", "job", "before", "after"),
    [
        ("retry", "job failed 1", ("failed", 1), ("pending", 0)),
        ("cancel", "job due", ("pending", 0), ("cancelled", 0)),
        ("requeue", "job running", ("processing", 1), ("pending", 1)),
    ],
)
def test_one_row_is_changed_in_the_persons_name(
    desk: Desk, operator: TestClient, what: str, job: str, before: Any, after: Any
) -> None:
    """The three things a person may do, each with its button, and the trail says who did it."""
    assert desk.job(job) == before
    action, fields = form_of(operator, f"{JOBS}/row", key=str(number(job)))
    assert urlsplit(action).path == f"{JOBS}/row/{what}"
    answer = operator.post(action, data=fields, headers=HERE)
    assert answer.status_code == 303
    assert desk.job(job) == after
    assert desk.by_people() == [(str(number(job)), after[0], "otto")]
    page = words(operator.get(answer.headers["location"]).text)
    assert "The row is" in page
    assert "otto" in page


def test_a_row_that_has_gone_on_is_left_alone(desk: Desk, operator: TestClient) -> None:
    """Two people press the same button: the second is told how the row stands."""
    action, fields = form_of(operator, f"{JOBS}/row", key=str(number("job failed 1")))
    assert operator.post(action, data=fields, headers=HERE).status_code == 303
    answer = operator.post(action, data=fields, headers=HERE)
    assert answer.status_code == 409
    assert "is pending now" in words(answer.text)
    assert len(desk.by_people()) == 1


def test_retry_all_that_match(desk: Desk, operator: TestClient) -> None:
    """The list offers it with the number, a page of its own asks, and the same rows are due again."""
    sample.many_failed(desk.arcvest.engine, 1_203, "full")
    page = operator.get(JOBS, params={"kind": "bulk", "words": "full"}).text
    offer = re.search(r'href="([^"]*)">Retry all 1,203', page)
    assert offer is not None
    asks = unescape(offer[1])
    assert "Retry 1,203 rows?" in words(operator.get(asks).text)
    action, fields = form_of(operator, asks)
    answer = operator.post(action, data=fields, headers=HERE)
    assert answer.status_code == 303
    back = words(operator.get(answer.headers["location"]).text)
    assert "1,203 rows are due now, from their first attempt." in back
    assert "1,203 rows match" in words(operator.get(JOBS, params={"kind": "bulk", "status": "pending"}).text)
    assert desk.job("job failed 1") == ("failed", 1)
    assert {(status, actor) for _, status, actor in desk.by_people()} == {("pending", "otto")}
    assert len(desk.by_people()) == 1_203


def test_no_more_than_the_number_that_was_agreed_to(desk: Desk, operator: TestClient) -> None:
    """An outage goes on while a person reads the number: what failed meanwhile was not asked for."""
    sample.many_failed(desk.arcvest.engine, 3, "full")
    action, fields = form_of(operator, f"{JOBS}/all/retry", kind="bulk")
    assert fields["number"] == "3"
    sample.many_failed(desk.arcvest.engine, 5, "full")
    assert operator.post(action, data=fields, headers=HERE).status_code == 303
    assert len(desk.by_people()) == 3


def test_what_was_not_done_in_time_is_said(
    desk: Desk, operator: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request has an end; who asked reads how far it came, and can go on."""
    monkeypatch.setattr(console.queues, "CHANGE_SECONDS", 0.0)
    action, fields = form_of(operator, f"{JOBS}/all/retry", cause="", words="feed")
    answer = operator.post(action, data=fields, headers=HERE)
    back = words(operator.get(answer.headers["location"]).text)
    assert "0 rows are due now" in back
    assert "2 of those asked for are not" in back
    assert desk.by_people() == []


@pytest.mark.parametrize("number_sent", [None, "", "-1", "x", "1e3"])
def test_without_a_number_nothing_is_changed(
    desk: Desk, operator: TestClient, number_sent: str | None
) -> None:
    """Who did not see the number has agreed to nothing."""
    action, fields = form_of(operator, f"{JOBS}/all/retry")
    fields.pop("number")
    sent = fields if number_sent is None else fields | {"number": number_sent}
    assert operator.post(action, data=sent, headers=HERE).status_code == 422
    assert desk.by_people() == []


def test_a_viewer_is_offered_nothing_and_gets_nothing(
    desk: Desk, viewer: TestClient, operator: TestClient
) -> None:
    """Reading is for viewers; hiding a button guards nothing, so the routes refuse."""
    key = str(number("job failed 1"))
    for url in (QUEUES, JOBS, f"{JOBS}/row?key={key}"):
        page = viewer.get(url)
        assert page.status_code == 200
        assert 'method="post"' not in page.text
        assert "/all/" not in page.text
    one, fields = form_of(operator, f"{JOBS}/row", key=key)
    many, all_fields = form_of(operator, f"{JOBS}/all/retry")
    assert viewer.get(many).status_code == 403
    for cookie, value in operator.cookies.items():
        if cookie != "_token":
            viewer.cookies.set(cookie, value)
    bearer = {"authorization": f"Bearer {token('vera', 'VIEWER')}"}
    for action, sent in ((one, fields), (many, all_fields)):
        assert viewer.post(action, data=sent, headers=HERE).status_code == 403
        assert desk.as_user(None).post(action, data=sent, headers=bearer).status_code == 403
    assert desk.by_people() == []


def test_only_who_may_trigger_every_dag_of_a_queue(
    desk: Desk, operator: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Roles may differ by DAG: a queue that two DAGs work through takes the right to both."""
    manager, denied = get_auth_manager(), set()
    allowed = manager.is_authorized_dag

    def decide(**asked: Any) -> bool:
        return (asked["method"], asked["details"].id) not in denied and allowed(**asked)

    one, fields = form_of(operator, f"{JOBS}/row", key=str(number("job failed 1")))
    monkeypatch.setattr(manager, "is_authorized_dag", decide)
    denied.add(("POST", "arcvest_content_pipeline"))
    assert (
        'method="post"' not in operator.get(f"{JOBS}/row", params={"key": str(number("job failed 1"))}).text
    )
    assert operator.post(one, data=fields, headers=HERE).status_code == 403
    denied.add(("GET", "arcvest_content_pipeline"))
    assert operator.get(JOBS).status_code == 403
    page = operator.get(QUEUES).text
    assert "job_queue" not in page
    assert "scheduled_task" in page
    assert desk.by_people() == []


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.test", "sec-fetch-site": "cross-site"},
        {"origin": OWN, "sec-fetch-site": "same-site"},
        {"origin": "null"},
        {},
    ],
    ids=str,
)
def test_a_form_on_another_site_changes_nothing(
    desk: Desk, operator: TestClient, headers: dict[str, str]
) -> None:
    """The login cookie goes along with every request: the origin decides, whatever token the form has."""
    for url, params in ((f"{JOBS}/row", {"key": str(number("job failed 1"))}), (f"{JOBS}/all/retry", {})):
        action, fields = form_of(operator, url, **params)
        assert operator.post(action, data=fields, headers=headers).status_code == 403
    assert desk.by_people() == []


def test_a_form_needs_its_token(desk: Desk, operator: TestClient) -> None:
    """A token of another person, or none, protects nobody."""
    other = desk.as_user("ada", "ADMIN")
    for url, params in ((f"{JOBS}/row", {"key": str(number("job failed 1"))}), (f"{JOBS}/all/retry", {})):
        action, fields = form_of(operator, url, **params)
        _, others = form_of(other, url, **params)
        for stolen in ("", "0" * 64, others["form_token"]):
            sent = fields | {"form_token": stolen}
            assert operator.post(action, data=sent, headers=HERE).status_code == 403
    assert desk.by_people() == []


def test_airflows_audit_log_knows_it_too(desk: Desk, operator: TestClient) -> None:
    """Airflow's audit log is where an auditor looks first; the form's token is no business of it."""
    key = str(number("job failed 1"))
    for url, params in ((f"{JOBS}/row", {"key": key}), (f"{JOBS}/all/retry", {"words": "feed"})):
        action, fields = form_of(operator, url, **params)
        operator.post(action, data=fields, headers=HERE)
    with create_session() as session:
        found = {
            str(row.event): (str(row.owner), str(row.extra))
            for row in session.scalars(select(Log).where(Log.event.like("console_change%")))
        }
    assert set(found) == {"console_change_queue_row", "console_change_queue_rows"}
    for owner, extra in found.values():
        assert owner == "otto"
        assert "arcvest.job_queue" in extra
        assert "form_token" not in extra
    assert key in found["console_change_queue_row"][1]
