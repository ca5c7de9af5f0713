"""Resend's transport, against a server on loopback that refuses what Resend refuses."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import psutil
import pytest

from hooks.email_resend import ResendMail
from include.errors import BadInput, Transient
from include.mail import Accepted, Batch, Deferred, Rejected, Unknown
from stack.fakes.resend_server import Fault, ResendServer
from tests.hooks.letters import SECRET, connection, letter, letters, one, sent

UNSUBSCRIBE = {
    "List-Unsubscribe": "<https://almanac.test/u/" + "x" * 200 + ">",
    "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
}


@pytest.fixture
def start() -> Iterator[Callable[..., ResendServer]]:
    """Return a function that starts a server; all are stopped at the end."""
    running: list[ResendServer] = []

    def started(**settings: Any) -> ResendServer:
        parts: dict[str, Any] = {"api_key": SECRET, "base_path": "/mail/v1", **settings}
        server = ResendServer(**parts)
        running.append(server)
        return server.__enter__()

    yield started
    for server in running:
        server.__exit__()


@pytest.fixture
def server(start: Callable[..., ResendServer]) -> ResendServer:
    """Start a server without limits, whose API is below a path."""
    return start()


def provider(server: ResendServer, **extra: Any) -> ResendMail:
    """Return the provider for a server."""
    return ResendMail(connection(server.url, SECRET, **{"timeout": 5, **extra}))


def too_many(retry_after: str) -> Fault:
    """Return the answer to a request that came too soon."""
    return Fault(status=429, name="rate_limit_exceeded", headers={"Retry-After": retry_after})


def test_a_message_arrives_as_it_is(server: ResendServer) -> None:
    """What a reader sees was decided at the claim; E5's unsubscribe headers must reach the mail program."""
    message = letter('"Ann, Ö" <ann@home.test>', subject='<a href="x">é</a> & Co', headers=UNSUBSCRIBE)
    outcome = one(provider(server).send([Batch("k", (message,))]))
    (delivery,) = server.delivered
    assert outcome == Accepted(delivery.id)
    assert delivery.message == {
        "from": message.sender,
        "to": [message.to],
        "subject": message.subject,
        "text": message.text,
        "html": message.html,
        "headers": UNSUBSCRIBE,
    }


def test_one_message_and_many_take_different_ways(server: ResendServer) -> None:
    """Resend has an endpoint for each; only the batch has a way to refuse some and take the rest."""
    sent(provider(server), letters("single", 1), letters("many", 2))
    asked = {request.path: request for request in server.requests}
    assert asked["/emails"].key == "single"
    assert asked["/emails/batch"].key == "many"
    assert asked["/emails/batch"].headers["x-batch-validation"] == "permissive"


def test_default_sender(server: ResendServer) -> None:
    """A message without a sender takes the connection's; without one nothing is the message's fault."""
    message = letter(sender="")
    assert isinstance(one(provider(server).send([Batch("a", (message,))])), Deferred)
    mail = provider(server, **{"from": "Default <d@almanac.test>"})
    assert isinstance(one(mail.send([Batch("b", (message,))])), Accepted)
    assert server.delivered[0].message["from"] == "Default <d@almanac.test>"


@pytest.mark.parametrize("permissive", [True, False])
@pytest.mark.parametrize("number", [1, 3])
def test_refused_sender_is_an_outage(
    start: Callable[..., ResendServer],
    permissive: bool,  # noqa: FBT001 - a case
    number: int,
) -> None:
    """A sender that Resend won't have is our setting: no message may lose an attempt for it."""
    server = start(permissive=permissive, blocked=["Almanac <mail@almanac.test>"])
    outcomes = sent(provider(server), letters("k", number))
    assert [getattr(outcome, "certain", None) for outcome in outcomes] == [True] * number
    assert server.delivered == []


@pytest.mark.parametrize("permissive", [True, False])
@pytest.mark.parametrize("batches", [[100, 1], [101]])
def test_one_invalid_of_101(
    start: Callable[..., ResendServer],
    batches: list[int],
    permissive: bool,  # noqa: FBT001 - a case
) -> None:
    """E2: the others go out, whether the server can refuse one alone or refuses the whole batch for it."""
    server = start(permissive=permissive)
    messages = [letter(f"p{n}@home.test") for n in range(101)]
    messages[57] = letter("not-an-address")
    work = [Batch(f"k{n}", tuple(messages[100 * n : 100 * n + size])) for n, size in enumerate(batches)]
    outcomes = sent(provider(server), *work)
    assert [type(outcome) for outcome in outcomes].count(Accepted) == 100
    rejected = outcomes[57]
    assert isinstance(rejected, Rejected)
    assert "Invalid `to` field" in rejected.reason
    assert sorted(d.to for d in server.delivered) == sorted(m.to for m in messages if "@" in m.to)
    ids = {delivery.to: delivery.id for delivery in server.delivered}
    for message, outcome in zip(messages, outcomes, strict=True):
        assert isinstance(outcome, Rejected) or outcome == Accepted(ids[message.to])
    # A process that died before it wrote the answers down sends the same again.
    assert sent(provider(server), *work) == outcomes
    assert len(server.delivered) == 100


@pytest.mark.parametrize("taken", [0, 2])
def test_cut_amid_a_split(start: Callable[..., ResendServer], taken: int) -> None:
    """A batch in parts is one batch: while a part is in doubt, no message may leave under another key."""
    server = start(permissive=False)
    batch = Batch("k", (*letters("k", 3).messages, letter("not-an-address")))
    # The whole is refused, then one of its halves fails; if the first does, the second is not even begun.
    server.fail(Fault("slow"), *([Fault("slow"), Fault("cut_before")] if taken else [Fault("cut")]))
    outcomes = sent(provider(server), batch)
    assert [type(outcome) for outcome in outcomes] == [Accepted] * taken + [Deferred] * (4 - taken)
    assert not any(isinstance(outcome, Deferred) and outcome.certain for outcome in outcomes)
    again = sent(provider(server), batch)
    assert [type(outcome) for outcome in again] == [Accepted, Accepted, Accepted, Rejected]
    assert again[:taken] == outcomes[:taken]
    assert len(server.delivered) == 3


def test_an_outage_while_others_wait_for_their_turn(server: ResendServer) -> None:
    """What sat out a rate limit is not sent into a service that went out since; nothing of it was taken."""
    server.fail(too_many("3"), Fault(status=500, delay=0.3))
    outcomes = sent(provider(server), letters("a", 1), letters("b", 1))
    assert sorted(outcome.certain for outcome in outcomes if isinstance(outcome, Deferred)) == [False, True]
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("fault", "outcome", "certain"),
    [
        (Fault(status=401, name="missing_api_key"), Deferred, True),
        (Fault(status=403, name="validation_error", message="The domain is not verified."), Deferred, True),
        (Fault(status=400, name="validation_error", message="API key is invalid"), Deferred, True),
        (Fault(status=404, name="not_found"), Deferred, True),
        (Fault(status=302, headers={"Location": "http://127.0.0.1:1/"}), Deferred, True),
        (Fault(status=408), Deferred, False),
        (Fault(status=500), Deferred, False),
        (Fault(status=503), Deferred, False),
        (Fault("cut_before"), Deferred, False),
        (Fault("cut"), Deferred, False),
        (Fault("half"), Deferred, False),
        (Fault("malformed"), Deferred, False),
        (Fault("malformed", body='{"id": 7}'), Deferred, False),
        (Fault("malformed", body="[" * 100_000), Deferred, False),
        (Fault("malformed", body='"' + "x" * 5_000_000 + '"'), Deferred, False),
        (Fault("silent"), Deferred, False),
        (Fault(status=409, name="concurrent_idempotent_requests"), Deferred, False),
        (Fault(status=409, name="invalid_idempotent_request"), Unknown, None),
        (Fault(status=422, name="invalid_from_address"), Deferred, True),
        (Fault(status=422, name="validation_error", message="Invalid `from` field."), Deferred, True),
        (Fault(status=422, name="missing_required_field", message="Missing `from` field."), Deferred, True),
        (Fault(status=422, name="validation_error", message="Invalid `to`: `from` x@y.test"), Rejected, None),
        (Fault(status=400, name="validation_error"), Rejected, None),
        (Fault(status=413, name="too_large"), Rejected, None),
        (Fault(status=451, name="security_error"), Rejected, None),
    ],
    ids=lambda case: f"{case.kind}-{case.status}-{case.body[:9]}" if isinstance(case, Fault) else None,
)
def test_what_an_answer_means(
    server: ResendServer,
    fault: Fault,
    outcome: type,
    certain: bool | None,  # noqa: FBT001 - a case
) -> None:
    """An outage is no fault of a message, and a doubt is no outage that let nothing through."""
    server.fail(fault)
    said = one(provider(server, timeout=1).send([letters("k", 1)]))
    assert isinstance(said, outcome)
    assert getattr(said, "certain", None) is certain


@pytest.mark.parametrize(
    "body",
    [
        '{"data": [{"id": "a"}]}',
        '{"data": [{"id": "a"}, {"id": ""}]}',
        '{"data": [], "errors": [{"index": 0}, {"index": 0}]}',
        '{"data": [{"id": "a"}], "errors": [{"index": 2, "message": "x"}]}',
        '{"data": [{"id": "a"}], "errors": [{"index": "0", "message": "x"}]}',
        '{"data": {"id": "a"}}',
    ],
)
def test_an_answer_that_does_not_account_for_each_message(server: ResendServer, body: str) -> None:
    """Ids given to the wrong messages would be recorded as sent; a doubt is looked at again."""
    server.fail(Fault("malformed", body=body))
    assert [getattr(o, "certain", None) for o in sent(provider(server), letters("k", 2))] == [False, False]


def test_accepted_and_the_answer_lost(server: ResendServer) -> None:
    """E1: the same batch under the same key is delivered once, and the second answer has the first ids."""
    server.fail(Fault("cut"))
    batch = letters("k", 100)
    first = sent(provider(server), batch)
    assert all(isinstance(outcome, Deferred) and not outcome.certain for outcome in first)
    second = sent(provider(server), batch)
    assert second == [Accepted(delivery.id) for delivery in server.delivered]
    assert len(server.delivered) == 100
    assert server.requests[0].body == server.requests[1].body


def test_changed_payload_under_a_key(server: ResendServer) -> None:
    """The provider may have taken the first form: nobody can tell, so a person decides."""
    sent(provider(server), letters("k", 2))
    changed = sent(provider(server), letters("k", 2, subject="Other"))
    assert all(isinstance(outcome, Unknown) for outcome in changed)
    assert len(server.delivered) == 2


def test_two_workers_with_one_batch(start: Callable[..., ResendServer]) -> None:
    """E1: the second of two at once is told to come back; that is no outage, so others still go out."""
    server = start(latency=0.5)
    batch = letters("k", 2)
    first: list[Any] = []
    worker = threading.Thread(target=lambda: first.extend(sent(provider(server), batch)))
    worker.start()
    time.sleep(0.2)
    outcomes = sent(provider(server, in_flight=1), batch, letters("other", 2))
    worker.join()
    assert [type(outcome) for outcome in first] == [Accepted, Accepted]
    assert [getattr(outcome, "certain", None) for outcome in outcomes[:2]] == [False, False]
    assert [type(outcome) for outcome in outcomes[2:]] == [Accepted, Accepted]
    assert len(server.delivered) == 4


def test_nobody_there() -> None:
    """Where no connection came about nothing has left, so the message may go out under another key."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    mail = ResendMail(connection(f"http://127.0.0.1:{port}", SECRET))
    outcome = one(mail.send([letters("k", 1)]))
    assert isinstance(outcome, Deferred)
    assert outcome.certain
    assert "Connection refused" in outcome.reason


@pytest.mark.parametrize("date", [False, True])
def test_short_retry_after_is_waited_for(server: ResendServer, date: bool) -> None:  # noqa: FBT001 - a case
    """E3: in seconds and as an HTTP date, nothing is sent early, and no attempt is used up."""
    when = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    server.fail(too_many(format_datetime(when, usegmt=True) if date else "1"))
    began = time.time()
    outcomes = sent(provider(server, in_flight=1), letters("a", 2), letters("b", 2))
    assert all(isinstance(outcome, Accepted) for outcome in outcomes)
    assert time.time() >= (when.timestamp() if date else began + 1)
    assert server.early == []
    assert [request.key for request in server.requests] == ["a", "a", "b"]


@pytest.mark.parametrize("date", [False, True])
def test_long_retry_after_is_left_to_a_later_run(server: ResendServer, date: bool) -> None:  # noqa: FBT001
    """E3: a task does not sit out ten minutes; the answer says when, and nothing else is sent till then."""
    when = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=10)
    server.fail(too_many(format_datetime(when, usegmt=True) if date else "600"))
    outcomes = sent(provider(server, in_flight=1), *(letters(f"k{n}", 2) for n in range(5)))
    for outcome in outcomes:
        assert isinstance(outcome, Deferred)
        assert outcome.certain
        assert not outcome.quota
        assert outcome.retry_at
        assert abs(outcome.retry_at - when) < timedelta(seconds=0 if date else 2, microseconds=1)
    assert len(server.requests) == 1


@pytest.mark.parametrize("seconds", [3600, 10])
def test_daily_quota(start: Callable[..., ResendServer], seconds: int) -> None:
    """E3: the quota pauses the whole queue until the provider resets it; it is no wait within a run."""
    server = start(daily_quota=4, quota_resets_in=seconds)
    outcomes = sent(provider(server, in_flight=1), *(letters(f"k{n}", 2) for n in range(4)))
    assert [type(outcome) for outcome in outcomes] == [Accepted] * 4 + [Deferred] * 4
    last = outcomes[-1]
    assert isinstance(last, Deferred)
    assert last.quota
    assert last.certain
    assert last.retry_at
    assert abs(last.retry_at - datetime.now(UTC) - timedelta(seconds=seconds)) < timedelta(seconds=5)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("name", "hours"), [("daily_quota_exceeded", (24, 24)), ("monthly_quota_exceeded", (0, 31 * 24))]
)
def test_quota_without_a_time(server: ResendServer, name: str, hours: tuple[int, int]) -> None:
    """E3: the daily quota counts 24 hours, the monthly one a month; the rate limit's reset is neither."""
    server.fail(Fault(status=429, name=name, headers={"ratelimit-reset": "1"}))
    outcome = one(provider(server).send([letters("k", 1)]))
    assert isinstance(outcome, Deferred)
    assert outcome.quota
    assert outcome.retry_at
    waits = outcome.retry_at - datetime.now(UTC)
    assert timedelta(hours=hours[0]) - timedelta(seconds=5) < waits <= timedelta(hours=hours[1])
    assert name.startswith("daily") or (outcome.retry_at.day, outcome.retry_at.hour) == (1, 0)


def test_rate_limit_is_kept(start: Callable[..., ResendServer]) -> None:
    """E3: Resend allows a few requests a second; its headers are heeded, so refusals stay the exception."""
    server = start(rate_limit=4)
    began = time.monotonic()
    outcomes = sent(provider(server), *(letters(f"k{n}", 1) for n in range(14)))
    assert all(isinstance(outcome, Accepted) for outcome in outcomes)
    assert time.monotonic() - began >= 3
    # Ten start before the first answer tells the limit: six too many.
    assert len(server.requests) <= 14 + 6


def test_unavailable_with_a_time(server: ResendServer) -> None:
    """A service that says when it is back is not asked before, by a later run either."""
    server.fail(Fault(status=503, headers={"Retry-After": "120"}))
    outcome = one(provider(server).send([letters("k", 1)]))
    assert isinstance(outcome, Deferred)
    assert outcome.retry_at
    assert timedelta(seconds=110) < outcome.retry_at - datetime.now(UTC) <= timedelta(seconds=120)


def test_an_outage_ends_the_sending(server: ResendServer) -> None:
    """Fifty batches into a broken service are fifty doubts; what has not begun is put off, in certainty."""
    server.fail_always(Fault(status=500))
    outcomes = sent(provider(server, in_flight=3), *(letters(f"k{n}", 2) for n in range(50)))
    asked = {request.key for request in server.requests}
    assert len(server.requests) <= 6
    for number, outcome in enumerate(outcomes):
        assert isinstance(outcome, Deferred)
        assert outcome.certain is (f"k{number // 2}" not in asked)


def test_in_flight(start: Callable[..., ResendServer]) -> None:
    """Ten batches at a time, or a hundred single messages: what the speed of a big queue rests on."""
    server = start(latency=0.2)
    sent(provider(server), *(letters(f"k{n}", 2) for n in range(30)))
    assert server.most_at_once == 10
    sent(provider(server, batch_size=1), *(letters(f"s{n}", 1) for n in range(200)))
    assert server.most_at_once == 100


def test_batches_are_taken_as_they_are_needed(start: Callable[..., ResendServer]) -> None:
    """A batch that is taken counts as begun, and taking it writes to the database in the caller's thread."""
    server = start(latency=0.05)
    taken: list[tuple[str, threading.Thread]] = []

    def source() -> Iterator[Batch]:
        for number in range(30):
            taken.append((f"k{number}", threading.current_thread()))
            yield letters(f"k{number}", 1)

    for done, _ in enumerate(provider(server, in_flight=4).send(source()), 1):
        assert len(taken) <= done + 4
        time.sleep(0.01)
    assert {thread for _, thread in taken} == {threading.current_thread()}


def test_answers_come_as_they_come(server: ResendServer) -> None:
    """A slow batch holds up no other's record."""
    server.fail(Fault("slow", delay=1))
    answers = provider(server, in_flight=2).send([letters("slow", 2), letters("a", 2), letters("b", 2)])
    assert [answer.batch.key for answer in answers] == ["a", "b", "slow"]


def test_a_consumer_that_takes_its_time(server: ResendServer) -> None:
    """Requests go on while answers are written down: a slow database makes no timeouts."""
    answers = provider(server, in_flight=3, timeout=0.5).send(letters(f"k{n}", 2) for n in range(6))
    outcomes = []
    for answer in answers:
        time.sleep(0.4)
        outcomes += answer.outcomes
    assert all(isinstance(outcome, Accepted) for outcome in outcomes)


def test_stopping_early_leaves_nothing_behind(start: Callable[..., ResendServer]) -> None:
    """A task that fails in the middle must end: no thread, no socket of the sending stays."""
    server = start(latency=0.3)
    answers = provider(server, in_flight=4).send(letters(f"k{n}", 1) for n in range(100))
    next(answers)
    assert _connections_to(server)
    answers.close()
    assert [thread for thread in threading.enumerate() if thread.name == "mail"] == []
    assert _connections_to(server) == []


def test_running_to_the_end_leaves_nothing_behind(server: ResendServer) -> None:
    """Likewise when all is done."""
    sent(provider(server), letters("k", 2))
    assert [thread for thread in threading.enumerate() if thread.name == "mail"] == []
    assert _connections_to(server) == []


def test_nothing_to_send_costs_nothing(server: ResendServer) -> None:
    """R1: nothing due is the usual run; it starts no thread and asks nobody."""
    before = threading.active_count()
    assert list(provider(server).send([])) == []
    assert threading.active_count() == before
    assert sent(provider(server), Batch("empty", ())) == []
    assert server.requests == []


def test_a_source_that_fails(start: Callable[..., ResendServer]) -> None:
    """The database goes away while batches are under way: their answers are still handed over first."""
    server = start(latency=0.2)

    def source() -> Iterator[Batch]:
        yield letters("a", 2)
        yield letters("b", 2)
        raise Transient("the database has gone away")

    keys = []
    with pytest.raises(Transient, match="gone away"):
        keys.extend(answer.batch.key for answer in _remembering(provider(server).send(source()), keys))
    assert sorted(set(keys)) == ["a", "b"]


@pytest.mark.parametrize(
    "changed",
    [
        {"subject": "Hello\r\nBcc: evil@evil.test"},
        {"subject": "Hello\u2028there"},
        {"to": "ann@home.test\nBcc: evil@evil.test"},
        {"to": "ann@home.test, evil@evil.test"},
        {"sender": "a\r@almanac.test"},
        {"headers": {"X-A": "1\r\nBcc: evil@evil.test"}},
        {"headers": {"X-A: 1\r\nBcc": "evil@evil.test"}},
        {"headers": {"Bcc": "evil@evil.test"}},
        {"headers": {"X-A": "x" * 1000}},
        {"text": "\ud800"},
    ],
)
def test_hostile_values_go_nowhere(server: ResendServer, changed: dict[str, Any]) -> None:
    """A line break in a name must not become a header, nor a comma a second recipient; the others go out."""
    hostile, good = letter(**changed), letter("bob@home.test")
    outcomes = sent(provider(server), Batch("k", (hostile, good)))
    assert [type(outcome) for outcome in outcomes] == [Rejected, Accepted]
    assert [delivery.to for delivery in server.delivered] == ["bob@home.test"]


@pytest.mark.parametrize("key", ["", "ö/1", "a b", "k\r\nX-Evil: 1", "x" * 257, "\ud800"])
def test_any_key_becomes_one_that_the_provider_takes(server: ResendServer, key: str) -> None:
    """A key that can't be a header would otherwise put the batch off for ever; two keys never become one."""
    batches = [Batch(key, (letter(),)), Batch(key + "1", (letter(),)), Batch(key, (letter(),))]
    for batch in batches:
        assert isinstance(one(provider(server).send([batch])), Accepted)
    assert len(server.delivered) == 2


def test_no_secret_in_a_reason(server: ResendServer) -> None:
    """R3: a service that repeats the key, as it is or quoted, must not bring it into a log."""
    server.fail(Fault(status=401, name="validation_error", message=f"bad key {SECRET}, p%2Fs%40s%3A%25%231"))
    outcome = one(provider(server).send([letters("k", 1)]))
    assert isinstance(outcome, Deferred)
    assert outcome.reason == "401 validation_error: bad key ***, ***"


def test_redirects_are_not_followed(start: Callable[..., ResendServer]) -> None:
    """The key and the messages go to the configured host alone."""
    server, elsewhere = start(), start()
    server.fail(Fault(status=307, headers={"Location": f"{elsewhere.url}/emails"}))
    one(provider(server).send([letters("k", 1)]))
    assert elsewhere.requests == []


def test_asking_whether_the_key_works(server: ResendServer) -> None:
    """The Test button tries the key and sends nothing; a key that may only send is a good key."""
    assert "accepts the key" in provider(server).test()
    wrong = ResendMail(connection(server.url, "re_wrong"))
    with pytest.raises(Transient, match="API key is invalid"):
        wrong.test()
    assert server.delivered == []


@pytest.mark.parametrize("key", [None, "re_1\n", "re 1", "ré"])
def test_a_password_that_is_no_key(server: ResendServer, key: str | None) -> None:
    """A pasted line break is told at once and by name, not as an outage; the key itself is not shown."""
    with pytest.raises(BadInput, match="connection a_mail: password") as caught:
        ResendMail(connection(server.url, key))
    assert key is None or key not in str(caught.value)


def test_keys_expire(server: ResendServer) -> None:
    """The server forgets a key after 24 hours, as Resend does: who promised more would deliver twice."""
    mail = provider(server)
    sent(mail, letters("k", 1))
    server.skip(mail.key_lifetime.total_seconds() - 60)
    sent(mail, letters("k", 1))
    assert len(server.delivered) == 1
    server.skip(61)
    sent(mail, letters("k", 1))
    assert len(server.delivered) == 2


def test_a_batch_is_the_same_bytes_every_time(server: ResendServer) -> None:
    """A claim is stored as JSON; read back, it must give the same request, or the provider refuses it."""
    message = letter(headers={"B": "2", "A": "1"})
    sent(provider(server), Batch("k", (message,)))
    sent(provider(server), Batch("k", (type(message).from_json(message.to_json()),)))
    assert server.requests[0].body == server.requests[1].body
    assert json.loads(server.requests[0].body)["headers"] == {"A": "1", "B": "2"}


def _remembering(answers: Iterator[Any], keys: list[str]) -> Iterator[Any]:
    for answer in answers:
        keys.append(answer.batch.key)
        yield answer


def _connections_to(server: ResendServer) -> list[Any]:
    found = [each for each in psutil.Process().net_connections("tcp") if each.status == "ESTABLISHED"]
    return [each for each in found if each.raddr and each.raddr.port == server.port]
