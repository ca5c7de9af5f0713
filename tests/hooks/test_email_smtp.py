"""The SMTP transport, against a mail server on loopback."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hooks.email_smtp import SmtpMail
from include.errors import BadInput, Transient
from include.mail import Accepted, Batch, Deferred, Message, Rejected, Unknown
from stack.fakes.smtp_server import SmtpServer
from tests.hooks.certificates import loopback_certificate
from tests.hooks.letters import SECRET, connection, letter, one, sent

LOOPBACK: dict[str, Any] = {"host": "127.0.0.1"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    """Make one certificate for all tests: a key takes its time."""
    return loopback_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def start() -> Iterator[Callable[..., SmtpServer]]:
    """Return a function that starts a server; all are stopped at the end."""
    running: list[SmtpServer] = []

    def started(**settings: Any) -> SmtpServer:
        server = SmtpServer(**settings)
        running.append(server)
        return server.__enter__()

    yield started
    for server in running:
        server.__exit__()


@pytest.fixture
def server(start: Callable[..., SmtpServer]) -> SmtpServer:
    """Start a server without TLS or login."""
    return start()


def provider(server: SmtpServer, **extra: Any) -> SmtpMail:
    """Return the provider for a server."""
    parts: dict[str, Any] = {"security": "none", "timeout": 3, **extra}
    return SmtpMail(connection("127.0.0.1", port=server.port, **parts))


def each(*messages: Message) -> list[Batch]:
    """Return batches of one message, as the transport's batch size asks for."""
    return [Batch(f"k{number}", (message,)) for number, message in enumerate(messages)]


def test_a_message_arrives_as_it_is(server: SmtpServer) -> None:
    """Names, dots and signs beyond ASCII arrive; a link in a header stays one link (E5)."""
    link = "<https://almanac.test/u/" + "x" * 300 + ">"
    message = letter(
        '"Ann, Ö" <ann@home.test>',
        subject='<a href="https://evil.test">Reset</a> & Co, grüße ' + "ü" * 60,
        text="First.\n.\n..two dots\nÄnd\n",
        html="<p>Ä</p>\n.\n",
        headers={"List-Unsubscribe": link, "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"},
    )
    assert isinstance(one(provider(server).send(each(message))), Accepted)
    (received,) = server.received
    assert (received.sender, received.recipients) == ("mail@almanac.test", ("ann@home.test",))
    mail = received.message
    assert mail["To"].addresses[0].display_name == "Ann, Ö"
    assert mail["Subject"] == message.subject
    assert f"List-Unsubscribe: {link}\r\n".encode() in received.content
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    plain, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert html is not None
    assert plain.get_content().replace("\r\n", "\n") == message.text
    assert html.get_content().replace("\r\n", "\n") == message.html


def test_at_most_once(server: SmtpServer) -> None:
    """SMTP has no keys: nobody may count on a second sending, and one message is in doubt at a time."""
    mail = provider(server)
    assert mail.key_lifetime == timedelta(0)
    assert mail.batch_size == 1
    sent(mail, *each(letter()))
    sent(mail, *each(letter()))
    assert len(server.received) == 2


def test_one_connection_for_many_messages(server: SmtpServer) -> None:
    """Servers limit connections, and each costs a handshake; a refused recipient costs none."""
    server.refused["gone@home.test"] = "550 5.1.1 no such user"
    server.refused_content["spam@home.test"] = "554 5.7.1 looks like spam"
    messages = [letter(f"{name}@home.test") for name in ("a", "gone", "b", "spam", "c")]
    outcomes = sent(provider(server), *each(*messages))
    assert [type(outcome) for outcome in outcomes] == [Accepted, Rejected, Accepted, Rejected, Accepted]
    assert "550 5.1.1 no such user" in str(outcomes[1])
    assert "554 5.7.1 looks like spam" in str(outcomes[3])
    assert server.connections == 1
    assert len({received.message["Message-ID"] for received in server.received}) == 3


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("550 no such user", Rejected),
        ("450 4.2.0 try again later", Rejected),
        ("452 4.2.2 mailbox full", Rejected),
        ("451 4.7.1 greylisted", Rejected),
        ("451 4.3.0 local trouble", Deferred),
        ("452 4.3.1 disk full", Deferred),
        ("451 4.4.1 no route", Deferred),
        ("451 local error", Deferred),
        ("421 4.3.2 closing", Deferred),
    ],
)
def test_whose_fault_a_refusal_is(server: SmtpServer, reply: str, outcome: type) -> None:
    """A recipient's trouble is an answer about the message; the server's own puts the others off too."""
    server.refused["a@home.test"] = reply
    outcomes = sent(provider(server), *each(letter("a@home.test"), letter("b@home.test")))
    assert isinstance(outcomes[0], outcome)
    assert isinstance(outcomes[1], Accepted if outcome is Rejected else Deferred)
    assert all(outcome.certain for outcome in outcomes if isinstance(outcome, Deferred))
    assert len(server.received) == (outcome is Rejected)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("200 queued", Accepted),
        ("252 2.0.0 will try", Accepted),
        ("OK queued", Unknown),
        ("2.0.0 Ok: queued as 1", Unknown),
        ("354 go on", Unknown),
        ("600 what", Unknown),
    ],
)
def test_a_server_that_takes_a_message_in_its_own_words(
    server: SmtpServer, reply: str, outcome: type
) -> None:
    """E1: it has the whole message, and has not said no: sent again by the next run it would go out twice."""
    server.refused_content["a@home.test"] = reply
    outcomes = sent(provider(server), *each(letter("a@home.test"), letter("b@home.test")))
    assert isinstance(outcomes[0], outcome)
    # Another doubt is not risked.
    assert isinstance(outcomes[1], Accepted if outcome is Accepted else Deferred)
    assert outcome is Accepted or "neither yes nor no" in str(outcomes[0])


def test_refused_sender_is_an_outage(server: SmtpServer) -> None:
    """A sender that the server won't have is our setting: no message may lose an attempt for it."""
    server.refused_senders["mail@almanac.test"] = "550 5.7.1 not allowed to send as this"
    outcomes = sent(provider(server), *each(letter(), letter()))
    assert [getattr(outcome, "certain", None) for outcome in outcomes] == [True, True]


def test_too_big_is_about_the_message(server: SmtpServer) -> None:
    """A server that announces its limit refuses at MAIL, where other refusals are about the sender."""
    server.refused_senders["mail@almanac.test"] = "552 5.3.4 too big"
    assert isinstance(one(provider(server).send(each(letter()))), Rejected)


def test_cut_after_the_content(server: SmtpServer) -> None:
    """E1: the server may have it, so nobody sends it again; a second such doubt is not risked."""
    server.cut_after_data.add("a@home.test")
    outcomes = sent(provider(server), *each(*(letter(f"{name}@home.test") for name in "abc")))
    assert isinstance(outcomes[0], Unknown)
    assert [getattr(outcome, "certain", None) for outcome in outcomes[1:]] == [True, True]
    assert len(server.received) == 1


@pytest.mark.parametrize("words", ["200 queued", "252 queued", "250", "299 2.0.0 fine"])
def test_every_yes_to_the_content_is_one(server: SmtpServer, words: str) -> None:
    """The first figure decides: a mail that was taken must not go out again for the other two."""
    server.own_words["a@home.test"] = words
    outcomes = sent(provider(server), *each(letter("a@home.test"), letter("b@home.test")))
    assert [type(outcome) for outcome in outcomes] == [Accepted, Accepted]
    assert len(server.received) == 2


@pytest.mark.parametrize(
    "words", ["OK queued", "", "2.0.0 Ok: queued as 1", "354 go on", "150 wait", "650 ?"]
)
def test_an_answer_to_the_content_that_is_neither_yes_nor_no(server: SmtpServer, words: str) -> None:
    """The mail may be out: nobody sends it again, nor asks over a line that is out of step."""
    server.own_words["a@home.test"] = words
    outcomes = sent(provider(server), *each(letter("a@home.test"), letter("b@home.test")))
    assert isinstance(outcomes[0], Unknown)
    assert isinstance(outcomes[1], Deferred)
    assert outcomes[1].certain
    assert (len(server.received), server.connections) == (1, 1)


@pytest.mark.parametrize("words", ["OK", "354 go on"])
def test_an_odd_answer_before_the_content_is_the_servers_own(server: SmtpServer, words: str) -> None:
    """Nothing has left, and no message loses an attempt for a server that is out of its mind."""
    server.refused["a@home.test"] = words
    outcomes = sent(provider(server), *each(letter("a@home.test"), letter("b@home.test")))
    assert [getattr(outcome, "certain", None) for outcome in outcomes] == [True, True]
    assert "gave an odd answer to the recipient" in str(outcomes[0])
    assert server.received == []


def test_cut_before_the_content(server: SmtpServer) -> None:
    """Nothing has left, so it may go out later; one poisoned recipient must not keep the others back."""
    server.cut_at_recipient.add("a@home.test")
    outcomes = sent(provider(server), *each(letter("a@home.test"), letter("b@home.test")))
    assert isinstance(outcomes[0], Deferred)
    assert outcomes[0].certain
    assert isinstance(outcomes[1], Accepted)


def test_cut_again_and_again_is_an_outage(server: SmtpServer) -> None:
    """A server that hangs up every time is not asked for each of a thousand messages."""
    messages = [letter(f"a{n}@home.test") for n in range(20)]
    server.cut_at_recipient.update(message.to for message in messages)
    outcomes = sent(provider(server), *each(*messages))
    assert all(isinstance(outcome, Deferred) and outcome.certain for outcome in outcomes)
    assert server.connections <= 3


def test_a_connection_that_went_stale(start: Callable[..., SmtpServer]) -> None:
    """The server hangs up on a caller that takes its time; the next message opens a new connection."""
    server = start()
    server.seconds_idle = 0.3
    outcomes = []
    for answer in provider(server).send(each(letter("a@home.test"), letter("b@home.test"))):
        outcomes += answer.outcomes
        time.sleep(0.8)
    assert [type(outcome) for outcome in outcomes] == [Accepted, Accepted]
    assert server.connections == 2


def test_nobody_there() -> None:
    """Where no connection came about nothing has left."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    mail = SmtpMail(connection("127.0.0.1", port=port, security="none"))
    outcomes = sent(mail, *each(letter(), letter()))
    assert [getattr(outcome, "certain", None) for outcome in outcomes] == [True, True]
    assert f"127.0.0.1:{port}: Connection refused" in str(outcomes[0])


def test_a_server_that_says_nothing() -> None:
    """A greeting that never comes ends with the timeout, not with the task's."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        mail = SmtpMail(connection("127.0.0.1", port=mute.getsockname()[1], security="none", timeout=0.3))
        outcome = one(mail.send(each(letter())))
    assert isinstance(outcome, Deferred)
    assert outcome.certain


@pytest.mark.parametrize("implicit", [False, True])
def test_tls_and_login(
    start: Callable[..., SmtpServer],
    certificate: tuple[ssl.SSLContext, Path],
    implicit: bool,  # noqa: FBT001 - a case
) -> None:
    """R3: the login goes over TLS, and a password of signs arrives as it is."""
    context, trusted = certificate
    server = start(tls=context, implicit=implicit, login=("ann", SECRET))
    parts = {"security": "tls" if implicit else "starttls", "ca_file": str(trusted), "login": "ann"}
    mail = SmtpMail(connection("127.0.0.1", SECRET, server.port, **parts))
    assert isinstance(one(mail.send(each(letter()))), Accepted)
    assert "answers as ann" in mail.test()


def test_wrong_password(start: Callable[..., SmtpServer], certificate: tuple[ssl.SSLContext, Path]) -> None:
    """R3: our key is wrong: an outage, told without the password."""
    context, trusted = certificate
    server = start(tls=context, login=("ann", "other"))
    mail = SmtpMail(connection("127.0.0.1", SECRET, server.port, login="ann", ca_file=str(trusted)))
    outcomes = sent(mail, *each(letter(), letter()))
    assert [getattr(outcome, "certain", None) for outcome in outcomes] == [True, True]
    assert "refused the login: 535" in str(outcomes[0])
    with pytest.raises(Transient, match="refused the login") as caught:
        mail.test()
    assert SECRET not in f"{outcomes}{caught.value}"
    assert server.connections == 2


def test_a_certificate_that_nobody_vouches_for(
    start: Callable[..., SmtpServer], certificate: tuple[ssl.SSLContext, Path]
) -> None:
    """Whoever sits between must not get the password."""
    server = start(tls=certificate[0], login=("ann", SECRET))
    mail = SmtpMail(connection("127.0.0.1", SECRET, server.port, login="ann"))
    outcome = one(mail.send(each(letter())))
    assert isinstance(outcome, Deferred)
    assert outcome.certain
    assert "certificate" in outcome.reason.lower()


def test_no_starttls_no_password() -> None:
    """A server (or who answers in its place) without STARTTLS never sees the login."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as line, line.makefile("rwb", buffering=0) as stream:
                stream.write(b"220 plain\r\n")
                for command in stream:
                    heard.append(command)
                    stream.write(b"250 AUTH PLAIN LOGIN\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        mail = SmtpMail(connection("127.0.0.1", SECRET, listener.getsockname()[1], login="ann", timeout=2))
        outcome = one(mail.send(each(letter())))
        thread.join(5)
    assert isinstance(outcome, Deferred)
    assert "no STARTTLS" in outcome.reason
    assert not any(command.upper().startswith((b"AUTH", b"MAIL")) for command in heard)


@pytest.mark.parametrize(
    "changed",
    [
        {"subject": "Hello\r\nBcc: evil@evil.test"},
        {"to": "ann@home.test>\r\nRCPT TO:<evil@evil.test"},
        {"to": "ann@home.test, evil@evil.test"},
        {"to": "not-an-address"},
        {"to": "ö@home.test"},
        {"to": "<ann@home.test> SIZE=1"},
        {"sender": "mail@almanac.test\nX: y"},
        {"headers": {"X-A": "1\r\n\r\nbody"}},
        {"text": "\ud800"},
    ],
)
def test_hostile_values_go_nowhere(server: SmtpServer, changed: dict[str, Any]) -> None:
    """A line break must not become a header or a command; the next message goes out."""
    outcomes = sent(provider(server), *each(letter(**changed), letter("bob@home.test")))
    assert [type(outcome) for outcome in outcomes] == [Rejected, Accepted]
    assert [received.recipients for received in server.received] == [("bob@home.test",)]


def test_encoded_words_stay_text(server: SmtpServer) -> None:
    """A name that would decode to a line break and a header is shown as it was written."""
    evil = "=?utf-8?q?a=0d=0aBcc=3a_evil?="
    message = letter(f"{evil} <ann@home.test>", subject=evil)
    assert isinstance(one(provider(server).send(each(message))), Accepted)
    mail = server.received[0].message
    assert mail["Subject"] == evil
    assert mail["To"].addresses[0].display_name == evil
    assert mail["Bcc"] is None


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"host": None}, "host"),
        ({"security": "ssl"}, "security"),
        ({"login": "ann"}, "password"),
        ({"timeout": "soon"}, "timeout"),
        ({"timeout": 0}, "timeout"),
    ],
)
def test_a_connection_that_cannot_be(parts: dict[str, Any], named: str) -> None:
    """A wrong setting is told by name before any mail is due."""
    with pytest.raises(BadInput, match=f"connection a_mail: .*{named}"):
        SmtpMail(connection(**{**LOOPBACK, **parts}))
