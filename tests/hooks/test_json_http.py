"""One HTTP request with a JSON answer: what is bounded, and what an error may show."""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread

import pytest

from hooks.connections import access
from hooks.json_http import Answer, Limits, Unanswered, Unreached, request
from stack.fakes.http_fake import HttpFake, Request, Sent

SECRET = "p/s@s:%#1"


class Serving(HttpFake):
    """Answers every request with what it holds, and keeps the bodies that came."""

    def __init__(self) -> None:
        super().__init__(base_path="/x")
        self.sent = Sent()
        self.bodies: list[bytes] = []

    def answer(self, request: Request) -> Sent:
        self.bodies.append(request.method.encode() + b" " + request.body)
        return self.sent


@pytest.fixture
def server() -> Iterator[Serving]:
    """Run a server on loopback."""
    with Serving() as running:
        yield running


def test_what_is_sent_and_read(server: Serving) -> None:
    """Text goes as it is written, in UTF-8, and comes back so."""
    server.sent = Sent(200, '{"a": "ñ"}'.encode())
    answer = request("POST", server.url, {"X-A": "b"}, {"text": "Ñandú"})
    assert answer.json() == {"a": "ñ"}
    assert server.bodies == ['POST {"text": "Ñandú"}'.encode()]


def test_a_small_answer_that_unpacks_to_a_huge_one(server: Serving) -> None:
    """F4's kind: what is counted is what is unpacked, whatever was asked for."""
    server.sent = Sent(200, gzip.compress(b" " * 50_000_000), {"Content-Encoding": "gzip"})
    with pytest.raises(Unanswered, match="larger"):
        request("GET", server.url, {}, limits=Limits(largest=1_000_000))


def test_one_byte_at_a_time_does_not_last_for_ever(server: Serving) -> None:
    """A read timeout alone is started anew by every byte."""
    server.sent = Sent(200, b" " * 1_000, drip=0.02)
    with pytest.raises(Unanswered, match=r"within 0\.3 s"):
        request("GET", server.url, {}, limits=Limits(silence=1, total=0.3))


def test_headers_that_drip_do_not_last_for_ever_either() -> None:
    """No byte of a body has come by then: the limit is that of the whole request."""

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            for _ in range(40):
                connection.sendall(b"a")
                time.sleep(0.1)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=serve, args=(listening,), daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        began = time.monotonic()
        with pytest.raises(Unanswered, match=r"within 0\.5 s"):
            request("GET", url, {}, limits=Limits(silence=1, total=0.5))
        assert time.monotonic() - began < 2


@pytest.mark.parametrize("url", ["http://", "ftp://127.0.0.1/x", "http://127.0.0.1:99999/", "http://a b/"])
def test_what_can_not_be_asked(url: str) -> None:
    """A URL that is none has sent nothing."""
    with pytest.raises(Unreached):
        request("GET", url, {})


def test_a_header_that_can_not_be_sent(server: Serving) -> None:
    """The error must not show the header, which may be a secret."""
    with pytest.raises(Unreached) as raised:
        request("GET", server.url, {"Authorization": f"Bearer {SECRET}\nX-Evil: 1"})
    assert SECRET not in str(raised.value)
    assert server.bodies == []


def test_what_an_error_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """R3: a server that repeats our secret, as it is or quoted, must not get it into a log."""
    parts = {"conn_type": "http", "host": "http://a.test", "password": SECRET}
    monkeypatch.setenv("AIRFLOW_CONN_SHOWN", json.dumps(parts))
    body = f"you sent {SECRET} and p%2Fs%40s%3A%25%231\n\x1b[31m {'x' * 5_000}".encode()
    said = Answer(400, "Bad Request", body).says(access("shown"))
    assert said.startswith("HTTP 400 Bad Request: you sent *** and ***")
    assert "\x1b" not in said
    assert len(said) < 300
    moved = Answer(302, "Found", b"", location=f"http://b.test/?key={SECRET}").says(access("shown"))
    assert moved == "HTTP 302 Found: redirects are not followed (to http://b.test/?key=***)"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_json(body: bytes) -> None:
    """Whoever reads it gets nothing, rather than an error of the parser's."""
    assert Answer(200, "OK", body).json() is None
