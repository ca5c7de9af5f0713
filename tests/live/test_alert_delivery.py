"""Providers that are out of reach: what waits goes out once, when they are back."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import text

from stack.postgres import free_port
from tests.live.conftest import FirstDay, connection, set_alert_connection, set_connection
from tests.live.desk import Desk, mails, text_of, until
from tests.live.rows import queue_mails, statuses, value

DISPATCH = "clearpath_email_queue_dispatch"


def nowhere() -> dict[str, Any]:
    """Return a mail server's connection where nobody listens."""
    return {
        "host": "127.0.0.1",
        "port": free_port(),
        "extra": {"provider": "smtp", "security": "none", "from": "a@clearpath.example"},
    }


def test_an_alert_waits_for_its_provider(desk: Desk, first_day: FirstDay) -> None:
    """Ruling 11: an alert that can't be mailed stays on the ledger, and the next run delivers it, once."""
    try:
        set_connection(desk, "almanac_alert_email", **nowhere())
        failed = desk.start("probe_errors", {"error": "permanent"})
        desk.ended(failed)
        (row,) = until("the ledger's row", lambda: _tried(desk, failed))
        assert row["delivered_at"] is None
        assert "refused" in row["last_error"]
        # Once the provider is back, any run that ends may deliver it.
        assert desk.alert_mails(failed.run_id) == []
    finally:
        set_alert_connection(desk)
    desk.succeed(desk.start("clearpath_session_expiry", {"as_of": "2020-01-01T00:00:00Z"}))
    assert desk.told(failed)["delivered_at"] is not None
    desk.closed(failed)
    assert len(desk.alert_mails(failed.run_id)) == 1


def _tried(desk: Desk, run: Any) -> list[Any]:
    return [row for row in desk.alerts(run) if row["last_error"]]


def test_a_provider_that_is_out_of_reach(desk: Desk, first_day: FirstDay) -> None:
    """Ruling 11: two runs defer, one alert tells of it, no row loses an attempt, and then all goes out once."""
    clearpath = desk.stack.database("clearpath")
    desk.idle(DISPATCH)
    addresses = queue_mails(clearpath, people=3)
    before = len(_outages(desk))
    with connection(desk, "clearpath_email", **nowhere()):
        for run in (desk.start(DISPATCH), desk.start(DISPATCH)):
            desk.succeed(run)
            assert desk.summary(run)["state"] == "deferred"
    until("the outage's alert", lambda: len(_outages(desk)) == before + 1)
    with clearpath.connect() as opened:
        lost = opened.execute(
            text(
                "SELECT count(*) FROM email_log l JOIN users u ON u.id = l.user_id "
                "WHERE u.email = ANY (:addresses) AND (l.retry_count > 0 OR l.status::text <> 'queued')"
            ),
            {"addresses": addresses},
        )
        assert lost.scalar_one() == 0
    desk.succeed(desk.start(DISPATCH))
    assert {address: statuses(clearpath, address) for address in addresses} == {
        address: ["sent"] for address in addresses
    }
    went_out = Counter(str(mail["To"]) for mail in mails(desk.stack.home.outbox))
    assert {address: went_out[address] for address in addresses} == dict.fromkeys(addresses, 1)
    assert len(_outages(desk)) == before + 1
    still = "SELECT count(*) FROM outage WHERE service = 'clearpath_email' AND closed_at IS NULL"
    assert value(desk.stack.database("almanac"), still) == 0


def _outages(desk: Desk) -> list[str]:
    return [
        text_of(mail)
        for mail in mails(desk.alert_folder)
        if "clearpath_email is out of reach" in str(mail["Subject"])
    ]
