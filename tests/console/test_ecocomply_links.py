"""The links that stop EcoComply's mail: open to whoever has the mail, and to nothing that merely follows links."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import URL

from console.app import create_app
from console.databases import Databases
from hooks.link_keys import KeyHook, unsubscribe_links
from include.ecocomply.unsubscribe_links import LINK_DAYS, UnsubscribeLinks
from include.errors import BadInput
from include.run import EngineDatabase
from tests.ecocomply.rows import Rows

PATH = "/almanac/ecocomply"
SECRET = "k" * 32
TYPE = "EVIDENCE_REMINDER"


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Return a company."""
    return Rows(database_of("ecocomply"))


@pytest.fixture
def anonymous(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """Return a browser in which nobody is signed in."""
    said = json.dumps({"conn_type": "almanac_key", "password": SECRET})
    monkeypatch.setenv("AIRFLOW_CONN_ECOCOMPLY_LINKS", said)
    urls: dict[str, URL] = {"ecocomply_db": rows.database.engine.url}
    opened = Databases(urls.__getitem__)
    app = FastAPI()
    app.mount("/almanac", create_app(opened))
    yield TestClient(app, headers={"accept": "text/html"})
    opened.close()


def link(user: UUID, *, secret: str = SECRET, age: int = 0) -> str:
    """Return the path of the link in a mail that went out so many days ago."""
    sent = datetime.now(UTC).date() - timedelta(days=age)
    url = UnsubscribeLinks(secret.encode()).url(f"https://public.test{PATH}", user, TYPE, sent)
    return url.removeprefix("https://public.test")


def digest_link(rows: Rows, user: UUID, *, age: timedelta = timedelta(0)) -> str:
    """Return the path of the link in a digest that was sent so long ago."""
    created = datetime.now(UTC) - age
    digest = rows.add(
        "digests", user_id=user, frequency="DAILY", period_start=created.date(), status="sent",
        created_at=created,
    )  # fmt: skip
    (token,) = [row.unsubscribe_token for row in rows.all("digests") if row.id == digest]
    return f"{PATH}/digests/{token}"


def stopped(rows: Rows) -> set[tuple[UUID, str, str]]:
    """Return who wants none of what, by which channel."""
    return {
        (row.user_id, row.notification_type, row.channel)
        for row in rows.all("notification_preferences")
        if not row.is_enabled
    }


def test_get_asks_and_post_stops_without_a_login(rows: Rows, anonymous: TestClient) -> None:
    """Ruling 19: scanners follow links, so a GET changes nothing; a POST stops one type's mail of one user."""
    ana, _ = rows.user("ana"), rows.user("bea")
    for _ in range(2):
        page = anonymous.get(link(ana))
        assert page.status_code == 200
        assert "<form method=post>" in page.text
        assert "evidence reminder" in page.text
    assert stopped(rows) == set()
    done = anonymous.post(link(ana))
    assert done.status_code == 200
    assert "<form" not in done.text
    assert stopped(rows) == {(ana, TYPE, "EMAIL")}


def test_a_mail_programs_own_button(rows: Rows, anonymous: TestClient) -> None:
    """RFC 8058: one POST with List-Unsubscribe=One-Click, from no page, without cookies; twice is once."""
    ana = rows.user("ana")
    for address in (link(ana), link(ana)):
        answer = anonymous.post(
            address, data={"List-Unsubscribe": "One-Click"}, headers={"accept": "*/*", "origin": "null"}
        )
        assert answer.status_code == 200
    assert stopped(rows) == {(ana, TYPE, "EMAIL")}


@pytest.mark.parametrize(("age", "status"), [(LINK_DAYS, 200), (LINK_DAYS + 1, 410)])
def test_a_link_holds_a_year(rows: Rows, anonymous: TestClient, age: int, status: int) -> None:
    """Ruling 19: an expiry, by GET and POST alike, and it says so."""
    ana = rows.user("ana")
    assert anonymous.get(link(ana, age=age)).status_code == status
    assert anonymous.post(link(ana, age=age)).status_code == status
    assert bool(stopped(rows)) == (status == 200)


def test_another_key_opens_nothing(rows: Rows, anonymous: TestClient) -> None:
    """A link that we did not sign is nobody's, and neither is one of a user who is gone."""
    ana = rows.user("ana")
    for address in (link(ana, secret="x" * 32), link(uuid4()), link(ana)[:-1]):
        assert anonymous.post(address).status_code == 404
    assert stopped(rows) == set()


@pytest.mark.parametrize("page", ["unsubscribe", "digests"])
@pytest.mark.parametrize(
    "token",
    ["nonsense", "8c77b82b-a1f5-4d12-b117-2616c0cb58f1", "%00", "a" * 5_000, "'; DROP TABLE users; --"],
)
def test_a_guess_learns_nothing(rows: Rows, anonymous: TestClient, page: str, token: str) -> None:
    """Ruling 19: whatever is wrong with a token, GET and POST answer alike and change nothing."""
    rows.user("ana")
    for answer in (anonymous.get(f"{PATH}/{page}/{token}"), anonymous.post(f"{PATH}/{page}/{token}")):
        assert answer.status_code in (404, 422)
    assert stopped(rows) == set()


def test_a_digests_link_stops_the_digests(rows: Rows, anonymous: TestClient) -> None:
    """GET asks, POST stops the types of that frequency by mail, and nothing of others; the digest's id is no token."""
    ana, bea = rows.user("ana"), rows.user("bea")
    for user, kind, frequency in (
        (ana, TYPE, "DAILY_DIGEST"), (ana, "BREACH", "WEEKLY_DIGEST"), (bea, TYPE, "DAILY_DIGEST"),
    ):  # fmt: skip
        rows.add(
            "notification_preferences", user_id=user, notification_type=kind, channel="EMAIL",
            frequency_preference=frequency,
        )  # fmt: skip
    address = digest_link(rows, ana)
    assert "No more daily digests?" in anonymous.get(address).text
    (digest,) = rows.all("digests")
    assert anonymous.post(f"{PATH}/digests/{digest.id}").status_code == 404
    assert stopped(rows) == set()
    for _ in range(2):
        assert anonymous.post(address, data={"List-Unsubscribe": "One-Click"}).status_code == 200
    assert stopped(rows) == {(ana, TYPE, "EMAIL")}


@pytest.mark.parametrize(("days", "status"), [(364, 200), (366, 410)])
def test_a_digests_link_holds_a_year(rows: Rows, anonymous: TestClient, days: int, status: int) -> None:
    """As the link of a mail; one that has expired stops nothing."""
    ana = rows.user("ana")
    rows.add(
        "notification_preferences", user_id=ana, notification_type=TYPE, channel="EMAIL",
        frequency_preference="DAILY_DIGEST",
    )  # fmt: skip
    address = digest_link(rows, ana, age=timedelta(days=days))
    assert anonymous.get(address).status_code == anonymous.post(address).status_code == status
    assert stopped(rows) == ({(ana, TYPE, "EMAIL")} if status == 200 else set())


def test_the_page_runs_nothing_and_stands_in_no_frame(rows: Rows, anonymous: TestClient) -> None:
    """A public page: no script, no frame around it, no address of it told to others, no copy kept."""
    headers = anonymous.get(link(rows.user("ana"))).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "script-src" not in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("secret", "works"), [("k" * 31, False), ("k" * 32, True), ("é" * 16, True), ("", False)]
)
def test_the_key_is_long_enough(monkeypatch: pytest.MonkeyPatch, secret: str, works: bool) -> None:  # noqa: FBT001 - a case
    """A short key could be guessed; the Test button says so, and never the key."""
    monkeypatch.setenv(
        "AIRFLOW_CONN_ECOCOMPLY_LINKS", json.dumps({"conn_type": "almanac_key", "password": secret})
    )
    ok, said = KeyHook("ecocomply_links").test_connection()
    assert ok == works
    assert not secret or secret not in said
    if not works:
        with pytest.raises(BadInput, match="32"):
            unsubscribe_links("ecocomply_links")
