"""A mail server on loopback that speaks SMTP, with the refusals and the cuts that real ones have."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


@dataclass(frozen=True, slots=True)
class Received:
    """One message that was taken: its envelope and its content."""

    sender: str
    recipients: tuple[str, ...]
    content: bytes

    @property
    def message(self) -> EmailMessage:
        return message_from_bytes(self.content, policy=default)


class SmtpServer:
    """A mail server, in a thread of this process; use it as a context manager.

    With `tls` it offers STARTTLS and requires it, or speaks TLS from the first byte if `implicit`. With
    `login` (name, password) it requires AUTH. `refused` maps a recipient, `refused_content` the recipient of
    a message, `refused_senders` a sender to the reply that it gets; `own_words` maps a recipient to what is said
    once the message is taken. It hangs up at `cut_at_recipient`, and once it has taken the message for one of
    `cut_after_data`.
    """

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        implicit: bool = False,
        login: tuple[str, str] | None = None,
        refused: dict[str, str] | None = None,
    ) -> None:
        self.tls = tls
        self.implicit = implicit
        self.login = login
        self.refused = refused or {}
        self.refused_content: dict[str, str] = {}
        self.refused_senders: dict[str, str] = {}
        self.own_words: dict[str, str] = {}
        self.cut_after_data: set[str] = set()
        self.cut_at_recipient: set[str] = set()
        self.received: list[Received] = []
        self.connections = 0
        self.seconds_idle = 60.0
        self.port = 0
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise TimeoutError("the mail server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self._sessions: set[SMTP] = set()
        server = await self._loop.create_server(
            self._session, sock=listener, ssl=self.tls if self.implicit else None
        )
        self._ready.set()
        await self._stop.wait()
        server.close()
        for session in self._sessions:
            _hang_up(session)

    def _session(self) -> SMTP:
        self.connections += 1
        with warnings.catch_warnings():
            # A login without TLS is what some tests are about.
            warnings.simplefilter("ignore", UserWarning)
            session = SMTP(
                self,
                hostname="127.0.0.1",
                tls_context=None if self.implicit else self.tls,
                require_starttls=self.tls is not None and not self.implicit,
                authenticator=self._authenticate,
                auth_required=self.login is not None,
                auth_require_tls=self.tls is not None and not self.implicit,
                timeout=self.seconds_idle,
                loop=self._loop,
            )
        self._sessions.add(session)
        return session

    def _authenticate(self, *given_by_aiosmtpd: Any) -> AuthResult:
        data = given_by_aiosmtpd[-1]
        given = (data.login.decode(), data.password.decode()) if isinstance(data, LoginPassword) else None
        # Unhandled, a refusal is answered by the server itself.
        return AuthResult(success=given is not None and given == self.login, handled=False)

    async def handle_MAIL(  # noqa: N802 - aiosmtpd's name
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, options: Iterable[str]
    ) -> str:
        if reply := self.refused_senders.get(address):
            return reply
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, _options: Iterable[str]
    ) -> str:
        if address in self.cut_at_recipient:
            _hang_up(server)
        if reply := self.refused.get(address):
            return reply
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        to = tuple(envelope.rcpt_tos)
        if reply := next((self.refused_content[one] for one in to if one in self.refused_content), None):
            return reply
        content = envelope.original_content or b""
        self.received.append(Received(envelope.mail_from or "", to, content))
        if self.cut_after_data & set(to):
            _hang_up(server)
        return next((self.own_words[one] for one in to if one in self.own_words), "250 OK")


def _hang_up(session: SMTP) -> None:
    if isinstance(session.transport, asyncio.Transport):
        session.transport.abort()
