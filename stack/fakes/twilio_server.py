"""Twilio on loopback: the part of its API that `hooks.sms_twilio` speaks, with what the real one refuses."""

from __future__ import annotations

import base64
import re
import threading
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from stack.fakes.http_fake import HttpFake, Request, Sent, as_json, command_line

ACCOUNT = "AC" + "0" * 32


class TwilioServer(HttpFake):
    """Twilio; it knows no idempotency keys. `sent` holds the messages that were taken.

    `landlines` are numbers that take no SMS, `stopped` those who want none. A fault of `fail` goes out after the
    message was taken if `after` says so, and in place of it otherwise.
    """

    def __init__(
        self,
        *,
        account: str = ACCOUNT,
        login: str = "",
        token: str = "twilio-token",  # noqa: S107 - a fake's
        senders: Sequence[str] = ("+15005550006",),
        base_path: str = "",
        port: int = 0,
    ) -> None:
        super().__init__(base_path=base_path, port=port)
        self.account = account
        self.login = login or account
        self.token = token
        self.senders = senders
        self.status = "active"
        self.landlines: set[str] = set()
        self.stopped: set[str] = set()
        self.sent: list[dict[str, str]] = []
        self.asked: list[Request] = []
        self._faults: list[tuple[Sent, bool]] = []
        self._lock = threading.Lock()

    def fail(self, fault: Sent, *, after: bool = False) -> None:
        """Let the next message go wrong."""
        self._faults.append((fault, after))

    def answer(self, request: Request) -> Sent:
        basic = base64.b64encode(f"{self.login}:{self.token}".encode()).decode()
        if request.headers.get("Authorization") != f"Basic {basic}":
            return problem(401, 20003, "Authenticate")
        path = request.path.removeprefix(self.base_path)
        account = f"/2010-04-01/Accounts/{self.account}"
        if (request.method, path) == ("GET", f"{account}.json"):
            return as_json({"sid": self.account, "status": self.status, "friendly_name": "A fake"})
        if (request.method, path) != ("POST", f"{account}/Messages.json"):
            return problem(404, 20404, f"The requested resource {path} was not found")
        with self._lock:
            self.asked.append(request)
            fault, after = self._faults.pop(0) if self._faults else (None, False)
            if fault is not None and not after:
                return fault
            form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
            if request.headers.get_content_type() != "application/x-www-form-urlencoded":
                form = {}
            if (why := self._fault(form)) is not None:
                return problem(400, *why)
            self.sent.append(form)
        return fault or as_json({"sid": f"SM{uuid.uuid4().hex}", "status": "queued", "error_code": None}, 201)

    def _fault(self, form: Mapping[str, str]) -> tuple[int, str] | None:  # noqa: PLR0911 - one return a rule
        to = form.get("To", "")
        if not to:
            return 21604, "A 'To' phone number is required."
        if form.get("From", form.get("MessagingServiceSid")) not in self.senders:
            return (
                21606,
                "The 'From' phone number provided is not a valid message-capable Twilio phone number.",
            )
        if not re.fullmatch(r"\+[1-9][0-9]{6,14}", to):
            return 21211, f"Invalid 'To' Phone Number: {to}"
        if to in self.landlines:
            return 21614, f"'To' number: {to}, is not a valid mobile number"
        if to in self.stopped:
            return 21610, "Attempt to send to unsubscribed recipient"
        if not form.get("Body"):
            return 21602, "Message body is required."
        if len(form["Body"]) > 1_600:  # noqa: PLR2004 - Twilio's own number
            return 21617, "The concatenated message body exceeds the 1600 character limit."
        return None


def problem(status: int, code: int, message: str, **said: Any) -> Sent:
    """Return an error in Twilio's form."""
    body = {"code": code, "message": message, "more_info": f"https://www.twilio.com/docs/errors/{code}"}
    return as_json({**body, "status": status}, status, **said)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve Twilio's API, and say on the first line of standard output where."""
    parser = command_line("twilio_server", main.__doc__)
    parser.add_argument("--token", default="twilio-token")
    given = parser.parse_args(arguments)
    TwilioServer(token=given.token, port=given.port).serve("twilio")


if __name__ == "__main__":
    main()
