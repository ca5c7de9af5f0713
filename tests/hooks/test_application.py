"""The application hook, against the application's endpoints on loopback."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.sdk.execution_time.timeout import TimeoutPosix

from hooks.application import ApplicationHook, application
from include.arcvest.application import NoAnswer
from include.errors import AlmanacError, BadInput, Outage, Refused
from stack.fakes.application_server import ApplicationServer
from stack.fakes.http_fake import Sent, as_json

SECRET = "p/s@s:%#1"
ENDPOINT = "api/cron/ads-sync"


@pytest.fixture
def server() -> Iterator[ApplicationServer]:
    """Run the application beneath a path."""
    with ApplicationServer(secret=SECRET, base_path="/app/v1") as running:
        yield running


@pytest.fixture
def connect(server: ApplicationServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes the hook for the connection, whose parts can be changed."""

    def connected(**changed: Any) -> Any:
        extra = {"timeout": 0.4, **changed.pop("extra", {})}
        parts = {"conn_type": "almanac_application", "host": server.url, "password": SECRET, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_ARCVEST_APP", json.dumps({**parts, **changed}))
        return application("arcvest_app")

    return connected


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_call(connect: Any, server: ApplicationServer, method: str) -> None:
    """R3: secret, key and path reach the application exactly; the answer comes back."""
    answer = connect(extra={"method": method}).call(ENDPOINT, "ads-sync/2026-11-25T08:00:00Z")
    assert answer == {"success": True, "job": "ads-sync", "again": False}
    (asked,) = server.asked
    assert (asked.method, asked.path) == (method, "/app/v1/api/cron/ads-sync")
    assert asked.headers["Authorization"] == f"Bearer {SECRET}"
    assert asked.headers["Idempotency-Key"] == "ads-sync/2026-11-25T08:00:00Z"
    assert server.done == ["ads-sync/2026-11-25T08:00:00Z"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Sent(401), Outage),
        (Sent(403), Outage),
        (Sent(409), Outage),
        (Sent(429, headers={"Retry-After": "60"}), Outage),
        (Sent(500), Outage),
        (Sent(503), Outage),
        (Sent(301, headers={"Location": "http://169.254.169.254/"}), Outage),
        (as_json({"success": False, "error": "no data"}), Outage),
        (Sent(408), NoAnswer),
        (Sent(502), NoAnswer),
        (Sent(504), NoAnswer),
        (Sent(delay=0.8), NoAnswer),
        (Sent(200, b"{}" * 200, drip=0.01), NoAnswer),
        (Sent(200, b"{}", cut=1), NoAnswer),
        (Sent(200, b"x" * 1_000_001), NoAnswer),
        (Sent(hang_up=True), NoAnswer),
        (Sent(400), Refused),
        (Sent(404), Refused),
    ],
    ids=lambda value: f"{value.status} {value.body[:20]!r}" if isinstance(value, Sent) else value.__name__,
)
def test_what_goes_wrong(
    connect: Any, server: ApplicationServer, answer: Sent, error: type[AlmanacError]
) -> None:
    """Ruling 7: what was not done, what failed, and what nobody knows are three things; the secret shows in none."""
    server.fail(answer)
    with pytest.raises(error) as raised:
        connect().call(ENDPOINT, "key")
    assert type(raised.value) is error
    assert SECRET not in str(raised.value)
    assert len(server.asked) == 1


@pytest.mark.parametrize("body", [b"", b"OK", b"[1]"])
def test_an_answer_without_an_object(connect: Any, server: ApplicationServer, body: bytes) -> None:
    """A 200 says that it was done; what it is worth to a job that moves money is that job's."""
    server.fail(Sent(200, body))
    assert connect().call(ENDPOINT, "key") is None


@pytest.mark.parametrize(
    "body", [b"<!doctype html><title>Sign in</title>", b"\xef\xbb\xbf \n<HTML>", b"<?xml version='1.0'?><a/>"]
)
def test_a_page_is_no_answer(connect: Any, server: ApplicationServer, body: bytes) -> None:
    """A page to sign in on comes with status 200, and nothing was synced."""
    server.fail(Sent(200, body))
    with pytest.raises(NoAnswer, match="answered a page"):
        connect().call(ENDPOINT, "key")


def test_the_end_of_the_tasks_time_is_no_answer(connect: Any, server: ApplicationServer) -> None:
    """Airflow ends a task that is late in the middle of the call: it may have been done all the same."""
    server.fail(Sent(delay=3), after=True)
    with TimeoutPosix(1):
        # And once a second after that: where it falls into a weak reference's callback, Python drops the error.
        signal.setitimer(signal.ITIMER_REAL, 1, 1)
        with pytest.raises(NoAnswer, match="the end of the task's time"):
            connect(extra={"timeout": 30}).call(ENDPOINT, "key")
    assert server.done == ["key"]


def test_nobody_there(connect: Any) -> None:
    """A refused connection is no open question: nothing was sent."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(Outage, match="no connection") as raised:
        connect(host=f"http://127.0.0.1:{port}").call(ENDPOINT, "key")
    assert not isinstance(raised.value, NoAnswer)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"password": ""}, "password"),
        ({"password": "a\nb"}, "password"),
        ({"extra": {"method": "DELETE"}}, "method"),
        ({"host": "ftp://a"}, "base URL"),
        # A call ends before its task does, which ends after 600 s.
        ({"extra": {"timeout": 600}}, "timeout"),
    ],
)
def test_a_connection_that_says_nonsense(connect: Any, changed: Any, why: str) -> None:
    """The error names the connection and the part of it that is wrong."""
    with pytest.raises(BadInput, match=f"connection arcvest_app.*{why}"):
        connect(**changed).call(ENDPOINT, "key")


def test_the_test_button(connect: Any, server: ApplicationServer) -> None:
    """It must start no sync."""
    connect()
    assert ApplicationHook("arcvest_app").test_connection() == (True, "The application answered HTTP 200")
    assert server.asked == []
