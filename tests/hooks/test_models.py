"""The models hook, against the three vendors' protocols on loopback."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, get_args

import pytest

from hooks.models import LARGEST, HttpModels, ModelsHook, models
from include.arcvest.articles import Article, Package, read
from include.arcvest.models import KeyRefused, Question, Truncated, Unusable, Vendor
from include.arcvest.stand_in import MARK, StandIn
from include.errors import AlmanacError, BadInput, Outage, QuotaExhausted, Refused
from stack.fakes.http_fake import Sent, as_json
from stack.fakes.model_server import ModelServer

KEY = "p/s@s:%#1"
VENDORS: tuple[Vendor, ...] = get_args(Vendor)
IDEA = {"title": 'Rates "rise"', "summary": "Ñandú", "url": "https://a.test/"}
DRAFT = json.dumps({"step": "claude_draft", "idea": IDEA})
CUT = {"anthropic": "max_tokens", "openai": "length", "google": "MAX_TOKENS"}

every_vendor = pytest.mark.parametrize("vendor", VENDORS)


def question(vendor: Vendor, text: str = DRAFT) -> Question:
    """Return a question to a vendor's model."""
    return Question(vendor, f"{vendor}/model 1", "Answer with JSON.", text, most=100)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Run the three vendors."""
    with ModelServer(key=KEY) as running:
        yield running


@pytest.fixture
def connect(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes the hook for the connection, whose parts can be changed."""

    def connected(**changed: Any) -> Any:
        extra = {"timeout": 10, "total": 10, **changed.pop("extra", {})}
        parts = {
            "conn_type": "almanac_models",
            "host": server.url,
            "password": KEY,
            "extra": extra,
            **changed,
        }
        monkeypatch.setenv("AIRFLOW_CONN_ARCVEST_MODELS", json.dumps(parts))
        return models("arcvest_models")

    return connected


@every_vendor
def test_a_question_and_its_answer(connect: Any, server: ModelServer, vendor: Vendor) -> None:
    """R3: key, model, instructions and text reach every vendor as given, and its whole answer comes back."""
    reply = connect().ask(question(vendor))
    assert read(reply.text, Article).title == IDEA["title"]
    assert MARK in reply.text
    (asked,) = server.asked
    assert (asked.vendor, asked.key) == (vendor, KEY)
    assert (asked.instructions, asked.text) == ("Answer with JSON.", DRAFT)
    assert asked.model.replace("%2F", "/").replace("%20", " ") == f"{vendor}/model 1"
    assert reply.tokens_in > 0
    assert reply.tokens_out > 0


@every_vendor
def test_each_vendor_has_a_key_and_an_address_of_its_own(
    connect: Any, server: ModelServer, vendor: Vendor
) -> None:
    """A gateway is one way; three vendors with three keys and no host are the other."""
    extra = {f"{vendor}_url": f"{server.url}/{vendor}/", f"{vendor}_api_key": KEY}
    connect(host=None, password=None, extra=extra).ask(question(vendor))
    assert len(server.asked) == 1


@every_vendor
def test_a_truncated_answer_is_none(connect: Any, server: ModelServer, vendor: Vendor) -> None:
    """Ruling: what was cut off at the limit is refused even when it parses and fits the form."""
    server.say('{"title": "a", "body": "whole by chance"}', CUT[vendor])
    with pytest.raises(Truncated, match=CUT[vendor]):
        connect().ask(question(vendor))


@every_vendor
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Sent(429, b"{}", {"Retry-After": "7"}), Outage),
        (Sent(529, b'{"error":{"type":"overloaded_error"}}'), Outage),
        (Sent(500, b"oops"), Outage),
        (Sent(503, b""), Outage),
        (Sent(408, b""), Outage),
        (Sent(401, b"{}"), KeyRefused),
        (Sent(403, b"{}"), KeyRefused),
        (Sent(404, b'{"error":"no such model"}'), KeyRefused),
        (Sent(400, b'{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}'), KeyRefused),
        (Sent(429, b'{"error":{"code":"insufficient_quota"}}'), QuotaExhausted),
        (Sent(400, b'{"error":{"message":"Your credit balance is too low"}}'), QuotaExhausted),
        (Sent(302, b"", {"Location": "http://169.254.169.254/"}), Outage),
        (Sent(400, b'{"error":"too long"}'), Refused),
        (Sent(413, b""), Refused),
        (Sent(422, b""), Refused),
        (Sent(200, b"<html>"), Unusable),
        (Sent(200, b"[]"), Unusable),
        (
            Sent(200, b'{"content":"x","stop_reason":"end_turn","choices":[{"finish_reason":"stop"}]}'),
            Unusable,
        ),
        (Sent(200, b'{"a":' * 50_000), Unusable),
        (Sent(200, b"x" * (LARGEST + 1)), Outage),
        (Sent(200, b"{}", cut=1), Outage),
        (Sent(200, b"{}", delay=0.6), Outage),
        (Sent(200, b"{" + b" " * 100, drip=0.02), Outage),
        (Sent(hang_up=True), Outage),
    ],
    ids=lambda value: f"{value.status} {value.body[:30]!r}" if isinstance(value, Sent) else value.__name__,
)
def test_what_goes_wrong(
    connect: Any, server: ModelServer, vendor: Vendor, answer: Sent, error: type[AlmanacError]
) -> None:
    """Ruling 7: 429, 529, 5xx, silence and cuts are transient, our key is an outage, another 4xx is permanent."""
    server.fail(answer)
    # The hook is as impatient as the vendor is slow, and has time for every other answer.
    slow = answer.delay or answer.drip
    with pytest.raises(error) as raised:
        connect(extra={"timeout": 0.4, "total": 0.4} if slow else {}).ask(question(vendor))
    assert type(raised.value) is error
    assert KEY not in str(raised.value)
    assert "arcvest_models" in str(raised.value)
    if isinstance(raised.value, Outage):
        assert raised.value.service == f"arcvest models: {vendor}"
    # One question is one paid request.
    assert len(server.asked) == 1


def test_when_to_ask_again(connect: Any, server: ModelServer) -> None:
    """E3's kind: seconds, an HTTP date and Google's own detail say when another try makes sense."""
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=5)
    detail = {"error": {"details": [{"retryDelay": "90s"}, {"retryDelay": 5}]}}
    for fault, seconds in [
        (Sent(429, b"", {"Retry-After": "120"}), 120),
        (Sent(529, b"", {"Retry-After": format_datetime(later, usegmt=True)}), 300),
        (as_json(detail, 429), 90),
    ]:
        server.fail(fault)
        with pytest.raises(Outage) as raised:
            connect().ask(question("google"))
        assert raised.value.retry_at is not None
        assert abs((raised.value.retry_at - datetime.now(UTC)).total_seconds() - seconds) < 5


@pytest.mark.parametrize(
    ("vendor", "ended"),
    [
        ("anthropic", "refusal"),
        ("anthropic", "tool_use"),
        ("openai", "content_filter"),
        ("google", "SAFETY"),
        ("google", "RECITATION"),
    ],
)
def test_a_refusal_is_permanent(connect: Any, server: ModelServer, vendor: Vendor, ended: str) -> None:
    """A model that won't write about something won't the next time either."""
    server.say('{"title": "a", "body": "b"}', ended)
    with pytest.raises(Refused, match=ended):
        connect().ask(question(vendor))


def test_a_blocked_prompt_is_permanent(connect: Any, server: ModelServer) -> None:
    """Google blocks a prompt without any candidate."""
    server.fail(as_json({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}))
    with pytest.raises(Refused, match="PROHIBITED_CONTENT"):
        connect().ask(question("google"))


def test_nobody_there(connect: Any) -> None:
    """A refused connection is an outage, told of with the address and without the key."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(Outage, match="no connection"):
        connect(host=f"http://127.0.0.1:{port}").ask(question("openai"))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"extra": {"provider": "llama"}}, "provider"),
        ({"extra": {"timeout": "soon"}}, "timeout"),
        # An answer comes before the task ends, which is after 600 s.
        ({"extra": {"timeout": 600}}, "timeout"),
        ({"extra": {"total": 600}}, "total"),
    ],
)
def test_a_connection_that_says_nonsense(connect: Any, changed: Any, why: str) -> None:
    """The error names the connection and the part of it that is wrong."""
    with pytest.raises(BadInput, match=f"connection arcvest_models.*{why}"):
        connect(**changed).ask(question("anthropic"))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"password": ""}, "anthropic_api_key"),
        ({"password": "key\nX-Evil: 1"}, "anthropic_api_key"),
        ({"extra": {"anthropic_url": "ftp://a"}}, "base URL"),
        ({"host": "ftp://a"}, "base URL"),
    ],
)
def test_a_key_that_is_missing_is_an_outage(
    connect: Any, server: ModelServer, changed: Any, why: str
) -> None:
    """Ruling 7: that our key is wrong is no idea's fault; it shows before anything is asked."""
    models = connect(**changed)
    for attempt in (lambda: models.check("anthropic"), lambda: models.ask(question("anthropic"))):
        with pytest.raises(KeyRefused, match=f"connection arcvest_models.*{why}") as raised:
            attempt()
        assert raised.value.service == "arcvest models: anthropic"
    assert server.asked == []


@every_vendor
def test_a_vendor_that_can_be_asked(connect: Any, server: ModelServer, vendor: Vendor) -> None:
    """To look for the key costs nothing."""
    connect().check(vendor)
    assert server.asked == []


def google_quota(quota: object) -> Sent:
    """Return Google's answer to what is beyond a quota."""
    details = [{"violations": [{"quotaId": quota}, 7]}, {"retryDelay": "34s"}, "odd"]
    return as_json({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}}, 429)


@pytest.mark.parametrize(
    ("quota", "error"),
    [
        ("GenerateRequestsPerDayPerProjectPerModel-FreeTier", QuotaExhausted),
        ("GenerateContentInputTokensPerModelPerDay", QuotaExhausted),
        ("GenerateRequestsPerMinutePerProjectPerModel", Outage),
        (None, Outage),
    ],
)
def test_googles_quotas(connect: Any, server: ModelServer, quota: object, error: type[Outage]) -> None:
    """A day's quota that is used up costs no attempt; a minute's is an ordinary 429. Both have the same status."""
    server.fail(google_quota(quota))
    with pytest.raises(Outage) as raised:
        connect().ask(question("google"))
    assert type(raised.value) is error


@pytest.mark.parametrize(
    "error",
    [
        {"details": [{"violations": 5}]},
        {"details": [{"violations": True}]},
        {"details": [{"violations": {"quotaId": "PerDay"}}]},
        {"details": [5, {"violations": [5, {"quotaId": 5}], "retryDelay": 5}]},
        {"details": 5},
        {"details": {"violations": []}},
        5,
    ],
)
def test_an_odd_429_is_an_ordinary_one(connect: Any, server: ModelServer, error: object) -> None:
    """A gateway between has its own idea of a vendor's errors: it is still "later"."""
    server.fail(as_json({"error": error}, 429))
    with pytest.raises(Outage) as raised:
        connect().ask(question("google"))
    assert type(raised.value) is Outage


@pytest.mark.parametrize("odd", ["1e999", "-1", '"7"', "null", "true", "NaN", "1.5", "9" * 400])
def test_odd_counts_of_tokens_lose_no_answer(connect: Any, server: ModelServer, odd: str) -> None:
    """The answer is whole and paid for: a number beside it that makes no sense counts as none."""
    body = (
        '{"stop_reason": "end_turn", "content": [{"type": "text", "text": "x"}], "model": "m", '
        f'"usage": {{"input_tokens": {odd}, "output_tokens": 3}}}}'
    )
    server.fail(Sent(200, body.encode()))
    reply = connect().ask(question("anthropic"))
    assert (reply.text, reply.tokens_out) == ("x", 3)
    assert reply.tokens_in in (0, 1)


def test_the_stand_in_is_asked_for_by_name(connect: Any, server: ModelServer) -> None:
    """Without key and network a platform still works, and says that nobody was asked."""
    found = connect(host=None, password=None, extra={"provider": "stand_in"})
    assert isinstance(found, StandIn)
    assert MARK in found.ask(question("google")).text
    assert server.asked == []
    assert ModelsHook("arcvest_models").test_connection()[0]


def test_the_test_button(connect: Any, server: ModelServer) -> None:
    """A person who types in a key learns at once whether the vendors take it, for nothing."""
    assert isinstance(connect(), HttpModels)
    assert ModelsHook("arcvest_models").test_connection() == (True, "anthropic, openai, google answered")
    connect(password="wrong")
    worked, why = ModelsHook("arcvest_models").test_connection()
    assert not worked
    assert "401" in why
    assert server.asked == []


@pytest.mark.parametrize("form", [Article, Package])
def test_the_fake_speaks_every_form(connect: Any, form: Any) -> None:
    """The stand-in passes the same schemas as a model."""
    step = "gpt_improve" if form is Article else "claude_package"
    text = json.dumps({"step": step, "article": {"title": "A", "body": "## B\n\nc"}})
    assert read(connect().ask(question("openai", text)).text, form)
