"""A mailbox over IMAP: read only, bounded in size and time.

The connection's host, port, login and password name the account. Its extra may hold `security` (tls, starttls
or none), `folder` (INBOX) and `ca_file`.
"""

from __future__ import annotations

import contextlib
import hashlib
import imaplib
import re
import socket
import ssl
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Self

from airflow.sdk import BaseHook

from hooks.connections import Access, access
from include.errors import AlmanacError, Outage
from include.mailbox import (
    LARGEST_MESSAGE,
    LONGEST_NAME,
    LONGEST_SUBJECT,
    LONGEST_TEXT,
    MOST_MESSAGES,
    Letter,
    MailboxAnswer,
)
from include.plain_text import from_html, plain

if TYPE_CHECKING:
    from imap_tools import BaseMailBox, MailMessage

LARGEST_SESSION = 64 * 1024 * 1024
"""Bytes that one read takes from the server, all answers together."""

# What is said beside the messages comes on top.
_READ_UP_TO = LARGEST_SESSION - 4 * 1024 * 1024
_READING = 0.8
"""The share of a read's time after which no more messages are asked for."""
_PART_MESSAGES = 32
_PART_BYTES = 2 * 1024 * 1024

_PORTS = {"tls": 993, "starttls": 143, "none": 143}
_SILENCE_SECONDS = 15.0
_TEST_SECONDS = 15.0
_LONGEST_ADDRESS = 200
_LONGEST_KEY = 300
_POSITION = re.compile(r"(\d{1,10}):(\d{1,10})")
_SIZE = re.compile(
    rb"UID (\d{1,10})\b.{0,200}RFC822\.SIZE (\d{1,15})|RFC822\.SIZE (\d{1,15})\b.{0,200}UID (\d{1,10})"
)
_UID = re.compile(rb"UID (\d{1,10})\b")
_YEARS = range(1990, 2200)


def mailbox(conn_id: str) -> ImapMailbox:
    """Return the mailbox behind an Airflow connection, without asking its server anything."""
    return ImapMailbox(access(conn_id))


class MailboxHook(BaseHook):
    """What Airflow's connection form and its Test button know of a mailbox."""

    conn_name_attr = "mailbox_conn_id"
    default_conn_name = "almanac_mailbox"
    conn_type = "almanac_mailbox"
    hook_name = "Mailbox (Almanac)"

    def __init__(self, mailbox_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.mailbox_conn_id = mailbox_conn_id

    def get_conn(self) -> ImapMailbox:
        """Return the mailbox; see `mailbox`."""
        return mailbox(self.mailbox_conn_id)

    def test_connection(self) -> tuple[bool, str]:
        """Log in, open the folder, and say how many messages it holds."""
        try:
            return self.get_conn().test_connection()
        except AlmanacError as error:
            return False, str(error)


class ImapMailbox:
    """The folder that one connection names. `silence` is how many seconds the server may say nothing."""

    def __init__(self, access: Access, *, silence: float = _SILENCE_SECONDS) -> None:
        self._access = access
        self._silence = silence

    @property
    def name(self) -> str:
        """What it is known by: the connection and the folder."""
        return f"{self._access.conn_id}/{self._folder()}"

    @property
    def is_set(self) -> bool:
        """Whether the connection names a server."""
        return bool(self._access.host)

    def letters_since(self, position: str | None, day: date, seconds: float) -> MailboxAnswer:
        """Read what is new, as `include.mailbox.Mailbox` promises."""
        read = _Read(position)
        try:
            with self._open(seconds) as box:
                self._read(box, read, day, time.monotonic() + seconds * _READING)
        except Outage:
            # The next read goes on after what this one has, or meets the same trouble and says so.
            if not read.moved:
                raise
            read.more = True
        return MailboxAnswer(read.letters, read.position, read.left_out, read.more)

    def _read(self, box: BaseMailBox, read: _Read, day: date, stop_at: float) -> None:
        from imap_tools import AND  # noqa: PLC0415 - not at parse time

        validity = _validity(box)
        last = _last(read.position, validity)
        found = box.uids(f"UID {last + 1}:*") if last is not None else box.uids(AND(date_gte=day))
        # `n:*` names the last message even if its number is lower.
        uids = sorted({int(uid) for uid in found if uid.isdigit() and int(uid) > (last or 0)})
        taken = uids[:MOST_MESSAGES]
        read.more = len(uids) > len(taken)
        sizes = _sizes(box, taken)
        for several in _in_parts(taken, sizes):
            small = [uid for uid in several if sizes.get(uid, 0) <= LARGEST_MESSAGE]
            coming = sum(sizes.get(uid, LARGEST_MESSAGE) for uid in small)
            if read.moved and (time.monotonic() > stop_at or box.client.taken + coming > _READ_UP_TO):
                read.more = True
                return
            read.left_out += [
                f"message {uid} has {sizes[uid]:,} bytes" for uid in several if uid not in small
            ]
            for fetched in _fetched(box, small):
                try:
                    read.letters.append(_letter(_message(fetched)))
                except Exception as error:  # noqa: BLE001 - a message can be broken in any way; the others go on
                    read.left_out.append(f"message {_uid(fetched)} can't be read: {type(error).__name__}")
            read.moved = True
            if validity is not None:
                read.position = f"{validity}:{several[-1]}"

    def test_connection(self) -> tuple[bool, str]:
        """Log in, open the folder, and say how many messages it holds."""
        with self._open(_TEST_SECONDS) as box:
            return True, f"Logged in; {self._folder()} holds {len(box.uids())} messages"

    @contextmanager
    def _open(self, seconds: float) -> Generator[BaseMailBox]:
        from imap_tools.errors import ImapToolsError  # noqa: PLC0415 - not at parse time

        where = f"mailbox {self._access.conn_id}"
        box: BaseMailBox | None = None
        # From before the connection on: a greeting can drip too.
        with _HangUp(seconds) as hang_up:
            try:
                box = self._connected(min(seconds, self._silence), hang_up)
                box.login(self._access.login or "", self._access.password or "", None)
                box.folder.set(self._folder(), readonly=True)
                yield box
                with contextlib.suppress(ImapToolsError, imaplib.IMAP4.error, OSError, ValueError):
                    box.logout()
            except (
                ImapToolsError,
                imaplib.IMAP4.error,
                OSError,
                ValueError,
                LookupError,
                AttributeError,
            ) as error:
                if hang_up.late.is_set():
                    raise Outage(f"{where}: not done within {seconds:g} s") from None
                if isinstance(error, TimeoutError):
                    raise Outage(f"{where}: no answer within {self._silence:g} s") from None
                said = self._access.for_log(str(error) or type(error).__name__)
                raise Outage(f"{where}: {type(error).__name__}: {said}") from None
            finally:
                if box is not None:
                    with contextlib.suppress(OSError):
                        box.client.shutdown()

    def _connected(self, timeout: float, hang_up: _HangUp) -> BaseMailBox:
        from imap_tools import BaseMailBox  # noqa: PLC0415 - not at parse time

        if not self._access.host:
            raise self._access.bad("host", "is missing")
        security = self._access.text("security", "tls") or "tls"
        if security not in _PORTS:
            raise self._access.bad("extra 'security'", "must be tls, starttls or none")
        host, port = self._access.host, self._access.port or _PORTS[security]
        trust = ssl.create_default_context(cafile=self._access.text("ca_file"))

        class Box(BaseMailBox):
            """A mailbox over a client that counts what it reads."""

            def _get_mailbox_client(self) -> imaplib.IMAP4:
                if security == "tls":
                    return _BoundedTls(hang_up, host, port, ssl_context=trust, timeout=timeout)
                client = _Bounded(hang_up, host, port, timeout)
                if security == "starttls":
                    client.starttls(trust)
                return client

        return Box()

    def _folder(self) -> str:
        return self._access.text("folder", "INBOX") or "INBOX"


@dataclass(slots=True)
class _Read:
    """What a read has brought so far; `moved` once a part of it is whole."""

    position: str | None
    letters: list[Letter] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    more: bool = False
    moved: bool = False


class _HangUp:
    """Ends a connection after that many seconds: a server that sends a byte now and then is never silent."""

    def __init__(self, seconds: float) -> None:
        self.late = threading.Event()
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def hold(self, line: socket.socket) -> None:
        """Take the connection that is to be ended: a second handle, since TLS takes the first one over."""
        with self._lock:
            self._line = line.dup()
        if self.late.is_set():
            self._end()

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            if self._line is not None:
                self._line.close()

    def _end(self) -> None:
        self.late.set()
        with self._lock, contextlib.suppress(OSError):
            if self._line is not None:
                self._line.shutdown(socket.SHUT_RDWR)


class _Bounded(imaplib.IMAP4):
    """Ends a session that brings more than it may: imaplib takes whatever size a server announces."""

    def __init__(self, hang_up: _HangUp, *where: Any, **how: Any) -> None:
        self.taken = 0
        self._hang_up = hang_up
        super().__init__(*where, **how)

    def _create_socket(self, timeout: float | None) -> socket.socket:
        line = socket.create_connection((self.host, self.port), timeout)
        self._hang_up.hold(line)
        return line

    def read(self, size: int) -> bytes:
        self._count(size)
        return super().read(size)

    def readline(self) -> bytes:
        line = super().readline()
        self._count(len(line))
        return line

    def _count(self, size: int) -> None:
        self.taken += size
        if self.taken > LARGEST_SESSION:
            raise imaplib.IMAP4.abort(f"more than {LARGEST_SESSION:,} bytes")


class _BoundedTls(_Bounded, imaplib.IMAP4_SSL):
    """The same over TLS."""

    def _create_socket(self, timeout: float | None) -> socket.socket:
        line = super()._create_socket(timeout)
        return self.ssl_context.wrap_socket(line, server_hostname=self.host)


def _validity(box: BaseMailBox) -> int | None:
    _, said = box.client.response("UIDVALIDITY")
    first = said[0] if said else None
    return int(first) if isinstance(first, bytes) and first.isdigit() else None


def _last(position: str | None, validity: int | None) -> int | None:
    """Return the last number that was read, or None if the numbers have been given anew since."""
    match = _POSITION.fullmatch(position or "")
    return int(match[2]) if match and int(match[1]) == validity else None


def _sizes(box: BaseMailBox, uids: Sequence[int]) -> dict[int, int]:
    lines = _fetch(box, uids, "(UID RFC822.SIZE)")
    found = (_SIZE.search(line) for line in lines if isinstance(line, bytes))
    return {int(m[1] or m[4]): int(m[2] or m[3]) for m in found if m}


def _in_parts(uids: Sequence[int], sizes: Mapping[int, int]) -> Iterator[list[int]]:
    """Yield numbers that are fetched together, few at first, since nobody knows yet how quick the server is."""
    part: list[int] = []
    most, bytes_in_part = 1, 0
    for uid in uids:
        size = sizes.get(uid, LARGEST_MESSAGE)
        if part and (len(part) >= most or bytes_in_part + size > _PART_BYTES):
            yield part
            part, bytes_in_part = [], 0
            most = min(2 * most, _PART_MESSAGES)
        part.append(uid)
        bytes_in_part += size
    if part:
        yield part


def _fetched(box: BaseMailBox, uids: Sequence[int]) -> Iterator[list[Any]]:
    """Yield what the server says of each message; one that is gone by now is not there."""
    each: list[list[Any]] = []
    for line in _fetch(box, uids, "(BODY.PEEK[] UID FLAGS RFC822.SIZE)"):
        if isinstance(line, tuple):
            each.append([line])
        elif each and isinstance(line, bytes):
            each[-1].append(line)
    yield from each


def _fetch(box: BaseMailBox, uids: Sequence[int], parts: str) -> Sequence[Any]:
    if not uids:
        return ()
    status, lines = box.client.uid("FETCH", ",".join(map(str, uids)), parts)
    if status != "OK":
        said = b" ".join(line for line in lines or () if isinstance(line, bytes))
        raise imaplib.IMAP4.error(f"FETCH answered {status}: {said[:200].decode('utf-8', 'replace')}")
    return lines or ()


def _uid(fetched: list[Any]) -> str:
    said = b" ".join(line[0] if isinstance(line, tuple) else line for line in fetched)
    match = _UID.search(said)
    return match[1].decode() if match else "without a number"


def _message(fetched: list[Any]) -> MailMessage:
    from imap_tools import MailMessage  # noqa: PLC0415 - not at parse time

    return MailMessage(fetched)


def _letter(message: MailMessage) -> Letter:
    sender = message.from_values
    text = message.text or ""
    words = plain(text, LONGEST_TEXT) or from_html(message.html or "", LONGEST_TEXT)
    address = plain(sender.email if sender else "", _LONGEST_ADDRESS).lower()
    return Letter(
        _key(message),
        address,
        plain(sender.name if sender else "", LONGEST_NAME) or address[:LONGEST_NAME],
        plain(message.subject or "", LONGEST_SUBJECT),
        words,
        _sent_at(message),
    )


def _key(message: MailMessage) -> str:
    given = plain("".join(message.headers.get("message-id", ())[:1]), _LONGEST_KEY).strip("<> ")
    if given and " " not in given and not given.endswith("…"):
        return given
    seen: tuple[Any, ...] = (message.from_, message.subject, message.date_str, message.text, message.html)
    digest = hashlib.sha256("\n".join(map(str, seen)).encode("utf-8", "replace")).hexdigest()
    return f"{digest[:40]}@no-message-id.invalid"


def _sent_at(message: MailMessage) -> datetime | None:
    moment = message.date
    # Its value for a date that it can't read is 1900.
    if moment.year not in _YEARS:
        return None
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None
