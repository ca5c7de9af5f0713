"""The mailbox hook, against a small account on loopback that answers like good and like hostile ones."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from hooks.connections import access
from hooks.mailbox import LARGEST_SESSION, ImapMailbox, MailboxHook
from include.errors import BadInput, Outage
from include.mailbox import LARGEST_MESSAGE, LONGEST_SUBJECT, LONGEST_TEXT, MOST_MESSAGES, MailboxAnswer
from stack.fakes.imap_server import ImapServer, letter
from tests.hooks.certificates import loopback_certificate

PASSWORD = 'p/s@s:%#1 "quoted" \\ ñ'.replace("ñ", "n")
DAY = date(2026, 11, 24)
NOON = datetime(2026, 11, 25, 12, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[ImapServer]:
    """Run an account without a message."""
    with ImapServer(password=PASSWORD) as running:
        yield running


@pytest.fixture
def connect(server: ImapServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes the hook for the connection, whose parts can be changed."""

    def connected(silence: float = 5, extra: dict[str, Any] | None = None, **changed: Any) -> ImapMailbox:
        parts = {
            "conn_type": "almanac_mailbox",
            "host": "127.0.0.1",
            "port": server.port,
            "login": "reader",
            "password": PASSWORD,
            "extra": {"security": "none"} | (extra or {}),
        } | changed
        monkeypatch.setenv("AIRFLOW_CONN_MAIL_TEST", json.dumps(parts))
        return ImapMailbox(access("mail_test"), silence=silence)

    return connected


def put(
    server: ImapServer, message_id: str | None = "1@news.test", came_in: datetime = NOON, **parts: Any
) -> int:
    """Let a letter come in."""
    usual: dict[str, Any] = {
        "sender": "Ana Ñ <Ana@News.test>",
        "subject": "Rates",
        "text": "Up & away",
        "sent_at": NOON,
    }
    return server.add(letter(message_id=message_id, **(usual | parts)), came_in)


def read(box: ImapMailbox, position: str | None = None, seconds: float = 10) -> MailboxAnswer:
    """Read what is new."""
    return box.letters_since(position, DAY, seconds)


def test_a_letter_as_it_is_kept(connect: Any, server: ImapServer) -> None:
    """R3: the password reaches the server as given; names and texts survive; nothing is marked as read."""
    put(server, html="<p>Up &amp; <b>away</b></p>")
    (got,) = read(connect()).letters
    assert got.key == "1@news.test"
    assert (got.sender, got.sender_name) == ("ana@news.test", "Ana Ñ")
    assert (got.subject, got.text, got.sent_at) == ("Rates", "Up & away", NOON)
    assert "EXAMINE" in server.commands
    assert "SELECT" not in server.commands


def test_a_letter_of_html_alone(connect: Any, server: ImapServer) -> None:
    """Most newsletters are HTML alone; scripts and styles are no text."""
    content = letter(message_id="1@n", sender="a@n.test", subject="S", text="x").replace(
        b"text/plain", b"text/html"
    )
    server.add(content.replace(b"\nx\n", b"\n<style>p{}</style><p>One</p><p>Two</p><script>x</script>\n"))
    assert [one.text for one in read(connect()).letters] == ["One Two"]


def test_each_read_goes_on_after_the_last(connect: Any, server: ImapServer) -> None:
    """Every letter once: the position comes from the server, and its `n:*` names the last one again."""
    first, second = put(server, "1@n"), put(server, "2@n")
    answer = read(connect())
    assert answer.position == f"7:{second}"
    assert read(connect(), answer.position) == MailboxAnswer([], f"7:{second}", [], more=False)
    third = put(server, "3@n")
    assert [one.key for one in read(connect(), answer.position).letters] == ["3@n"]
    assert (first, third) == (1, 3)


@pytest.mark.parametrize("position", [None, "6:99", "nonsense", "7:99999999999999999999"])
def test_without_a_usable_position_the_day_decides(
    connect: Any, server: ImapServer, position: str | None
) -> None:
    """A server that gave its numbers anew must not hide what is new, nor bring up all its history."""
    put(server, "old@n", datetime(2026, 11, 23, 23, tzinfo=UTC))
    put(server, "new@n", datetime(2026, 11, 24, 0, tzinfo=UTC))
    assert [one.key for one in read(connect(), position).letters] == ["new@n"]


def test_a_flood_comes_in_parts(connect: Any, server: ImapServer) -> None:
    """A full mailbox is read over several scans, none of which is longer than another."""
    for n in range(MOST_MESSAGES + 3):
        put(server, f"{n}@n")
    answer = read(connect(), seconds=60)
    assert (len(answer.letters), answer.more) == (MOST_MESSAGES, True)
    rest = read(connect(), answer.position)
    assert ([one.key for one in rest.letters], rest.more) == (
        [f"{MOST_MESSAGES + n}@n" for n in range(3)],
        False,
    )


def test_a_letter_without_an_id_has_the_same_one_each_time(connect: Any, server: ImapServer) -> None:
    """An idea is known by its letter's id: the same letter must not come as two ideas."""
    put(server, None)
    put(server, None)
    put(server, None, subject="Other")
    keys = [one.key for one in read(connect()).letters]
    assert keys[0] == keys[1] != keys[2]
    assert all(key.endswith("@no-message-id.invalid") for key in keys)


def test_a_huge_letter_and_a_broken_one_are_left_out(connect: Any, server: ImapServer) -> None:
    """The good ones are kept, and the position moves past the bad ones, or they would be asked for ever."""
    server.add(b"Subject: big\r\n\r\n" + b"x" * LARGEST_MESSAGE, NOON)
    server.add(_nested(400), NOON)
    put(server, "good@n")
    answer = read(connect())
    assert "good@n" in [one.key for one in answer.letters]
    assert answer.left_out[0].startswith("message 1 has 5,")
    assert answer.position == "7:3"


def _nested(levels: int) -> bytes:
    head = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(levels)
    )
    return b"Subject: deep\r\n" + head + b"\r\nend"


HOSTILE = {
    "null characters": b"Subject: a\x00b\r\nMessage-ID: <n\x00@n>\r\nFrom: a@n.test\r\n\r\nc\x00d",
    "escapes": b"Subject: =?utf-8?q?=1b[31mred=07?=\r\nFrom: a@n.test\r\n\r\nx\x1b[2J",
    "no such charset": b"Subject: =?klingon?q?x?=\r\nContent-Type: text/plain; charset=klingon\r\n\r\nx\xff",
    "bad base64": b"Subject: =?utf-8?b?!!!?=\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!!",
    "a date that is none": b"Subject: d\r\nDate: 31 Feb 99999\r\n\r\nx",
    "a date at the end of time": b"Subject: d\r\nDate: Fri, 31 Dec 9999 23:59:59 -1200\r\n\r\nx",
    "long lines": b"Subject: " + b"s" * 100_000 + b"\r\n\r\n" + b"t" * 1_000_000,
    "no header": b"\xff\xfe\x00\x01" * 100,
    "empty": b"",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_a_stranger_sends_is_kept_within_bounds(
    connect: Any, server: ImapServer, content: bytes
) -> None:
    """Anyone can send mail: no text may break the database, a terminal or a page."""
    server.add(content, NOON)
    put(server, "good@n")
    answer = read(connect())
    assert answer.letters[-1].key == "good@n"
    for got in answer.letters:
        assert len(got.subject) <= LONGEST_SUBJECT
        assert len(got.text) <= LONGEST_TEXT
        assert all(
            part.isprintable() for part in (got.key, got.sender, got.sender_name, got.subject, got.text)
        )


@pytest.mark.parametrize(
    ("command", "instead", "says"),
    [
        ("UID SEARCH", b"* SEARCH 1 %s\r\n" % (b"9" * 200), ""),
        ("UID SEARCH", b"* SEARCH nonsense -1 1.5\r\n", ""),
        ("UID SEARCH", b"* \xff\xfe\r\n", "mailbox mail_test"),
        ("UID FETCH", b"* 1 FETCH (UID 1 BODY[] {99999999999}\r\n", "more than"),
        ("UID FETCH", b"* 1 FETCH (UID 1 BODY[] {%d}\r\n" % (LARGEST_SESSION + 1), "more than"),
        ("UID FETCH", b"* 1 FETCH nonsense\r\n", ""),
        ("UID FETCH", b"* BYE shutting down\r\n", ""),
        ("EXAMINE", b"* 1 EXISTS\r\n* OK [UIDVALIDITY nonsense] x\r\n", ""),
        ("CAPABILITY", b"* CAPABILITY IMAP9\r\n", "mailbox mail_test"),
        ("CAPABILITY", b"HTTP/1.1 400 Bad Request\r\n\r\n", "mailbox mail_test"),
    ],
)
def test_a_hostile_server(connect: Any, server: ImapServer, command: str, instead: bytes, says: str) -> None:
    """Whatever it answers, a read ends: with what could be read, or as an outage that is tried again."""
    put(server)
    server.instead[command] = instead
    began = time.monotonic()
    told = ""
    try:
        read(connect())
    except Outage as error:
        told = str(error)
    assert says in told
    assert time.monotonic() - began < 8


@pytest.mark.parametrize("command", ["CAPABILITY", "LOGIN", "UID SEARCH", "UID FETCH"])
def test_a_silent_server(connect: Any, server: ImapServer, command: str) -> None:
    """S1, R5: no answer within the time is an outage; nothing waits for ever."""
    put(server)
    server.silent.add(command)
    began = time.monotonic()
    with pytest.raises(Outage, match=r"no answer within 0\.5 s"):
        read(connect(silence=0.5))
    assert time.monotonic() - began < 4


def test_a_server_that_drips(connect: Any, server: ImapServer) -> None:
    """A byte now and then is never silence, so the whole read has an end of its own."""
    put(server)
    server.instead["UID FETCH"] = b"* 1 FETCH (UID 1 RFC822.SIZE 10)\r\n"
    server.drips["UID FETCH"] = 0.3
    began = time.monotonic()
    with pytest.raises(Outage, match="not done within 1 s"):
        read(connect(silence=2), seconds=1)
    assert time.monotonic() - began < 4


def test_a_greeting_that_drips(connect: Any, server: ImapServer) -> None:
    """The end of the whole read holds from before the first byte on."""
    put(server)
    server.drips["greeting"] = 0.3
    server.greeting = b"*" * 60
    began = time.monotonic()
    with pytest.raises(Outage, match="not done within 1 s"):
        read(connect(silence=2), seconds=1)
    assert time.monotonic() - began < 4


def test_a_server_that_is_busy_loses_no_letter(connect: Any, server: ImapServer) -> None:
    """Ruling 7: a NO for now is an outage, and no message's fault: the position stays where it was."""
    for n in range(5):
        put(server, f"{n}@n")
    server.before = lambda command, words: (
        "NO [UNAVAILABLE] try again later" if command == "UID FETCH" and "BODY" in words[1] else None
    )
    with pytest.raises(Outage, match="UNAVAILABLE"):
        read(connect())
    server.before = lambda command, words: "NO [UNAVAILABLE] later" if command == "UID FETCH" else None
    with pytest.raises(Outage, match="UNAVAILABLE"):
        read(connect())
    server.before = None
    assert len(read(connect()).letters) == 5


def test_what_came_before_the_trouble_is_kept(connect: Any, server: ImapServer) -> None:
    """A read that ends half-way is not read again from the start: the next one goes on, or says what is wrong."""
    for n in range(9):
        put(server, f"{n}@n")

    def busy(command: str, words: Any) -> str | None:
        return "NO later" if command == "UID FETCH" and "BODY" in words[1] and "4" in words[0] else None

    server.before = busy
    first = read(connect())
    assert [one.key for one in first.letters] == ["0@n", "1@n", "2@n"]
    assert (first.position, first.more) == ("7:3", True)
    with pytest.raises(Outage, match="later"):
        read(connect(), first.position)
    server.before = None
    assert [one.key for one in read(connect(), first.position).letters] == [f"{n}@n" for n in range(3, 9)]


def all_read(box: ImapMailbox, seconds: float) -> tuple[list[str], int]:
    """Read until nothing is left; return the letters' keys, and how many reads it took."""
    keys: list[str] = []
    position, reads, more = None, 0, True
    while more:
        answer = read(box, position, seconds)
        keys += [one.key for one in answer.letters]
        position, more, reads = answer.position, answer.more, reads + 1
        assert reads < 20
    return keys, reads


def test_a_slow_server_is_read_in_parts(connect: Any, server: ImapServer) -> None:
    """A first read of a full mailbox gets on with every read, though none of them has the time for all of it."""
    for n in range(60):
        put(server, f"{n}@n")

    def slow(command: str, words: Any) -> None:
        # A round trip, and a moment for each letter.
        if command == "UID FETCH" and "BODY" in words[1]:
            time.sleep(0.1 + 0.02 * len(words[0].split(",")))

    server.before = slow
    keys, reads = all_read(connect(), seconds=1)
    assert keys == [f"{n}@n" for n in range(60)]
    assert 1 < reads < 8
    # Many letters are one round trip.
    assert server.commands.count("UID FETCH") < 30


def test_a_full_mailbox_is_read_in_parts(
    connect: Any, server: ImapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letters that together are more than a session may bring come in several."""
    for name, size in (("LARGEST_SESSION", 200_000), ("_READ_UP_TO", 150_000), ("_PART_BYTES", 30_000)):
        monkeypatch.setattr(f"hooks.mailbox.{name}", size)
    for n in range(40):
        put(server, f"{n}@n", text=("x" * 70 + "\n") * 140)
    keys, reads = all_read(connect(), seconds=30)
    assert keys == [f"{n}@n" for n in range(40)]
    assert reads > 2


def test_a_wrong_password_is_an_outage_without_it(connect: Any, server: ImapServer) -> None:
    """R3: the error names the connection, and never says the secret."""
    secret = "s3cret/quite:long"
    with pytest.raises(Outage, match="mail_test") as raised:
        read(connect(password=secret))
    assert secret not in str(raised.value)


def test_nobody_is_there(connect: Any) -> None:
    """A refused connection is an outage; a host that is missing is a slip in the connection."""
    with pytest.raises(Outage):
        read(connect(port=1))
    box = connect(host=None)
    assert not box.is_set
    with pytest.raises(BadInput, match="host is missing"):
        read(box)


def test_tls_is_checked(connect: Any, tmp_path: Path) -> None:
    """A mailbox's password goes to the server whose certificate is trusted, and to no other."""
    context, trusted = loopback_certificate(tmp_path)
    with ImapServer(password=PASSWORD, tls=context) as secured:
        put(secured, "1@n")
        trusting = {"security": "tls", "ca_file": str(trusted)}
        assert len(read(connect(port=secured.port, extra=trusting)).letters) == 1
        with pytest.raises(Outage, match="CERTIFICATE_VERIFY_FAILED"):
            read(connect(port=secured.port, extra={"security": "tls"}))


def test_the_test_button(connect: Any, server: ImapServer) -> None:
    """Airflow's form has a Test button; it says how many messages there are, or what is wrong."""
    put(server)
    connect()
    assert MailboxHook("mail_test").test_connection() == (True, "Logged in; INBOX holds 1 messages")
    connect(password="wrong")
    assert not MailboxHook("mail_test").test_connection()[0]
    connect(extra={"security": "maybe"})
    assert MailboxHook("mail_test").test_connection() == (
        False,
        "connection mail_test: extra 'security' must be tls, starttls or none",
    )
