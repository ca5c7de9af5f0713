"""SendGrid on loopback: the part of its v3 API that `hooks.email_sendgrid` speaks, with what the real one refuses."""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any

from stack.fakes.http_fake import HttpFake, Request, Sent, as_json, command_line

_ADDRESS = re.compile(r"[^\s@<>,;]+@[^\s@<>,;]+\.[^\s@<>,;]+")
# SendGrid refuses to have these set by the sender.
_RESERVED = {
    "x-sg-id", "x-sg-eid", "received", "dkim-signature", "content-type", "content-transfer-encoding", "to", "from",
    "subject", "reply-to", "cc", "bcc",
}  # fmt: skip


class SendGridServer(HttpFake):
    """SendGrid; it knows no idempotency keys, so what comes twice is delivered twice.

    `delivered` holds the bodies that were taken. `senders` are the verified ones, None: any. A fault of `fail` goes
    out after the message was taken if `after` says so, and in place of it otherwise.
    """

    def __init__(
        self,
        *,
        api_key: str = "SG.fake",
        base_path: str = "",
        port: int = 0,
        senders: Sequence[str] | None = None,
        scopes: Sequence[str] = ("mail.send",),
        latency: float = 0,
    ) -> None:
        super().__init__(base_path=base_path, port=port)
        self.api_key = api_key
        self.senders = senders
        self.scopes = scopes
        self.latency = latency
        self.delivered: list[dict[str, Any]] = []
        self.asked: list[Request] = []
        self.most_at_once = 0
        self._at_once = 0
        self._faults: list[tuple[Sent, bool]] = []
        self._lock = threading.Lock()

    def fail(self, fault: Sent, *, after: bool = False) -> None:
        """Let the next message go wrong."""
        self._faults.append((fault, after))

    def answer(self, request: Request) -> Sent:
        path = request.path.removeprefix(self.base_path)
        if request.headers.get("Authorization") != f"Bearer {self.api_key}":
            return problem(401, "The provided authorization grant is invalid, expired, or revoked")
        if (request.method, path) == ("GET", "/v3/scopes"):
            return as_json({"scopes": list(self.scopes)})
        if (request.method, path) != ("POST", "/v3/mail/send"):
            return problem(404, "not found")
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self.asked.append(request)
            fault, after = self._faults.pop(0) if self._faults else (None, False)
        try:
            time.sleep(self.latency)
            if fault is not None and not after:
                return fault
            return self._take(request, fault)
        finally:
            with self._lock:
                self._at_once -= 1

    def _take(self, request: Request, fault: Sent | None) -> Sent:
        if "mail.send" not in self.scopes:
            return problem(403, "access forbidden")
        try:
            body = json.loads(request.body)
        except ValueError:
            return problem(400, "Bad Request")
        if (why := self._fault(body)) is not None:
            return problem(*why)
        with self._lock:
            self.delivered.append(body)
        return fault or Sent(202, b"", {"X-Message-Id": uuid.uuid4().hex}, content_type="text/plain")

    def _fault(self, body: Any) -> tuple[int, str, str] | None:  # noqa: C901, PLR0911 - one return a rule
        if not isinstance(body, dict) or not isinstance(body.get("personalizations"), list):
            return 400, "The personalizations field is required.", "personalizations"
        sender = (body.get("from") or {}).get("email", "")
        if not _ADDRESS.fullmatch(sender):
            return 400, "The from email does not contain a valid address.", "from.email"
        if self.senders is not None and sender not in self.senders:
            return 403, "The from address does not match a verified Sender Identity.", "from"
        for number, one in enumerate(body["personalizations"]):
            for place, to in enumerate(one.get("to") or [{}]):
                if not _ADDRESS.fullmatch(to.get("email", "")):
                    where = f"personalizations.{number}.to.{place}.email"
                    return 400, "Does not contain a valid address.", where
        if not body.get("subject"):
            return 400, "The subject is required.", "subject"
        content = body.get("content") or []
        if [one.get("type") for one in content] not in (["text/plain"], ["text/plain", "text/html"]):
            return 400, "The content must be text/plain first, then text/html.", "content"
        if not all(one.get("value") for one in content):
            return (
                400,
                "The content value must be a string at least one character in length.",
                "content.0.value",
            )
        if {name.lower() for name in body.get("headers", {})} & _RESERVED:
            return 400, "The header is reserved.", "headers"
        return None


def problem(status: int, message: str, field: str | None = None, **said: Any) -> Sent:
    """Return an error in SendGrid's form."""
    return as_json({"errors": [{"message": message, "field": field, "help": None}]}, status, **said)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve SendGrid's API, and say on the first line of standard output where."""
    parser = command_line("sendgrid_server", main.__doc__)
    parser.add_argument("--api-key", default="SG.fake")
    given = parser.parse_args(arguments)
    SendGridServer(api_key=given.api_key, port=given.port).serve("sendgrid")


if __name__ == "__main__":
    main()
