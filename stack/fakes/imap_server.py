"""A mail account on loopback that speaks as much IMAP as a reader of mail needs, with the malice of bad ones.

`python -m stack.fakes.imap_server --data FILE` serves JSON: a list of {"id", "from", "subject", "text", "date"},
read anew for every session.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socketserver
import ssl
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Self, cast

_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|\(([^()]*)\)|(\S+)')
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Stored:
    """One message of the folder: its content, and when it came in."""

    content: bytes
    came_in: datetime


def letter(
    *,
    message_id: str | None,
    sender: str,
    subject: str,
    text: str = "",
    html: str | None = None,
    sent_at: datetime | None = None,
) -> bytes:
    """Return a message as bytes."""
    made = EmailMessage()
    made["From"] = sender
    made["To"] = "ideas@arcvest.example"
    made["Subject"] = subject
    if message_id is not None:
        made["Message-ID"] = f"<{message_id}>"
    if sent_at is not None:
        made["Date"] = format_datetime(sent_at)
    made.set_content(text)
    if html is not None:
        made.add_alternative(html, subtype="html")
    return made.as_bytes()


class ImapServer:
    """The account, in a thread of this process; use it as a context manager.

    `instead` maps a command (such as "UID FETCH") to bytes that are sent in place of its untagged answers, and
    `drips` to seconds between single bytes of them (of the "greeting" too); `silent` names commands that get no
    answer at all. `before` is told of each command with its words, and may say how it ends in place of "OK".
    `commands` holds what was asked. With `tls` it speaks TLS from the first byte.
    """

    def __init__(
        self,
        *,
        login: str = "reader",
        password: str = "imap-password",  # noqa: S107 - a fake's default
        data: Path | None = None,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.login = login
        self.password = password
        self.tls = tls
        self.validity = 7
        self.messages: dict[int, Stored] = {}
        self.greeting = b"* OK ready\r\n"
        self.instead: dict[str, bytes] = {}
        self.drips: dict[str, float] = {}
        self.silent: set[str] = set()
        self.before: Callable[[str, Sequence[str]], str | None] | None = None
        self.commands: list[str] = []
        self._data = data
        self._server = _Server(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def add(self, content: bytes, came_in: datetime | None = None) -> int:
        """Let a message come in, and return its number."""
        uid = max(self.messages, default=0) + 1
        self.messages[uid] = Stored(content, came_in or datetime.now(UTC))
        return uid

    def stored(self) -> dict[int, Stored]:
        """Return the folder's messages by number."""
        if self._data is None or not self._data.exists():
            return dict(self.messages)
        listed: list[dict[str, Any]] = json.loads(self._data.read_text(encoding="utf-8"))
        return {
            n: Stored(
                letter(
                    message_id=one["id"],
                    sender=one["from"],
                    subject=one["subject"],
                    text=one["text"],
                    sent_at=datetime.fromisoformat(one["date"]),
                ),
                datetime.fromisoformat(one["date"]),
            )
            for n, one in enumerate(listed, start=1)
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def serve_forever(self) -> None:
        """Serve in this thread, until it is interrupted."""
        self._server.serve_forever()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], account: ImapServer) -> None:
        super().__init__(address, _Session)
        self.account = account

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        tls = self.account.tls
        return (tls.wrap_socket(connection, server_side=True) if tls else connection), address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep silent about a client that hangs up early."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Session(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self) -> None:
        account = cast("_Server", self.server).account
        self._send(account.greeting, account.drips.get("greeting", 0))
        stored = account.stored()
        logged_in = False
        while line := self.rfile.readline(65_536):
            tag, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
            words = [a or b or c for a, b, c in _WORD.findall(rest)]
            command = words[0].upper() if words else ""
            if command == "UID" and len(words) > 1:
                command = f"UID {words[1].upper()}"
                words = words[1:]
            account.commands.append(command)
            if command in account.silent:
                time.sleep(60)
                return
            ended = account.before(command, words[1:]) if account.before else None
            if ended is not None:
                self._end(tag, ended)
                continue
            if command == "LOGIN":
                given = [re.sub(r"\\(.)", r"\1", word) for word in words[1:3]]
                logged_in = given == [account.login, account.password]
                self._end(tag, "OK done" if logged_in else "NO [AUTHENTICATIONFAILED] no such login")
                continue
            if command in ("SELECT", "EXAMINE", "UID SEARCH", "UID FETCH") and not logged_in:
                self._end(tag, "BAD log in first")
                continue
            if command in account.instead:
                self._send(account.instead[command], account.drips.get(command, 0))
            elif not self._answer(account, command, words[1:], stored):
                self._end(tag, "BAD unknown command")
                continue
            self._end(tag, f"OK {command} done")
            if command == "LOGOUT":
                return

    def _answer(
        self, account: ImapServer, command: str, words: Sequence[str], stored: dict[int, Stored]
    ) -> bool:
        if command == "CAPABILITY":
            self._send(b"* CAPABILITY IMAP4rev1\r\n")
        elif command in ("SELECT", "EXAMINE"):
            said = f"* {len(stored)} EXISTS\r\n* 0 RECENT\r\n* OK [UIDVALIDITY {account.validity}] valid\r\n"
            self._send(said.encode())
        elif command == "UID SEARCH":
            found = [str(uid) for uid in sorted(stored) if _matches(uid, stored, words)]
            self._send(f"* SEARCH {' '.join(found)}\r\n".encode())
        elif command == "UID FETCH":
            for uid in [int(one) for one in words[0].split(",")]:
                if uid in stored:
                    self._send(_fetched(uid, stored[uid].content, words[1]))
        elif command == "LOGOUT":
            self._send(b"* BYE\r\n")
        else:
            return command == "NOOP"
        return True

    def _send(self, answer: bytes, drip: float = 0) -> None:
        if not drip:
            self.wfile.write(answer)
            return
        for byte in answer:
            self.wfile.write(bytes([byte]))
            time.sleep(drip)

    def _end(self, tag: str, said: str) -> None:
        self.wfile.write(f"{tag} {said}\r\n".encode())


def _matches(uid: int, stored: dict[int, Stored], words: Sequence[str]) -> bool:
    asked = [part for word in words for part in word.split()]
    if "SINCE" in asked:
        day, month, year = asked[asked.index("SINCE") + 1].split("-")
        since = datetime(int(year), _MONTHS.index(month) + 1, int(day), tzinfo=UTC)
        return stored[uid].came_in.date() >= since.date()
    if "UID" in asked:
        first = int(asked[asked.index("UID") + 1].partition(":")[0])
        # As the protocol has it: the last message always matches `n:*`.
        return uid >= first or uid == max(stored)
    return True


def _fetched(uid: int, content: bytes, parts: str) -> bytes:
    said = f"* {uid} FETCH (UID {uid} FLAGS () RFC822.SIZE {len(content)}".encode()
    if "BODY" not in parts:
        return said + b")\r\n"
    return said + f" BODY[] {{{len(content)}}}\r\n".encode() + content + b")\r\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a JSON file of messages, and say on the first line of standard output where."""
    parser = argparse.ArgumentParser(prog="python -m stack.fakes.imap_server", description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="JSON file; read anew for every session")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--login", default="reader")
    given = parser.parse_args(arguments)
    password = os.environ.get("IMAP_PASSWORD", "imap-password")
    account = ImapServer(login=given.login, password=password, data=given.data, port=given.port)
    sys.stdout.write(f"mail at 127.0.0.1:{account.port}\n")
    sys.stdout.flush()
    try:
        account.serve_forever()
    except KeyboardInterrupt:
        sys.stdout.write("mail stopped\n")


if __name__ == "__main__":
    main()
