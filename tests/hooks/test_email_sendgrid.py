"""SendGrid's transport, against a server on loopback that refuses what SendGrid refuses."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from hooks import pace
from hooks.email import EmailHook, email_provider
from hooks.email_sendgrid import SendGridMail
from include.mail import Accepted, Batch, Deferred, Outcome, Rejected, Unknown
from stack.fakes.http_fake import Sent, as_json
from stack.fakes.sendgrid_server import SendGridServer, problem
from tests.hooks.letters import SECRET, connection, letter, letters, one, sent

HOUR = timedelta(hours=1)


@pytest.fixture
def server() -> Iterator[SendGridServer]:
    """Run SendGrid beneath a path."""
    with SendGridServer(api_key=SECRET, base_path="/gateway") as running:
        yield running


def provider(server: SendGridServer, **extra: Any) -> SendGridMail:
    """Return the provider for a server."""
    given: dict[str, Any] = {"timeout": 0.5, **extra}
    return SendGridMail(connection(server.url, SECRET, **given))


def test_a_message_arrives_whole(server: SendGridServer) -> None:
    """Every part of it, in SendGrid's form; the key of the batch is there for whoever has to look for it."""
    unsubscribe = {
        "List-Unsubscribe": "<https://a.test/u>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }
    batch = letters("b1", 1, headers=unsubscribe, subject="Prüfung ✓")
    (outcome,) = sent(provider(server), batch)
    (body,) = server.delivered
    assert isinstance(outcome, Accepted)
    assert outcome.provider_id
    assert body["personalizations"] == [{"to": [{"email": "b1-0@home.test"}]}]
    assert body["from"] == {"email": "mail@almanac.test", "name": "Almanac"}
    assert body["subject"] == "Prüfung ✓"
    assert body["content"] == [
        {"type": "text/plain", "value": "They are here.\n"}, {"type": "text/html", "value": "<p>They are here.</p>"},
    ]  # fmt: skip
    assert body["headers"] == unsubscribe
    assert body["custom_args"] == {"almanac_key": "b1"}
    assert body["tracking_settings"] == {"subscription_tracking": {"enable": False}}


def test_a_batch_of_another_provider_is_sent_message_by_message(server: SendGridServer) -> None:
    """What was claimed for Resend may be a batch of a hundred when the connection is changed."""
    outcomes = sent(provider(server), letters("b", 3), letters("c", 1))
    assert [type(outcome) for outcome in outcomes] == [Accepted] * 4
    assert len(server.delivered) == 4


ANSWERS: list[tuple[Sent, type[Outcome]]] = [
    (problem(400, "Does not contain a valid address.", "personalizations.0.to.0.email"), Rejected),
    (problem(413, "The payload is too large."), Rejected),
    (problem(400, "The from email does not contain a valid address.", "from.email"), Deferred),
    (problem(401, "The provided authorization grant is invalid"), Deferred),
    (problem(401, "Maximum credits exceeded"), Deferred),
    (problem(403, "The from address does not match a verified Sender Identity.", "from"), Deferred),
    (problem(404, "not found"), Deferred),
    (Sent(301, headers={"Location": "http://169.254.169.254/"}), Deferred),
    (problem(429, "too many requests", headers={"Retry-After": "3600"}), Deferred),
    (problem(500, "An error occurred on a SendGrid server."), Deferred),
    (Sent(503, b"<html>", content_type="text/html"), Deferred),
    (Sent(500, b"oops"), Unknown),
    (Sent(502, b"<html>"), Unknown),
    (Sent(504), Unknown),
    (Sent(202), Unknown),
    (Sent(200, b"<html>Sign in</html>"), Unknown),
    (Sent(202, b"x" * 10, headers={"X-Message-Id": "m"}, cut=5), Unknown),
    (Sent(delay=1), Unknown),
    (Sent(hang_up=True), Unknown),
]


@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
def test_what_is_answered(server: SendGridServer, answer: Sent, expected: type[Outcome]) -> None:
    """Ruling 3: there are no keys, so what may have gone out is a person's; 401 and 403 are our key (ruling 7)."""
    server.fail(answer)
    outcome = one(provider(server).send([letters("b", 1)]))
    assert isinstance(outcome, expected)
    if isinstance(outcome, Deferred):
        assert outcome.certain


def test_taken_and_never_told_is_unknown(server: SendGridServer) -> None:
    """The answer to a message that did go out is lost: sent again it would arrive twice."""
    server.fail(Sent(hang_up=True), after=True)
    assert isinstance(one(provider(server).send([letters("b", 1)])), Unknown)
    assert len(server.delivered) == 1
    assert not provider(server).key_lifetime


def test_nobody_there(server: SendGridServer) -> None:
    """No connection: not a byte has left, so all of it waits."""
    mail = SendGridMail(connection("http://127.0.0.1:9", SECRET, timeout=1))
    outcomes = sent(mail, letters("a", 1), letters("b", 1))
    assert [isinstance(outcome, Deferred) and outcome.certain for outcome in outcomes] == [True, True]


def test_an_outage_leaves_the_rest_alone(server: SendGridServer) -> None:
    """One message in doubt at most for each request in flight; what has not begun waits."""
    for _ in range(20):
        server.fail(Sent(502))
    outcomes = sent(provider(server, in_flight=2), *(letters(f"b{n}", 1) for n in range(20)))
    unknown = [outcome for outcome in outcomes if isinstance(outcome, Unknown)]
    assert 1 <= len(unknown) <= 4
    assert all(isinstance(one, Deferred) and one.certain for one in outcomes if one not in unknown)
    assert len(server.asked) == len(unknown)


@pytest.mark.parametrize("header", ["Retry-After", "X-RateLimit-Reset"])
def test_a_429_says_when(server: SendGridServer, header: str) -> None:
    """Seconds, or the second at which the limit is lifted; long waits are left to a later run, which is told when."""
    at = datetime.now(UTC) + HOUR
    value = "3600" if header == "Retry-After" else str(int(at.timestamp()))
    server.fail(problem(429, "too many requests", headers={header: value}))
    outcome = one(provider(server).send([letters("b", 1)]))
    assert isinstance(outcome, Deferred)
    assert outcome.retry_at is not None
    assert abs(outcome.retry_at - at) < timedelta(seconds=10)


def test_a_short_429_is_waited_for(server: SendGridServer) -> None:
    """It was not taken, so it goes again."""
    server.fail(problem(429, "too many requests", headers={"Retry-After": "0"}))
    assert isinstance(one(provider(server).send([letters("b", 1)])), Accepted)
    assert (len(server.asked), len(server.delivered)) == (2, 1)


def test_many_are_in_flight(server: SendGridServer) -> None:
    """20 at a time: a hundred answers of 50 ms each take no five seconds."""
    server.latency = 0.05
    outcomes = sent(provider(server, timeout=30), *(letters(f"b{n}", 1) for n in range(60)))
    assert {type(outcome) for outcome in outcomes} == {Accepted}
    assert 5 < server.most_at_once <= 20


def test_what_nobody_can_send_is_not_asked_for(server: SendGridServer) -> None:
    """A fault of the message itself: refused here, and beside it nothing waits."""
    for changed in ({"to": "nobody"}, {"to": "a@b.test, c@d.test"}, {"subject": "a\nb"}):
        assert isinstance(one(provider(server).send([Batch("b", (letter(**changed),))])), Rejected)
    assert server.asked == []


def test_no_word_of_the_key(server: SendGridServer, caplog: pytest.LogCaptureFixture) -> None:
    """A service may quote what it was sent; the key stands in no reason and in no log."""
    caplog.set_level(logging.DEBUG)
    for answer in (
        as_json({"errors": [{"message": f"bad key {SECRET}"}]}, 401),
        problem(400, SECRET, SECRET),
    ):
        server.fail(answer)
        outcome = one(provider(server).send([letters("b", 1)]))
        assert isinstance(outcome, Deferred | Rejected)
        assert SECRET not in outcome.reason
        assert "***" in outcome.reason
    assert SECRET not in caplog.text


@pytest.fixture
def connect(server: SendGridServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that sets the connection."""

    def connected(password: str = SECRET, **extra: Any) -> None:
        said = {"provider": "sendgrid", **extra}
        parts = {"conn_type": "almanac_email", "host": server.url, "password": password, "extra": said}
        monkeypatch.setenv("AIRFLOW_CONN_A_MAIL", json.dumps(parts))

    return connected


def test_the_test_button(server: SendGridServer, connect: Any) -> None:
    """Nothing is sent; a key that may not send, or is wrong, says so."""
    connect()
    assert EmailHook("a_mail").test_connection() == (True, f"{server.url} accepts the key")
    server.scopes = ["stats.read"]
    ok, said = EmailHook("a_mail").test_connection()
    assert (ok, "mail.send is missing" in said) == (False, True)
    connect("wrong")
    ok, said = EmailHook("a_mail").test_connection()
    assert (ok, "401" in said) == (False, True)
    assert server.delivered == []


def test_no_faster_than_the_cap(
    server: SendGridServer, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spec's rate: at most so many a second, 50 unless the connection says otherwise."""
    connect(per_second=20)
    began = time.monotonic()
    sent(email_provider("a_mail"), *(letters(f"b{n}", 1) for n in range(11)))
    assert time.monotonic() - began >= 0.5
    connect()
    # That it waits at all is asked of its clock: a machine with much to do may be slow enough by itself.
    waits: list[float] = []
    monkeypatch.setattr(pace, "time", SimpleNamespace(monotonic=time.monotonic, sleep=waits.append))
    sent(email_provider("a_mail"), *(letters(f"c{n}", 1) for n in range(60)))
    assert waits
    assert max(waits) <= 60 / 50


def test_it_ends_in_time(server: SendGridServer, connect: Any) -> None:
    """What a run has no time for is not begun, so that no limit ends it in the middle of a message."""
    connect(per_second=10)
    answers = list(email_provider("a_mail", 0.25).send(letters(f"b{n}", 1) for n in range(50)))
    assert 1 <= len(answers) <= 4
    assert len(server.delivered) == len(answers)
