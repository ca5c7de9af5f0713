"""What the HTTP services on loopback share: a server in a thread, the faults of its answers, the command line."""

from __future__ import annotations

import argparse
import json
import socket
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came: the path with its query, the headers found in any case, no body for a GET."""

    method: str
    path: str
    headers: Message
    body: bytes


@dataclass(frozen=True, slots=True)
class Sent:
    """One answer.

    `delay` is in seconds before the first byte, `drip` between the single bytes of the body; `cut` leaves off that
    many of its last bytes though Content-Length counts them, and hangs up. `hang_up` answers nothing at all.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    delay: float = 0
    drip: float = 0
    cut: int = 0
    hang_up: bool = False


def as_json(content: Any, status: int = 200, **said: Any) -> Sent:
    """Return content as an answer."""
    return Sent(status, json.dumps(content, ensure_ascii=False).encode(), **said)


class HttpFake(ABC):
    """A service, in a thread of this process; use it as a context manager."""

    def __init__(self, *, base_path: str = "", port: int = 0) -> None:
        self.base_path = base_path.rstrip("/")
        self._server = _Server(port, self.answer)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @abstractmethod
    def answer(self, request: Request) -> Sent:
        """Return the answer to one GET or POST; each is asked for in a thread of its own."""

    @property
    def host(self) -> str:
        """Host and port, as an allow-list names them."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        """The base URL, its path included."""
        return f"http://{self.host}{self.base_path}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def serve(self, name: str) -> None:
        """Serve in this thread until it is interrupted; the first line of standard output says where."""
        sys.stdout.write(f"{name} at {self.url}\n")
        sys.stdout.flush()
        try:
            self._server.serve_forever()
        except KeyboardInterrupt:
            sys.stdout.write(f"{name} stopped\n")


def command_line(module: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser of what every fake can be told."""
    parser = argparse.ArgumentParser(prog=f"python -m stack.fakes.{module}", description=description)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    return parser


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, answer: Callable[[Request], Sent]) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.answer = answer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep silent about a client that hangs up early."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _answer(self, body: bytes) -> None:
        request = Request(self.command, self.path, self.headers, body)
        self._send(cast("_Server", self.server).answer(request))

    def _send(self, answer: Sent) -> None:
        time.sleep(answer.delay)
        if answer.hang_up:
            self._hang_up()
            return
        self.send_response(answer.status)
        headers = {"Content-Type": answer.content_type, "Content-Length": str(len(answer.body))}
        for name, value in {**headers, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        sent = answer.body[: len(answer.body) - answer.cut]
        if answer.drip:
            for byte in sent:
                self.wfile.write(bytes([byte]))
                time.sleep(answer.drip)
        else:
            self.wfile.write(sent)
        if answer.cut:
            self._hang_up()

    def _hang_up(self) -> None:
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's own name
        """Say nothing: tests read what was asked."""
