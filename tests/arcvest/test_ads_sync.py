"""The sync of advertisements: every four hours a slot of its own."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hooks.application import HttpApplication
from hooks.connections import access
from include.arcvest import ads_sync, tables
from include.arcvest.application import NoAnswer
from stack.fakes.application_server import ApplicationServer
from stack.fakes.http_fake import Sent
from tests.arcvest.application_world import FakeApplication
from tests.arcvest.rows import Rows
from tests.fakes.world import FakeAlerts


@pytest.mark.parametrize(
    ("hour", "minute", "slot"),
    [(0, 0, "00"), (3, 59, "00"), (4, 0, "04"), (8, 0, "08"), (11, 59, "08"), (20, 1, "20"), (23, 59, "20")],
)
def test_slots_of_four_hours(rows: Rows, hour: int, minute: int, slot: str) -> None:
    """The schedule is 0 */4 by UTC; its 08:00 is another key than the analytics sync's."""
    application = FakeApplication()
    as_of = datetime(2026, 11, 25, hour, minute, tzinfo=UTC)
    rows.perform(ads_sync, ads_sync.Outside(application, FakeAlerts()), as_of)
    assert application.calls == [("api/cron/ads-sync", f"ads-sync/2026-11-25T{slot}:00:00Z")]
    (row,) = rows.all(tables.SYNC_SLOTS)
    assert row.job == "ads-sync"


def test_a_page_to_sign_in_on_is_no_success(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 200 that is a page synced nothing: the slot is called again under its key."""
    with ApplicationServer() as server:
        monkeypatch.setenv(
            "AIRFLOW_CONN_ARCVEST_APP",
            f'{{"conn_type": "almanac_application", "host": "{server.url}", "password": "app-secret"}}',
        )
        outside = ads_sync.Outside(HttpApplication(access("arcvest_app")), FakeAlerts())
        server.fail(Sent(200, b"<!doctype html><title>Sign in</title>"))
        as_of = datetime(2026, 11, 25, 12, tzinfo=UTC)
        with pytest.raises(NoAnswer):
            rows.perform(ads_sync, outside, as_of)
        assert rows.perform(ads_sync, outside, as_of).counts["sent"] == 1
        assert server.done == ["ads-sync/2026-11-25T12:00:00Z"]
