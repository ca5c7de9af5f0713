"""The link that stops the digests: open to whoever has the mail, and to nothing that merely follows links."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import URL

from console.app import create_app
from console.databases import Databases
from include.nifya.tables import DIGESTS, USERS
from include.run import EngineDatabase
from tests.nifya.rows import Rows

PATH = "/almanac/nifya/unsubscribe"


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Return a NIFYA with two users."""
    made = Rows(database_of("nifya"))
    made.user("ana")
    made.user("bea")
    return made


@pytest.fixture
def anonymous(rows: Rows) -> Iterator[TestClient]:
    """Return a browser in which nobody is signed in."""
    urls: dict[str, URL] = {"nifya_db": rows.db.engine.url}
    opened = Databases(urls.__getitem__)
    app = FastAPI()
    app.mount("/almanac", create_app(opened))
    yield TestClient(app, headers={"accept": "text/html"})
    opened.close()


def token_of(rows: Rows, user: str, age: timedelta = timedelta(0)) -> str:
    """Return the token of a digest that a user was sent."""
    created = datetime.now(UTC) - age
    digest = rows.add(DIGESTS, user_id=user, due_at=created, status="sent", created_at=created)
    return str(rows.one(DIGESTS, digest).unsubscribe_token)


def stopped(rows: Rows) -> set[str]:
    """Return the users who get no more digests."""
    return {row.id for row in rows.all(USERS) if row.digests_stopped_at is not None}


def test_get_asks_and_post_stops_without_a_login(rows: Rows, anonymous: TestClient) -> None:
    """E5: scanners follow links, so a GET changes nothing; the POST needs no login and stops one user's digests."""
    address = f"{PATH}/{token_of(rows, 'ana')}"
    for _ in range(2):
        page = anonymous.get(address)
        assert page.status_code == 200
        assert "<form method=post>" in page.text
    assert anonymous.head(address).status_code in (200, 405)
    assert stopped(rows) == set()
    done = anonymous.post(address)
    assert done.status_code == 200
    assert "Ya no recibirás" in done.text
    assert stopped(rows) == {"ana"}
    assert "<form" not in anonymous.get(address).text


def test_a_mail_programs_own_button(rows: Rows, anonymous: TestClient) -> None:
    """E5, RFC 8058: one POST with List-Unsubscribe=One-Click, from no page, without cookies; twice is once."""
    address = f"{PATH}/{token_of(rows, 'bea')}"
    for _ in range(2):
        answer = anonymous.post(
            address, data={"List-Unsubscribe": "One-Click"}, headers={"accept": "*/*", "origin": "null"}
        )
        assert answer.status_code == 200
    assert stopped(rows) == {"bea"}


@pytest.mark.parametrize(
    "token",
    ["nonsense", "3f2c9a64-1f0e-4c8e-9d57-0a1b2c3d4e5f", "%00", "a" * 5_000, "'; DROP TABLE users; --"],
)
def test_a_guess_learns_nothing(rows: Rows, anonymous: TestClient, token: str) -> None:
    """Ruling 19: whatever is wrong with a token, GET and POST answer alike and change nothing."""
    for answer in (anonymous.get(f"{PATH}/{token}"), anonymous.post(f"{PATH}/{token}")):
        assert answer.status_code in (404, 422)
    assert stopped(rows) == set()


def test_a_token_lives_a_year(rows: Rows, anonymous: TestClient) -> None:
    """Ruling 19: a link has an expiry."""
    young, old = (token_of(rows, "ana", timedelta(days=days)) for days in (364, 366))
    assert anonymous.post(f"{PATH}/{old}").status_code == 404
    assert stopped(rows) == set()
    assert anonymous.post(f"{PATH}/{young}").status_code == 200


def test_a_digests_id_is_no_token(rows: Rows, anonymous: TestClient) -> None:
    """The id stands in logs; it must not be enough to stop somebody's digests."""
    token_of(rows, "ana")
    (digest,) = rows.all(DIGESTS)
    assert anonymous.post(f"{PATH}/{digest.id}").status_code == 404
    assert stopped(rows) == set()


def test_the_page_runs_nothing_and_stands_in_no_frame(rows: Rows, anonymous: TestClient) -> None:
    """A public page: no script, no frame around it, no address of it told to others, no copy kept."""
    headers = anonymous.get(f"{PATH}/{token_of(rows, 'ana')}").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "script-src" not in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
