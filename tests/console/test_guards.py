"""Who gets in: nobody without a login, a viewer to read, an operator to change, no other site at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.utils.session import create_session
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from sqlalchemy import delete, select
from starlette.routing import BaseRoute, Mount

from console.guards import SESSION_COOKIE
from tests.console.conftest import OWN, Console, token
from tests.console.sample import DISPATCH, RENDERING, number

OPEN = {
    ("GET", "/almanac/files/{token}"),
    ("GET", "/almanac/nifya/unsubscribe/{token}"),
    ("POST", "/almanac/nifya/unsubscribe/{token}"),
    ("GET", "/almanac/ecocomply/unsubscribe/{token}"),
    ("POST", "/almanac/ecocomply/unsubscribe/{token}"),
    ("GET", "/almanac/ecocomply/digests/{token}"),
    ("POST", "/almanac/ecocomply/digests/{token}"),
}
"""Ruling 19: links with a token are the only public routes."""

HERE = {"origin": OWN, "sec-fetch-site": "same-origin"}
CERTIFICATES = "/almanac/clearpath/certificates"
REGENERATE = f"{CERTIFICATES}/{number('ada certificate')}/regenerate"


def routes(of: Any, under: str = "") -> Iterator[tuple[str, str, BaseRoute]]:
    """Return every route of an app with its methods, those of mounted apps included."""
    for route in of.routes:
        if isinstance(route, Mount):
            yield from routes(route.app, under + route.path)
            continue
        for method in sorted(getattr(route, "methods", None) or {"GET"}):
            yield method, under + getattr(route, "path", "?"), route


def console_routes(console: Console) -> list[tuple[str, str]]:
    """Return method and path of what the console adds, the framework's own pages left out."""
    found = [(m, p, r) for m, p, r in routes(console.app) if p.startswith("/almanac")]
    # A bare Starlette route or a static mount has no dependencies, and so no guard.
    assert [p for _, p, r in found if not isinstance(r, APIRoute)] == []
    return [(m, p) for m, p, _ in found]


def filled(path: str) -> str:
    """Return a path with something in the place of each parameter."""
    return re.sub(
        r"\{(\w+)(:\w+)?\}", lambda m: "0" if m[1] == "position" else str(number("ada certificate")), path
    )


def test_every_route_but_the_signed_link_wants_a_login(console: Console) -> None:
    """A route that is added without a guard is public: this walks the routes, so that it is found."""
    anonymous = console.as_user(None)
    listed = console_routes(console)
    assert len(listed) >= 13
    assert set(listed) >= OPEN
    answers = {
        (method, path): (
            anonymous.request(method, filled(path)).status_code,
            anonymous.request(method, filled(path), headers={"authorization": "Bearer nonsense"}).status_code,
            anonymous.request(method, filled(path), headers={"cookie": "_token=nonsense"}).status_code,
        )
        for method, path in listed
        if (method, path) not in OPEN
    }
    assert answers == dict.fromkeys(answers, (401, 403, 403))


def test_the_signed_link_alone_gives_nothing_without_its_token(console: Console) -> None:
    """The one open route must not tell a guess from a file that exists."""
    answer = console.as_user(None).get("/almanac/files/nonsense")
    assert answer.status_code == 404
    assert "not valid" in answer.text


def test_there_is_no_schema_and_no_docs_page(console: Console) -> None:
    """FastAPI adds them without a login, and they would tell a stranger all routes."""
    anonymous = console.as_user(None)
    for path in ("openapi.json", "docs", "redoc", "docs/oauth2-redirect"):
        assert anonymous.get(f"/almanac/{path}").status_code == 404


def test_an_expired_login_is_asked_for_again(console: Console) -> None:
    """A page that was left open overnight must say 401, not show yesterday's rights."""
    stale = token("vera", "VIEWER", seconds=-100)
    anonymous = console.as_user(None)
    answer = anonymous.get("/almanac/runs", headers={"authorization": f"Bearer {stale}"})
    assert answer.status_code == 401
    assert "/auth/login" in answer.text


def test_a_reader_reads_every_page(reader: TestClient) -> None:
    """The reader's role is for exactly this."""
    mail = number("sent")
    for path in (
        "runs",
        f"runs/{DISPATCH}",
        f"runs/{DISPATCH}/scheduled__2027-03-10T09:00:00+00:00",
        "alerts",
        "clearpath/mail",
        f"clearpath/mail/{mail}",
        f"clearpath/mail/{mail}/message/{number('claim sent')}/0",
        "clearpath/certificates",
        "clearpath/lab",
        "static/console.css",
    ):
        assert reader.get(f"/almanac/{path}").status_code == 200, path


def form_of(client: TestClient) -> dict[str, str]:
    """Return the fields of the first regenerate form, as the browser would send them."""
    page = client.get(CERTIFICATES)
    found = re.search(r'name="form_token" value="([0-9a-f]+)"', page.text)
    assert found is not None
    return {"form_token": found[1]}


def test_an_operator_regenerates(operator: TestClient) -> None:
    """What the specification asks for: a person can have a new PDF made from the certificate's page."""
    answer = operator.post(REGENERATE, data=form_of(operator), headers=HERE)
    assert answer.status_code == 303
    assert triggered() == [({"certificate_id": str(number("ada certificate"))}, "otto")]
    back = operator.get(answer.headers["location"])
    assert "A new PDF is asked for" in back.text
    assert "CP-2027-ADA" in back.text


def test_a_viewer_neither_sees_the_button_nor_gets_through_without_it(
    console: Console, viewer: TestClient, operator: TestClient
) -> None:
    """Hiding a button guards nothing: the route itself must refuse the role."""
    assert "regenerate" not in viewer.get(CERTIFICATES).text.lower().replace("regenerating", "")
    session = operator.get(CERTIFICATES).cookies[SESSION_COOKIE]
    viewer.cookies.set(SESSION_COOKIE, session)
    assert viewer.post(REGENERATE, data=form_of(operator), headers=HERE).status_code == 403
    bearer = {"authorization": f"Bearer {token('vera', 'VIEWER')}"}
    assert console.as_user(None).post(REGENERATE, headers=bearer).status_code == 403
    assert triggered() == []


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.test", "sec-fetch-site": "cross-site"},
        {"origin": OWN, "sec-fetch-site": "cross-site"},
        {"origin": OWN, "sec-fetch-site": "same-site"},
        {"origin": "null", "sec-fetch-site": "same-origin"},
        {"origin": "https://evil.test"},
        {"origin": OWN.replace("//", "//evil.")},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "http://[::1"},
        {},
    ],
    ids=str,
)
def test_a_form_on_another_site_changes_nothing(operator: TestClient, headers: dict[str, str]) -> None:
    """The login cookie goes along with every request: the origin decides, whatever token the form has."""
    assert operator.post(REGENERATE, data=form_of(operator), headers=headers).status_code == 403
    assert triggered() == []


def test_a_form_needs_the_token_of_its_own_session_and_user(console: Console, operator: TestClient) -> None:
    """A token that anybody can get for himself, or that outlives the session, protects nobody."""
    data = form_of(operator)
    other = console.as_user("ada", "ADMIN")
    for stolen in (
        {},
        {"form_token": ""},
        {"form_token": "0" * 64},
        {"form_token": "é" * 64},
        form_of(other),
    ):
        assert operator.post(REGENERATE, data=stolen, headers=HERE).status_code == 403
    other.cookies.set(SESSION_COOKIE, operator.cookies[SESSION_COOKIE])
    assert other.post(REGENERATE, data=data, headers=HERE).status_code == 403
    operator.cookies.delete(SESSION_COOKIE)
    assert operator.post(REGENERATE, data=data, headers=HERE).status_code == 403
    assert triggered() == []


@pytest.mark.parametrize(
    "headers", [{"origin": OWN}, {"sec-fetch-site": "same-origin"}], ids=["origin alone", "fetch site alone"]
)
def test_a_browser_that_sends_but_one_of_the_two_headers_gets_through(
    operator: TestClient, headers: dict[str, str]
) -> None:
    """Over plain HTTP a browser sends no Sec-Fetch-Site; nobody must be locked out for that."""
    assert operator.post(REGENERATE, data=form_of(operator), headers=headers).status_code == 303
    assert len(triggered()) == 1


def test_a_service_account_needs_no_form(console: Console) -> None:
    """Applications use a token of their own in a header, which no other site can add."""
    headers = {"authorization": f"Bearer {token('otto', 'USER')}", "accept": "application/json"}
    answer = console.as_user(None).post(REGENERATE, headers=headers)
    assert answer.status_code == 202
    assert answer.json()["dag_id"] == RENDERING
    assert len(triggered()) == 1


def test_an_unknown_certificate_triggers_nothing(operator: TestClient) -> None:
    """A run that can only fail would wake somebody at night."""
    url = f"{CERTIFICATES}/{number('nobody')}/regenerate"
    assert operator.post(url, data=form_of(operator), headers=HERE).status_code == 404
    assert triggered() == []


def test_the_audit_log_knows_who_asked(operator: TestClient) -> None:
    """Airflow's audit log is where an auditor looks for who changed something."""
    operator.post(REGENERATE, data=form_of(operator), headers=HERE)
    with create_session() as session:
        row = session.scalars(select(Log).where(Log.event == "console_regenerate_certificate")).one()
        assert row.owner == "otto"
        assert str(number("ada certificate")) in (row.extra or "")
        assert "form_token" not in (row.extra or "")


def test_every_answer_carries_the_security_headers(console: Console, viewer: TestClient) -> None:
    """One page without them is enough for a frame around it or a script in it."""
    anonymous = console.as_user(None)
    for answer in (
        viewer.get("/almanac/runs"),
        viewer.get("/almanac/static/console.js"),
        viewer.get("/almanac/nowhere"),
        anonymous.get("/almanac/runs"),
        anonymous.get("/almanac/files/nonsense"),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'self'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"


def triggered() -> list[tuple[Any, str | None]]:
    """Return conf and user of every run of the rendering DAG."""
    with create_session() as session:
        query = select(DagRun.conf, DagRun.triggering_user_name).where(DagRun.dag_id == RENDERING)
        return [(conf, user) for conf, user in session.execute(query)]


@pytest.fixture(autouse=True)
def no_runs_before(airflow: None) -> None:
    """Take away the runs and log lines of the test before."""
    with create_session() as session:
        session.execute(delete(DagRun))
        session.execute(delete(Log))
