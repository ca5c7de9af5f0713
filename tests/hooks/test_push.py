"""Web push, against a push service on loopback whose devices decrypt what they are sent; and into a folder."""

from __future__ import annotations

import base64
import json
import logging
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from hooks.push import PushHook, push_provider
from include.ecocomply.channels import Push, PushesAsMail, PushMessages, Subscription
from include.errors import BadInput
from include.mail import Accepted, Batch, Deferred, Message, Outcome, Rejected, Unknown
from stack.fakes.http_fake import Sent
from stack.fakes.push_server import Device, PushServer, base64url

KEY = base64url(
    ec.derive_private_key(12_345, ec.SECP256R1()).private_numbers().private_value.to_bytes(32, "big")
)


@pytest.fixture
def server() -> Iterator[PushServer]:
    """Run a push service."""
    with PushServer() as running:
        yield running


@pytest.fixture
def connect(server: PushServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes the hook for the connection, whose parts can be changed."""

    def connected(**changed: Any) -> PushMessages:
        extra = {
            "provider": "webpush", "subject": "mailto:ops@ecocomply.test", "timeout": 0.5, "hosts": server.host,
            "private_addresses": True, **changed.pop("extra", {}),
        }  # fmt: skip
        parts = {"conn_type": "almanac_push", "password": KEY, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_A_PUSH", json.dumps({**parts, **changed}))
        return push_provider("a_push")

    return connected


def push(*devices: Device, **changed: Any) -> Push:
    """Return a message to devices."""
    subscriptions = tuple(Subscription(one.endpoint, one.p256dh, base64url(one.auth)) for one in devices)
    given = {"title": "Due today", "body": "Stack test ✓", "url": "https://app.test/o/1"} | changed
    return Push(**given, subscriptions=subscriptions)


def test_only_the_device_can_read_it(connect: Any, server: PushServer) -> None:
    """RFC 8291: what is on the wire is encrypted for one device; it decrypts to exactly what was sent."""
    first, second = server.device(), server.device()
    pushed = connect().send("b1", push(first, second))
    assert isinstance(pushed.outcome, Accepted)
    assert pushed.gone == []
    told = [{"title": "Due today", "body": "Stack test ✓", "url": "https://app.test/o/1"}]
    assert first.shown == second.shown == told
    one, other = (request.body for request in server.asked)
    assert b"Stack" not in one
    assert one[:16] != other[:16]


def test_it_is_signed_with_our_key(connect: Any, server: PushServer) -> None:
    """RFC 8292: the service checks the signature, for whom it is, who sends, and that it ends within a day."""
    ok, said = PushHook("a_push").test_connection() if connect() else (False, "")
    assert ok
    server.public_key = said.rpartition(" ")[2]
    assert len(base64.urlsafe_b64decode(server.public_key + "=")) == 65
    assert isinstance(connect().send("b", push(server.device())).outcome, Accepted)
    (claims,) = server.claims
    assert claims["sub"] == "mailto:ops@ecocomply.test"
    assert claims["aud"] == f"http://{server.host}"
    (request,) = server.asked
    assert request.headers["TTL"] == "86400"
    other = base64url(b"\x01" * 32)
    outcome = connect(password=other).send("b", push(server.device())).outcome
    assert isinstance(outcome, Deferred)
    assert outcome.certain


def test_a_device_that_is_gone(connect: Any, server: PushServer) -> None:
    """404 and 410: the subscription is none any more; the others get the message, and nobody left is a refusal."""
    there, gone = server.device(), server.device()
    server.devices.popitem()
    pushed = connect().send("b", push(gone, there))
    assert isinstance(pushed.outcome, Accepted)
    assert pushed.gone == [gone.endpoint]
    server.fail(Sent(404))
    pushed = connect().send("b", push(there))
    assert isinstance(pushed.outcome, Rejected)
    assert pushed.gone == [there.endpoint]


ANSWERS: list[tuple[Sent, type[Outcome]]] = [
    (Sent(400, b"bad"), Rejected),
    (Sent(413), Rejected),
    (Sent(301, headers={"Location": "http://169.254.169.254/"}), Rejected),
    (Sent(401), Deferred),
    (Sent(403), Deferred),
    (Sent(408), Deferred),
    (Sent(429, headers={"Retry-After": "3600"}), Deferred),
    (Sent(500), Deferred),
    (Sent(503, headers={"Retry-After": "3600"}), Deferred),
    (Sent(502), Unknown),
    (Sent(504), Unknown),
    (Sent(delay=1), Unknown),
    (Sent(hang_up=True), Unknown),
]


@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
def test_what_is_answered(connect: Any, server: PushServer, answer: Sent, expected: type[Outcome]) -> None:
    """Ruling 3: there are no keys, so what may have arrived is a person's; 401 and 403 are our key (ruling 7)."""
    server.fail(answer)
    outcome = connect().send("b", push(server.device())).outcome
    assert isinstance(outcome, expected)
    if isinstance(outcome, Deferred):
        assert outcome.certain
        if answer.headers:
            assert outcome.retry_at is not None
            assert abs(outcome.retry_at - datetime.now(UTC) - timedelta(hours=1)) < timedelta(seconds=10)


def test_one_device_of_another_key_is_no_outage(connect: Any, server: PushServer) -> None:
    """A service that took a message knows our key: the one that it refuses then subscribed under another."""
    pushes = connect()
    assert isinstance(pushes.send("a", push(server.device())).outcome, Accepted)
    server.fail(Sent(403))
    assert isinstance(pushes.send("b", push(server.device())).outcome, Rejected)


def test_one_device_that_took_it_is_enough(connect: Any, server: PushServer) -> None:
    """A person with two devices has seen it."""
    server.fail(Sent(503))
    assert isinstance(connect().send("b", push(server.device(), server.device())).outcome, Accepted)


def test_the_largest_message(connect: Any, server: PushServer) -> None:
    """RFC 8030: 4,096 bytes on the wire, and not one more; what is larger is not asked for."""
    device = server.device()
    empty = len(json.dumps({"title": "", "body": "", "url": None}, separators=(",", ":")))
    most = 4_096 - 86 - 17 - empty
    assert isinstance(
        connect().send("b", push(device, title="", body="x" * most, url=None)).outcome, Accepted
    )
    assert len(server.asked[0].body) == 4_096
    assert isinstance(
        connect().send("b", push(device, title="", body="x" * (most + 1), url=None)).outcome, Rejected
    )
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://evil.test/push/1", "http://169.254.169.254/latest", "file:///etc/passwd", "http://[::1]:5432/",
        "https://user@fcm.googleapis.com/x", "nonsense", "http://fcm.googleapis.com/fcm/send/1",
    ],
)  # fmt: skip
def test_an_endpoint_of_nobody_we_know(connect: Any, server: PushServer, endpoint: str) -> None:
    """Endpoints are what users wrote: only the browsers' services are asked, over TLS, at public addresses."""
    pushes = connect(extra={"hosts": "", "private_addresses": False})
    outcome = pushes.send("b", push(Device(endpoint))).outcome
    assert isinstance(outcome, Rejected)
    assert server.asked == []


def test_keys_that_are_none(connect: Any, server: PushServer) -> None:
    """What an application stored wrongly is one device's fault; the other gets the message."""
    device = server.device()
    for p256dh, auth in (
        ("p", "a"),
        (device.p256dh, "a"),
        (base64url(os.urandom(65)), base64url(device.auth)),
    ):
        bad = Subscription(device.endpoint, p256dh, auth)
        message = Push("t", "b", None, (bad,))
        assert isinstance(connect().send("b", message).outcome, Rejected)
    assert server.asked == []


def test_no_word_of_secrets(connect: Any, server: PushServer, caplog: pytest.LogCaptureFixture) -> None:
    """Neither our key nor what lets others send to the device: its endpoint and its secret."""
    caplog.set_level(logging.DEBUG)
    device = server.device()
    secrets = (KEY, base64url(device.auth), device.endpoint.rpartition("/")[2])
    server.fail(Sent(400, f"no: {' '.join(secrets)} {device.endpoint}".encode()))
    outcome = connect().send("b", push(device)).outcome
    assert isinstance(outcome, Rejected)
    for secret in secrets:
        assert secret not in outcome.reason
        assert secret not in caplog.text


def test_as_the_delivery_sends_it(connect: Any, server: PushServer) -> None:
    """Several at a time; what is gone is told before the answer; after an outage nothing more is begun."""
    devices = [server.device() for _ in range(6)]
    missing = devices[3]
    server.devices = {path: one for path, one in server.devices.items() if one is not missing}
    told: list[str] = []
    mail = PushesAsMail(connect(extra={"in_flight": 3}), told.extend)
    answers = list(mail.send(Batch(f"b{n}", (_message(one),)) for n, one in enumerate(devices)))
    assert {answer.batch.key: type(answer.outcomes[0]) for answer in answers} == {
        f"b{n}": Rejected if n == 3 else Accepted for n in range(6)
    }
    assert told == [missing.endpoint]
    server.fail(Sent(503))
    before = len(server.asked)
    mail = PushesAsMail(connect(extra={"in_flight": 1}), told.extend)
    answers = list(mail.send(Batch(f"c{n}", (_message(one),)) for n, one in enumerate(devices)))
    assert {type(answer.outcomes[0]) for answer in answers} == {Deferred}
    assert len(server.asked) == before + 1


def _message(device: Device) -> Message:
    return Message("", "user", "t", push(device).to_json())


@pytest.mark.parametrize(
    "changed",
    [
        {"password": None},
        {"password": "short"},
        {"password": base64url(b"\x00" * 32)},
        {"extra": {"subject": ""}},
        {"extra": {"subject": "ops"}},
        {"extra": {"provider": "pigeon"}},
        {"extra": {"ttl": -1}},
        {"conn_type": "almanac_sms"},
    ],
)
def test_a_connection_that_can_not_be(connect: Any, changed: dict[str, Any]) -> None:
    """The Test button names the part, and never the key."""
    try:
        connect(**changed)
    except BadInput as error:
        assert "a_push" in str(error)  # noqa: PT017 - some are found out by signing alone
    ok, said = PushHook("a_push").test_connection()
    assert not ok
    assert "a_push" in said
    assert str(changed.get("password") or KEY) not in said


def test_the_outbox_needs_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The embedded stack asks nobody: a file a message."""
    extra = {"provider": "outbox", "folder": str(tmp_path), "subject": ""}
    monkeypatch.setenv("AIRFLOW_CONN_A_PUSH", json.dumps({"conn_type": "almanac_push", "extra": extra}))
    assert PushHook("a_push").test_connection()[0]
    device = Device("https://push.example/1")
    assert isinstance(push_provider("a_push").send("b", push(device)).outcome, Accepted)
    (file,) = tmp_path.iterdir()
    assert "device@push.invalid" in file.read_text()
