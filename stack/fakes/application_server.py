"""ArcVest's application on loopback: three scheduled endpoints that do their work once per idempotency key."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from stack.fakes.http_fake import HttpFake, Request, Sent, as_json, command_line

ENDPOINTS = ("analytics-sync", "ads-sync", "ads-optimize")


class ApplicationServer(HttpFake):
    """The application.

    `asked` holds every call, `done` the keys whose work was done, each once. A fault of `fail` goes out after the
    work was done if `after` says so, and in place of it otherwise.
    """

    def __init__(self, *, secret: str = "app-secret", base_path: str = "", port: int = 0) -> None:  # noqa: S107 - a fake's
        super().__init__(base_path=base_path, port=port)
        self.secret = secret
        self.asked: list[Request] = []
        self.done: list[str] = []
        self._faults: list[tuple[Sent, bool]] = []
        self._lock = threading.Lock()

    def fail(self, fault: Sent, *, after: bool = False) -> None:
        """Let the next call go wrong."""
        self._faults.append((fault, after))

    def answer(self, request: Request) -> Sent:
        if request.path in (self.base_path or "/", f"{self.base_path}/"):
            return as_json({"name": "ArcVest"})
        with self._lock:
            self.asked.append(request)
            fault, after = self._faults.pop(0) if self._faults else (None, False)
            if fault is not None and not after:
                return fault
            if request.headers.get("Authorization") != f"Bearer {self.secret}":
                return as_json({"error": "bad secret"}, 401)
            name = request.path.removeprefix(f"{self.base_path}/api/cron/")
            if name not in ENDPOINTS:
                return as_json({"error": "no such path"}, 404)
            key = request.headers.get("Idempotency-Key")
            if not key:
                return as_json({"error": "no idempotency key"}, 400)
            again = key in self.done
            if not again:
                self.done.append(key)
        return fault or as_json({"success": True, "job": name, "again": again})


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the application's endpoints, and say on the first line of standard output where."""
    parser = command_line("application_server", main.__doc__)
    parser.add_argument(
        "--secret",
        default=os.environ.get("ARCVEST_APP_SECRET", "app-secret"),
        help="default: the variable ARCVEST_APP_SECRET",
    )
    given = parser.parse_args(arguments)
    ApplicationServer(secret=given.secret, port=given.port).serve("application")


if __name__ == "__main__":
    main()
