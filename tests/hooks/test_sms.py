"""SMS over Twilio, against a server on loopback that refuses what Twilio refuses; and into a folder."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hooks.sms import SmsHook, sms_provider
from include.ecocomply.channels import TextsToOutbox
from include.errors import BadInput
from include.mail import Accepted, Batch, Deferred, MailProvider, Message, Outcome, Rejected, Unknown
from stack.fakes.http_fake import Sent, as_json
from stack.fakes.twilio_server import ACCOUNT, TwilioServer, problem
from tests.hooks.letters import one, sent

TOKEN = "t0/k@n:%#1"
FROM = "+15005550006"


@pytest.fixture
def server() -> Iterator[TwilioServer]:
    """Run Twilio beneath a path."""
    with TwilioServer(token=TOKEN, base_path="/gateway") as running:
        yield running


@pytest.fixture
def connect(server: TwilioServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes the provider for the connection, whose parts can be changed."""

    def connected(**changed: Any) -> MailProvider:
        extra = {"provider": "twilio", "from": FROM, "timeout": 0.5, **changed.pop("extra", {})}
        parts = {
            "conn_type": "almanac_sms",
            "host": server.url,
            "login": ACCOUNT,
            "password": TOKEN,
            "extra": extra,
        }
        monkeypatch.setenv("AIRFLOW_CONN_A_SMS", json.dumps({**parts, **changed}))
        return sms_provider("a_sms")

    return connected


def sms(to: str = "+447700900123", text: str = "Due today: Stack test", key: str = "b") -> Batch:
    """Return a message in a batch of its own, as the delivery claims it."""
    return Batch(key, (Message("", to, "Due today", text),))


def test_a_message_arrives(connect: Any, server: TwilioServer) -> None:
    """As a form, from our number, to the number as people write it, whole in any alphabet; its id comes back."""
    (outcome,) = sent(connect(), sms("+44 (0)7700 900-123", "Überfällig & “heute” ✓ +1"))
    assert isinstance(outcome, Accepted)
    assert outcome.provider_id.startswith("SM")
    assert server.sent == [{"To": "+447700900123", "From": FROM, "Body": "Überfällig & “heute” ✓ +1"}]


def test_an_api_key_and_a_messaging_service(connect: Any, server: TwilioServer) -> None:
    """What Twilio advises: a key that can be revoked, and a service that has the numbers."""
    service, key = "MG" + "1" * 32, "SK" + "2" * 32
    server.login, server.senders = key, (service,)
    provider = connect(login=key, extra={"account_sid": ACCOUNT, "from": service})
    assert isinstance(one(provider.send([sms()])), Accepted)
    assert server.sent[0]["MessagingServiceSid"] == service


@pytest.mark.parametrize("to", ["+1234", "+15005550001", "+15005550002", "nobody", "", "+1; DROP"])
def test_a_number_that_takes_none_is_refused(connect: Any, server: TwilioServer, to: str) -> None:
    """21211, 21614, 21610: an attempt of this one message; the next goes out."""
    server.landlines, server.stopped = {"+15005550001"}, {"+15005550002"}
    outcomes = sent(connect(), sms(to, key="a"), sms(key="b"))
    assert [type(outcome) for outcome in outcomes] == [Rejected, Accepted]


ANSWERS: list[tuple[Sent, type[Outcome]]] = [
    (problem(400, 21211, "Invalid 'To' Phone Number"), Rejected),
    (problem(400, 21614, "not a valid mobile number"), Rejected),
    (problem(400, 21617, "too long"), Rejected),
    (problem(400, 21606, "The 'From' phone number is not valid"), Deferred),
    (problem(401, 20003, "Authenticate"), Deferred),
    (problem(403, 20003, "Permission Denied"), Deferred),
    (problem(404, 20404, "not found"), Deferred),
    (problem(429, 20429, "Too Many Requests", headers={"Retry-After": "3600"}), Deferred),
    (problem(500, 20500, "Internal Server Error"), Deferred),
    (problem(503, 20503, "Service Unavailable"), Deferred),
    (Sent(503, b"<html>"), Deferred),
    (Sent(400, b"<html>"), Deferred),
    (Sent(500, b"<html>"), Unknown),
    (Sent(502), Unknown),
    (Sent(504), Unknown),
    (as_json({"status": "queued"}, 201), Unknown),
    (as_json([], 201), Unknown),
    (Sent(201, b"{"), Unknown),
    (Sent(200, b"<html>Sign in</html>"), Unknown),
    (Sent(delay=1), Unknown),
    (Sent(hang_up=True), Unknown),
]


@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
def test_what_is_answered(connect: Any, server: TwilioServer, answer: Sent, expected: type[Outcome]) -> None:
    """Ruling 3: there are no keys, so what may have gone out is a person's; 401 and 403 are our key (ruling 7)."""
    server.fail(answer)
    outcome = one(connect().send([sms()]))
    assert isinstance(outcome, expected)
    if isinstance(outcome, Deferred):
        assert outcome.certain


def test_taken_and_never_told_is_unknown(connect: Any, server: TwilioServer) -> None:
    """The answer to a message that did go out is lost: sent again it would arrive twice."""
    server.fail(Sent(hang_up=True), after=True)
    provider = connect()
    assert isinstance(one(provider.send([sms()])), Unknown)
    assert len(server.sent) == 1
    assert not provider.key_lifetime


def test_a_429_says_when(connect: Any, server: TwilioServer) -> None:
    """The channel then waits so long."""
    server.fail(problem(429, 20429, "Too Many Requests", headers={"Retry-After": "3600"}))
    outcome = one(connect().send([sms()]))
    assert isinstance(outcome, Deferred)
    assert outcome.retry_at is not None
    assert abs(outcome.retry_at - datetime.now(UTC) - timedelta(hours=1)) < timedelta(seconds=10)


def test_no_word_of_the_token(connect: Any, server: TwilioServer, caplog: pytest.LogCaptureFixture) -> None:
    """Not plain, and not as it stands in the header that a service may quote."""
    caplog.set_level(logging.DEBUG)
    basic = base64.b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
    server.fail(problem(401, 20003, f"bad: {TOKEN} Basic {basic}"))
    outcome = one(connect().send([sms()]))
    assert isinstance(outcome, Deferred)
    for secret in (TOKEN, basic):
        assert secret not in outcome.reason
        assert secret not in caplog.text


def test_the_test_button(connect: Any, server: TwilioServer) -> None:
    """Nothing is sent; a wrong token and a suspended account say so."""
    connect()
    assert SmsHook("a_sms").test_connection() == (True, f"{server.url} accepts the key")
    server.status = "suspended"
    assert SmsHook("a_sms").test_connection() == (
        False,
        "http" + server.url[4:] + ": 200 account: is suspended, not active",
    )
    connect(password="wrong")
    ok, said = SmsHook("a_sms").test_connection()
    assert (ok, "401" in said) == (False, True)
    assert server.sent == []


@pytest.mark.parametrize(
    "changed",
    [
        {"login": None},
        {"login": "AC1"},
        {"password": None},
        {"extra": {"from": ""}},
        {"extra": {"from": "a number\n"}},
        {"extra": {"provider": "pigeon"}},
        {"extra": {"per_second": -1}},
        {"conn_type": "almanac_email"},
    ],
)
def test_a_connection_that_can_not_be(connect: Any, changed: dict[str, Any]) -> None:
    """A slip in a setting costs no message an attempt, and the Test button names it."""
    with pytest.raises(BadInput, match="a_sms"):
        connect(**changed)
    ok, said = SmsHook("a_sms").test_connection()
    assert "per_second" in str(changed) or (ok, TOKEN in said) == (False, False)


def test_the_outbox_needs_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The embedded stack sends nothing: each message is a file, and one that is sent again is that file."""
    extra = {"provider": "outbox", "folder": str(tmp_path), "from": ""}
    monkeypatch.setenv("AIRFLOW_CONN_A_SMS", json.dumps({"conn_type": "almanac_sms", "extra": extra}))
    assert SmsHook("a_sms").test_connection()[0]
    # Without a pace: nobody needs sparing.
    assert isinstance(sms_provider("a_sms"), TextsToOutbox)
    batch = sms()
    for _ in range(2):
        (answer,) = sms_provider("a_sms").send([batch])
        assert answer.batch is batch
        assert isinstance(answer.outcomes[0], Accepted)
    (file,) = tmp_path.iterdir()
    assert "447700900123@sms.invalid" in file.read_text()
