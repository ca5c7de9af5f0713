"""The mail queue through the real hook, against a Resend on loopback that refuses what the real one refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from sqlalchemy import Row

from hooks.connections import access
from hooks.email_resend import ResendMail
from include.clearpath import email_queue_dispatch
from include.clearpath.tables import EMAIL_LOG, SEQUENCED_TYPES
from include.run import Run
from stack.fakes.resend_server import Fault, ResendServer
from tests.clearpath.conftest import SENDER
from tests.clearpath.rows import Rows
from tests.fakes.world import FakeAlerts

HOSTILE = '<a href="https://evil.test">Reset</a> & Co'
TOO_MANY: dict[str, Any] = {"status": 429, "name": "rate_limit_exceeded", "message": "Too many requests."}


@pytest.fixture
def rows(own_rows: Rows) -> Rows:
    """Return rows in the database that the connections name."""
    return own_rows


@pytest.fixture
def dispatch(
    rows: Rows, connections: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Run, FakeAlerts]]:
    """Return a function that runs the job through the connection as it stands."""

    def run(alerts: FakeAlerts | None = None, **changed: Any) -> tuple[Run, FakeAlerts]:
        monkeypatch.setenv("AIRFLOW_CONN_CLEARPATH_EMAIL", connections["AIRFLOW_CONN_CLEARPATH_EMAIL"])
        told = alerts or FakeAlerts()
        outside = email_queue_dispatch.Outside(ResendMail(access("clearpath_email")), told)
        return rows.perform(email_queue_dispatch, outside, datetime.now(UTC), **changed), told

    return run


def mails(rows: Rows, number: int, *, bad: int | None = None) -> None:
    """Queue so many mails to different people, one of them perhaps to no address."""
    for n in range(number):
        to = "no-address" if n == bad else f"{n:03d}@example.test"
        rows.mail(rows.session(user_id=rows.user(to)), late=1 + (number - n) / 10)


def found(rows: Rows) -> dict[str, list[Row[Any]]]:
    """Return all mails by their status."""
    by_status: dict[str, list[Row[Any]]] = {}
    for row in rows.all(EMAIL_LOG):
        by_status.setdefault(row.status, []).append(row)
    return by_status


@pytest.mark.parametrize("permissive", [True, False])
def test_101_messages_one_invalid(
    rows: Rows, resend: Callable[..., ResendServer], dispatch: Callable[..., Any], *, permissive: bool
) -> None:
    """E2: 100 sent, one failed with the provider's reason, whether it can refuse one alone or only the whole batch."""
    server = resend(permissive=permissive)
    mails(rows, 101, bad=42)
    run, _ = dispatch(batch_limit=200)
    assert (run.counts["sent"], run.counts["failed"], run.state) == (100, 1, "success")
    by_status = found(rows)
    (failed,) = by_status["failed"]
    assert "Invalid `to` field" in failed.last_error
    assert (failed.retry_count, failed.permanent) == (1, False)
    assert len({delivery.to for delivery in server.delivered}) == len(server.delivered) == 100
    ids = {delivery.id for delivery in server.delivered}
    assert {row.provider_message_id for row in by_status["sent"]} == ids


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_429_that_asks_to_wait(
    rows: Rows, resend: Callable[..., ResendServer], dispatch: Callable[..., Any], form: str
) -> None:
    """E3: Retry-After in seconds and as an HTTP date: nothing is sent early, no attempt is used up."""
    server = resend(extra={"longest_wait": 1})
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=10)
    header = "600" if form == "seconds" else format_datetime(until, usegmt=True)
    server.fail(Fault(**TOO_MANY, headers={"retry-after": header}))
    mails(rows, 3)
    run, alerts = dispatch()
    assert (run.state, run.counts["deferred"], run.counts["failed"]) == ("deferred", 3, 0)
    assert {(row.status, row.retry_count) for row in rows.all(EMAIL_LOG)} == {("queued", 0)}
    state = rows.state("emailQueue")
    assert state is not None
    assert abs(state.paused_until - until) < timedelta(seconds=30)
    asked = len(server.requests)
    dispatch(alerts)
    assert len(server.requests) == asked
    rows.unpause()
    run, _ = dispatch(alerts)
    assert (run.counts["sent"], len(server.delivered), alerts.outages) == (3, 3, {})


@pytest.mark.parametrize("permissive", [True, False])
def test_a_refused_sender(
    rows: Rows, resend: Callable[..., ResendServer], dispatch: Callable[..., Any], *, permissive: bool
) -> None:
    """The provider won't have our `from`: nothing is sent, no mail loses an attempt, and the next run sends."""
    server = resend(permissive=permissive)
    server.blocked = frozenset([SENDER])
    mails(rows, 3)
    run, alerts = dispatch()
    assert (run.state, run.counts["failed"], run.counts["deferred"]) == ("deferred", 0, 3)
    assert "`from`" in alerts.outages["clearpath_email"]
    assert {(row.status, row.retry_count) for row in rows.all(EMAIL_LOG)} == {("queued", 0)}
    server.blocked = frozenset()
    run, _ = dispatch(alerts)
    assert (run.counts["sent"], len(server.delivered)) == (3, 3)


def test_a_short_wait_is_waited_for(
    rows: Rows, resend: Callable[..., ResendServer], dispatch: Callable[..., Any]
) -> None:
    """E3: a second's wait ends no run: it is waited for, and nothing is sent before."""
    server = resend()
    server.fail(Fault(**TOO_MANY, headers={"retry-after": "1"}))
    mails(rows, 2)
    run, alerts = dispatch()
    assert (run.state, run.counts["sent"], alerts.outages) == ("success", 2, {})
    assert server.requests[1].at - server.requests[0].at >= 1
    assert server.early == []


def test_a_daily_quota(rows: Rows, resend: Callable[..., ResendServer], dispatch: Callable[..., Any]) -> None:
    """E3: the quota is used up: the queue waits until it resets; what was accepted is sent, the rest loses nothing."""
    # One request at a time: those beside the one that is refused have begun before anybody knows.
    server = resend(extra={"batch_size": 10, "in_flight": 1}, daily_quota=25, quota_resets_in=7200)
    mails(rows, 40)
    run, alerts = dispatch(batch_limit=100)
    sent = len(server.delivered)
    assert sent == 20
    assert (run.state, run.counts["sent"], run.counts["failed"]) == ("deferred", sent, 0)
    assert {row.retry_count for row in rows.all(EMAIL_LOG)} == {0}
    assert list(alerts.outages) == ["clearpath_email"]
    state = rows.state("emailQueue")
    assert state is not None
    wait = state.paused_until - datetime.now(UTC)
    assert timedelta(hours=1, minutes=58) < wait < timedelta(hours=2, minutes=1)
    assert "quota" in state.pause_reason
    asked = len(server.requests)
    dispatch(alerts, batch_limit=100)
    assert len(server.requests) == asked
    server.skip(7201)
    rows.unpause()
    run, _ = dispatch(alerts, batch_limit=100)
    assert run.state == "success"
    assert sorted(d.to for d in server.delivered) == [f"{n:03d}@example.test" for n in range(40)]
    assert server.early == []


@pytest.mark.parametrize(
    ("fault", "certain"),
    [
        (Fault(status=401, name="missing_api_key", message="Missing API Key"), True),
        (Fault(status=403, name="invalid_api_key", message="API key is invalid"), True),
        (Fault(status=500), False),
        (Fault(status=503), False),
        (Fault("cut_before"), False),
        (Fault("cut"), False),
        (Fault("half"), False),
        (Fault("malformed"), False),
        (Fault("silent"), False),
    ],
    ids=lambda value: f"{value.kind} {value.status}" if isinstance(value, Fault) else str(value),
)
def test_an_outage(
    rows: Rows,
    resend: Callable[..., ResendServer],
    dispatch: Callable[..., Any],
    fault: Fault,
    *,
    certain: bool,
) -> None:
    """No answer, 401, 403, 5xx, an answer cut off: no fault of the rows; afterwards each goes out once."""
    server = resend(extra={"timeout": 0.5})
    mails(rows, 3)
    server.fail_always(fault)
    run, alerts = dispatch()
    assert (run.state, run.counts["deferred"], list(alerts.outages)) == ("deferred", 3, ["clearpath_email"])
    assert {(row.status, row.retry_count, row.permanent) for row in rows.all(EMAIL_LOG)} == {
        ("queued", 0, False)
    }
    assert all((row.batch_id is None) is certain for row in rows.all(EMAIL_LOG))
    server.fail_always(None)
    run, _ = dispatch(alerts)
    assert (run.counts["sent"], run.state, alerts.outages) == (3, "success", {})
    assert sorted(d.to for d in server.delivered) == [
        "000@example.test",
        "001@example.test",
        "002@example.test",
    ]


def test_the_secret_is_nowhere(
    rows: Rows,
    resend: Callable[..., ResendServer],
    dispatch: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """R3: a provider that echoes our key finds its way neither into a row nor into a log."""
    server = resend()
    key = server.api_key
    server.fail_always(Fault(status=500, message=f"key {key} is over capacity"))
    mails(rows, 1)
    run, alerts = dispatch()
    seen = " ".join([caplog.text, *run.notes, *alerts.outages.values(), str(rows.all(EMAIL_LOG))])
    assert "over capacity" in seen
    assert key not in seen


@pytest.mark.parametrize("email_type", SEQUENCED_TYPES)
def test_hostile_names_over_the_wire(
    rows: Rows, resend: Callable[..., ResendServer], dispatch: Callable[..., Any], email_type: str
) -> None:
    """E4: what arrives at the provider is escaped in HTML, and as written in the subject and the text."""
    server = resend()
    user = rows.user(full_name=HOSTILE)
    rows.mail(rows.session(user_id=user, address=HOSTILE, kit_serial_number=HOSTILE), email_type)
    dispatch(APP_URL="https://app.clearpath.test")
    message = server.delivered[0].message
    assert "&lt;a href=" in message["html"]
    links = [part.partition('"')[0] for part in message["html"].split('href="')[1:]]
    assert links
    assert all(link.startswith("https://app.clearpath.test/") for link in links)
    assert HOSTILE in message["text"]
    assert "&lt;" not in message["subject"]


def test_what_goes_over_the_wire(
    rows: Rows, resend: Callable[..., ResendServer], dispatch: Callable[..., Any]
) -> None:
    """The key is the batch's id, in one request for all; a name with letters of all kinds arrives as it is."""
    server = resend()
    mails(rows, 3)
    rows.mail(rows.session(user_id=rows.user("zoé@example.test", "Zoé Ñandú 測定")), late=999)
    dispatch()
    (request,) = server.requests
    assert request.path == "/emails/batch"
    assert request.key in {str(row.batch_id) for row in rows.all(EMAIL_LOG)}
    first = json.loads(request.body)[0]
    assert "Zoé Ñandú 測定" in first["text"]
    assert first["from"] == "ClearPath <hello@clearpath.test>"
