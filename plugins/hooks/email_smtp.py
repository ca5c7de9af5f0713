"""Mail over SMTP: one connection for many messages, and no keys, so each message is sent at most once."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from hooks.connections import Access
from hooks.email_mime import fault, mime_bytes, stem
from hooks.email_sender import sender_of
from include.addresses import bare_address
from include.errors import Transient
from include.mail import Accepted, Answer, Batch, Deferred, Message, Outcome, Rejected, Unknown

if TYPE_CHECKING:
    import smtplib

_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_CLOSING = 421
_TOO_BIG = 552
_READY_FOR_DATA = 354
_READY_FOR_TLS = 220
_YES = range(200, 300)
_NO = range(400, 600)
_PERMANENT = 500


class _Refused(Exception):
    """The server answered a step before the message's content with something other than yes."""

    def __init__(self, step: str, code: int, text: bytes) -> None:
        super().__init__(step)
        self.step = step
        self.code = code
        self.text = text


class SmtpMail:
    """A mail provider that speaks SMTP.

    Of the connection: host, port, login and password. Extras: `security` (`starttls`, the default; `tls`
    from the first byte; `none`), `ca_file` (certificates to trust instead of the system's), `from` (the
    sender of messages that name none), `timeout` (seconds for each step).

    A batch is one message, so that a process that dies leaves one in doubt. When the connection is cut after
    the content has begun to flow, or the answer to it is neither yes nor no, nobody can tell whether the server
    took it: Unknown.
    """

    batch_size = 1
    key_lifetime = timedelta(0)

    def __init__(self, access: Access) -> None:
        if not access.host:
            raise access.bad("host", "is missing: it is the SMTP server")
        self.host = access.host
        self.security = access.text("security", "starttls") or "starttls"
        if self.security not in _PORTS:
            raise access.bad("extra 'security'", f"must be starttls, tls or none: {self.security!r}")
        if access.login and not access.password:
            raise access.bad("password", f"is missing for the login {access.login}")
        self.port = access.port or _PORTS[self.security]
        self.ca_file = access.text("ca_file")
        self.default_sender = sender_of(access)
        self.timeout = access.number("timeout", 30, 0.1, 600)
        self.access = access

    def send(self, batches: Iterable[Batch]) -> Iterator[Answer]:
        """Send batches one after the other and yield their answers; see MailProvider."""
        with _Line(self) as line:
            for batch in batches:
                yield Answer(
                    batch,
                    tuple(
                        line.outage or self._deliver(line, batch, position, message)
                        for position, message in enumerate(batch.messages)
                    ),
                )

    def test(self) -> str:
        """Log in and out again, sending nothing; return what works. Raises Transient if it does not."""
        with _Line(self) as line:
            try:
                line.open().noop()
            except (OSError, _Refused) as error:
                raise Transient(self._reason(error)) from None
        login = f" as {self.access.login}" if self.access.login else ""
        return f"{self.host}:{self.port} answers{login} ({self.security})"

    def _deliver(self, line: _Line, batch: Batch, position: int, message: Message) -> Outcome:
        sender = message.sender or self.default_sender
        if not sender:
            reason = f"connection {self.access.conn_id}: no sender: set the extra 'from'"
            return Deferred(reason, certain=True)
        if reason := fault(message, sender):
            return Rejected(reason)
        name = stem(batch, position)
        try:
            content = mime_bytes(message, sender, name, datetime.now(UTC))
            envelope = bare_address(sender), bare_address(message.to)
        except ValueError as error:
            return Rejected(str(error))
        try:
            server = self._ready(line, *envelope)
        except OSError as error:
            return line.failed(Deferred(self._reason(error), certain=True))
        except _Refused as refused:
            return self._refused(line, refused)
        return self._content(line, server, content, name)

    def _ready(self, line: _Line, sender: str, to: str) -> smtplib.SMTP:
        """Bring the server to where it waits for the content, over a new connection if the old is stale."""
        if line.is_open:
            try:
                return self._envelope(line, sender, to)
            except OSError:
                line.drop()
            except _Refused as refused:
                if refused.code != _CLOSING:
                    raise
                line.drop()
        return self._envelope(line, sender, to)

    def _envelope(self, line: _Line, sender: str, to: str) -> smtplib.SMTP:
        server = line.open()
        for step, command, yes in (
            ("sender", lambda: server.mail(sender), _YES),
            ("recipient", lambda: server.rcpt(to), _YES),
            ("message", lambda: server.docmd("DATA"), (_READY_FOR_DATA,)),
        ):
            code, text = command()
            if code not in yes:
                raise _Refused(step, code, text)
        return server

    def _refused(self, line: _Line, refused: _Refused) -> Outcome:
        # The next message starts afresh, whatever state this one left.
        line.reset()
        reason = self._reason(refused)
        ours = refused.step in ("connect", "login") or (refused.step == "sender" and refused.code != _TOO_BIG)
        if ours or _of_system(refused.code, refused.text):
            line.outage = Deferred(reason, certain=True)
            return line.outage
        return Rejected(reason)

    def _content(self, line: _Line, server: smtplib.SMTP, content: bytes, name: str) -> Outcome:
        stuffed = re.sub(rb"(?m)^\.", b"..", content)
        try:
            server.send(stuffed + (b"" if stuffed.endswith(b"\r\n") else b"\r\n") + b".\r\n")
            code, text = server.getreply()
        except OSError as error:
            return _in_doubt(line, f"cut while the message was on its way: {self._reason(error)}")
        line.cuts = 0
        if code in _YES:
            return Accepted(name)
        said = _Refused("message", code, text)
        if code not in _NO:
            return _in_doubt(line, f"neither yes nor no: {self._reason(said)}")
        return self._refused(line, said)

    def _reason(self, error: Exception) -> str:
        if isinstance(error, _Refused):
            text = error.text.decode("utf-8", "replace")
            did = "refused" if error.code in _NO or error.code == 0 else "gave an odd answer to"
            reason = f"{self.host}:{self.port} {did} the {error.step}: {error.code} {text}"
        elif isinstance(error, OSError) and error.strerror:
            reason = f"{self.host}:{self.port}: {error.strerror}"
        else:
            reason = f"{self.host}:{self.port}: {type(error).__name__}: {error}"
        return self.access.for_log(reason)


class _Line:
    """The connection of one `send`, opened when it is first needed, and the outage that ended it."""

    def __init__(self, mail: SmtpMail) -> None:
        self._mail = mail
        self._server: smtplib.SMTP | None = None
        self.outage: Deferred | None = None
        self.cuts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._server is not None and kind in (None, GeneratorExit):
            with suppress(OSError):
                self._server.quit()
        self.drop()

    @property
    def is_open(self) -> bool:
        return self._server is not None

    def open(self) -> smtplib.SMTP:
        """Return a server that is ready for a message. Raises OSError or _Refused."""
        if self._server is None:
            self._server = self._connect()
        return self._server

    def failed(self, outcome: Deferred) -> Deferred:
        """Note that the network failed a message: with no connection, or twice in a row, it is an outage."""
        self.cuts += 1
        if not self.is_open or self.cuts > 1:
            self.outage = outcome
        self.drop()
        return outcome

    def drop(self) -> None:
        """Close the connection without a word."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def reset(self) -> None:
        """Make the connection ready for another message, or close it."""
        try:
            if self._server is not None and self._server.rset()[0] not in _YES:
                self.drop()
        except OSError:
            self.drop()

    def _connect(self) -> smtplib.SMTP:
        import smtplib  # noqa: PLC0415 - the parsing of a DAG need not pay for it

        mail = self._mail
        # A bad file of certificates raises an OSError here, before anything is sent.
        trust = ssl.create_default_context(cafile=mail.ca_file) if mail.security != "none" else None
        try:
            server = (
                smtplib.SMTP_SSL(mail.host, mail.port, timeout=mail.timeout, context=trust)
                if mail.security == "tls"
                else smtplib.SMTP(mail.host, mail.port, timeout=mail.timeout)
            )
        except smtplib.SMTPConnectError as error:
            raise _refused_by(error, "connect") from None
        try:
            self._enter(server, trust)
        except BaseException:
            server.close()
            raise
        return server

    def _enter(self, server: smtplib.SMTP, trust: ssl.SSLContext | None) -> None:
        import smtplib  # noqa: PLC0415 - as above

        login, password = self._mail.access.login, self._mail.access.password
        step = "connect"
        try:
            server.ehlo_or_helo_if_needed()
            if trust is not None and self._mail.security == "starttls":
                _start_tls(server, trust)
            step = "login"
            if login:
                server.login(login, password or "")
        except smtplib.SMTPNotSupportedError:
            raise _Refused(step, 0, b"the server offers no way to log in") from None
        except smtplib.SMTPResponseException as error:
            raise _refused_by(error, step) from None


def _in_doubt(line: _Line, reason: str) -> Unknown:
    # What is read next could be a late answer to this message.
    line.drop()
    # A server that leaves every message in doubt must not do so with a whole queue.
    line.outage = Deferred(reason, certain=True)
    return Unknown(reason)


def _start_tls(server: smtplib.SMTP, trust: ssl.SSLContext) -> None:
    # Without it a login would go over the wire for all to read.
    if not server.has_extn("starttls"):
        raise _Refused("connect", 0, b"the server offers no STARTTLS")
    code, text = server.starttls(context=trust)
    if code != _READY_FOR_TLS:
        raise _Refused("connect", code, text)
    server.ehlo_or_helo_if_needed()


def _refused_by(error: smtplib.SMTPResponseException, step: str) -> _Refused:
    text = error.smtp_error
    return _Refused(step, error.smtp_code, text if isinstance(text, bytes) else str(text).encode())


def _of_system(code: int, text: bytes) -> bool:
    """Say whether a refusal is the server's own trouble rather than an answer about this message."""
    if code == _CLOSING or code not in _NO:
        return True
    if code >= _PERMANENT:
        return False
    # The second figure of an enhanced status code is its subject: 3 is the system, 4 the network.
    enhanced = re.match(rb"\d\.(\d{1,3})\.\d", text)
    return enhanced.group(1) in (b"3", b"4") if enhanced else code in (451, 452)
