"""The optimiser of advertisements: never called blindly again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from hooks.application import HttpApplication
from hooks.connections import access
from include.arcvest import ads_optimize, tables
from include.arcvest.application import NoAnswer
from include.errors import Outage, OutcomeUnknown, Permanent, Refused
from stack.fakes.application_server import ApplicationServer
from stack.fakes.http_fake import Sent, as_json
from tests.arcvest.application_world import FakeApplication
from tests.arcvest.rows import Rows
from tests.fakes.world import FakeAlerts

NOON = datetime(2026, 11, 25, 12, tzinfo=UTC)


def test_an_ambiguous_timeout_is_a_persons(rows: Rows) -> None:
    """Ruling: money moved, or did not; the failure is not retried, and no later run of the slot calls again."""
    application, alerts = FakeApplication(fail=[NoAnswer("no answer within 330 s")]), FakeAlerts()
    outside = ads_optimize.Outside(application, alerts)
    with pytest.raises(OutcomeUnknown, match="not called again by itself") as raised:
        rows.perform(ads_optimize, outside, NOON)
    assert isinstance(raised.value, Permanent)
    (row,) = rows.all(tables.SYNC_SLOTS)
    assert (row.outcome_unknown, row.succeeded_at) == (True, None)
    run = rows.perform(ads_optimize, outside, NOON)
    assert len(application.calls) == 1
    assert run.state == "deferred"
    assert "the outcome is unknown" in run.notes[0]


def test_a_person_who_found_out_lets_it_go_on(rows: Rows) -> None:
    """The page for the person on call says which column to set."""
    application, alerts = FakeApplication(fail=[NoAnswer("silence")]), FakeAlerts()
    outside = ads_optimize.Outside(application, alerts)
    with pytest.raises(OutcomeUnknown):
        rows.perform(ads_optimize, outside, NOON)
    with rows.db.engine.begin() as connection:
        connection.execute(tables.SYNC_SLOTS.update().values(outcome_unknown=False))
    assert rows.perform(ads_optimize, outside, NOON).counts["sent"] == 1


@pytest.mark.parametrize("error", [Outage("no connection"), Outage("HTTP 500"), Refused("HTTP 400")])
def test_what_is_known_to_have_failed_is_no_open_question(rows: Rows, error: Exception) -> None:
    """A call that was not taken can be made again: its outcome is known."""
    application, alerts = FakeApplication(fail=[error]), FakeAlerts()
    outside = ads_optimize.Outside(application, alerts)
    with pytest.raises(type(error)):
        rows.perform(ads_optimize, outside, NOON)
    (row,) = rows.all(tables.SYNC_SLOTS)
    assert row.outcome_unknown is False
    assert rows.perform(ads_optimize, outside, NOON).counts["sent"] == 1


@pytest.mark.parametrize(
    ("fault", "does_it"),
    [
        (Sent(delay=1), "does it"),
        (Sent(hang_up=True), "does it"),
        (Sent(504), "does it"),
        (Sent(504), "does not"),
    ],
)
def test_over_http(rows: Rows, monkeypatch: pytest.MonkeyPatch, fault: Sent, does_it: str) -> None:
    """E1's kind: the application did it, or did not, and nobody here can tell: one call in either case."""
    with ApplicationServer() as server:
        monkeypatch.setenv(
            "AIRFLOW_CONN_ARCVEST_APP",
            f'{{"conn_type": "almanac_application", "host": "{server.url}", "password": "app-secret", '
            '"extra": {"timeout": 0.3}}',
        )
        outside = ads_optimize.Outside(HttpApplication(access("arcvest_app")), FakeAlerts())
        server.fail(fault, after=does_it == "does it")
        with pytest.raises(OutcomeUnknown):
            rows.perform(ads_optimize, outside, NOON)
        rows.perform(ads_optimize, outside, NOON)
        assert len(server.asked) == 1
        assert len(server.done) == (does_it == "does it")


def test_a_failure_in_words_is_known(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoints answer 200 with success false where they failed."""
    with ApplicationServer() as server:
        monkeypatch.setenv(
            "AIRFLOW_CONN_ARCVEST_APP",
            f'{{"conn_type": "almanac_application", "host": "{server.url}", "password": "app-secret"}}',
        )
        outside = ads_optimize.Outside(HttpApplication(access("arcvest_app")), FakeAlerts())
        server.fail(as_json({"success": False}))
        with pytest.raises(Outage):
            rows.perform(ads_optimize, outside, NOON)
        rows.perform(ads_optimize, outside, NOON)
        assert server.done == ["ads-optimize/2026-11-25T12:00:00Z"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"success": true, "ad": "Sale \\ud83d"}',
        b'{"success": true, "roas": NaN}',
        b'{"success": true, "roas": 1e999}',
        b'{"success": true, "ad": "a\\u0000"}',
    ],
)
def test_what_is_answered_makes_no_success_fail(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    """The work is done: an answer that the database can't hold must not have it done again."""
    with ApplicationServer() as server:
        outside = over_http(server, monkeypatch)
        server.fail(Sent(200, body), after=True)
        assert rows.perform(ads_optimize, outside, NOON).counts["sent"] == 1
        rows.perform(ads_optimize, outside, NOON)
        assert len(server.asked) == 1
    (row,) = rows.all(tables.SYNC_SLOTS)
    assert row.succeeded_at is not None
    assert list(row.answer) == ["left_out"]


def test_a_refusal_of_the_ledger_makes_no_success_fail(rows: Rows) -> None:
    """What the application said is for reading alone: the success is written without it."""
    with rows.db.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE sync_slots ADD CHECK (answer IS NULL)")
    outside = ads_optimize.Outside(FakeApplication(), FakeAlerts())
    assert rows.perform(ads_optimize, outside, NOON).counts["sent"] == 1
    (row,) = rows.all(tables.SYNC_SLOTS)
    assert (row.succeeded_at is not None, row.answer) == (True, None)


@pytest.mark.parametrize("body", [b"", b"OK", b"[1]", b"<html>Sign in</html>"])
def test_what_is_no_answer_of_its_own_is_a_persons(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    """A 200 that doesn't say what was done may be anybody's: where money moves, that is no success."""
    with ApplicationServer() as server:
        outside = over_http(server, monkeypatch)
        server.fail(Sent(200, body))
        with pytest.raises(OutcomeUnknown):
            rows.perform(ads_optimize, outside, NOON)
        rows.perform(ads_optimize, outside, NOON)
        assert len(server.asked) == 1
    (row,) = rows.all(tables.SYNC_SLOTS)
    assert (row.outcome_unknown, row.succeeded_at) == (True, None)


@pytest.mark.parametrize(
    ("standing", "state"),
    [({"outcome_unknown": True}, "deferred"), ({"succeeded_at": NOON}, "success")],
)
def test_a_task_that_is_cleared_alone_calls_nobody(rows: Rows, standing: dict[str, Any], state: str) -> None:
    """A person may clear the call without the claim before it: the slot is looked at again."""
    application = FakeApplication()
    run = rows.run(ads_optimize, NOON)
    outside = ads_optimize.Outside(application, FakeAlerts())
    handed = ads_optimize.claim_slot(run, outside)
    assert isinstance(handed, Mapping)
    run.handed.update(handed)
    with rows.db.engine.begin() as connection:
        connection.execute(tables.SYNC_SLOTS.update().values(**standing))
    ads_optimize.call_application(run, outside)
    assert application.calls == []
    assert (run.counts["skipped"], run.state) == (1, state)


def over_http(server: ApplicationServer, monkeypatch: pytest.MonkeyPatch) -> ads_optimize.Outside:
    """Return the world with that application behind the real hook."""
    monkeypatch.setenv(
        "AIRFLOW_CONN_ARCVEST_APP",
        f'{{"conn_type": "almanac_application", "host": "{server.url}", "password": "app-secret"}}',
    )
    return ads_optimize.Outside(HttpApplication(access("arcvest_app")), FakeAlerts())
