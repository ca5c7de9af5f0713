"""The analytics sync: once a slot, whoever asks and however often."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from include.arcvest import analytics_sync, tables
from include.arcvest.application import NoAnswer
from include.errors import Outage
from tests.arcvest.application_world import FakeApplication
from tests.arcvest.rows import Rows
from tests.fakes.world import FakeAlerts

EIGHT = datetime(2026, 11, 25, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("as_of", "slot"),
    [
        (EIGHT, EIGHT),
        (EIGHT + timedelta(hours=23, minutes=59, seconds=59), EIGHT),
        (EIGHT - timedelta(microseconds=1), EIGHT - timedelta(days=1)),
        (datetime(2026, 3, 1, 7, tzinfo=UTC), datetime(2026, 2, 28, 8, tzinfo=UTC)),
        (datetime(2025, 1, 1, 9, tzinfo=UTC), datetime(2025, 1, 1, 8, tzinfo=UTC)),
    ],
)
def test_the_slot_comes_from_the_as_of(rows: Rows, as_of: datetime, slot: datetime) -> None:
    """Ruling: the Idempotency-Key is the schedule's slot, also for a manual run between two slots."""
    application = FakeApplication()
    rows.perform(analytics_sync, analytics_sync.Outside(application, FakeAlerts()), as_of)
    assert application.calls == [("api/cron/analytics-sync", f"analytics-sync/{slot:%Y-%m-%dT%H:%M:%SZ}")]
    (row,) = rows.all(tables.SYNC_SLOTS)
    assert (row.job, row.slot, row.attempts) == ("analytics-sync", slot, 1)
    assert row.succeeded_at
    assert row.answer == {"success": True}


def test_a_success_stops_repeats(rows: Rows) -> None:
    """Ruling: a success per (job, slot) stops repeats; the next slot is a new one."""
    application, alerts = FakeApplication(), FakeAlerts()
    outside = analytics_sync.Outside(application, alerts)
    for hours in (0, 1, 5):
        run = rows.perform(analytics_sync, outside, EIGHT + timedelta(hours=hours))
    assert len(application.calls) == 1
    assert run.counts == {"processed": 1, "skipped": 1}
    assert "has succeeded before" in run.notes[0]
    # Claimed by the first run alone; the look before the call is for tasks that come without a claim.
    assert [row.attempts for row in rows.all(tables.SYNC_SLOTS)] == [1]
    rows.perform(analytics_sync, outside, EIGHT + timedelta(days=1))
    assert len(application.calls) == 2


@pytest.mark.parametrize("error", [Outage("HTTP 500", service="x"), NoAnswer("no answer", service="x")])
def test_a_failure_is_tried_again_under_the_same_key(rows: Rows, error: Outage) -> None:
    """Ruling 3: the application does the work of a key once, so that another try is safe; one alert meanwhile."""
    application, alerts = FakeApplication(fail=[error, error]), FakeAlerts()
    outside = analytics_sync.Outside(application, alerts)
    for _ in range(2):
        with pytest.raises(type(error)):
            rows.perform(analytics_sync, outside, EIGHT)
    assert list(alerts.outages) == ["arcvest application"]
    (row,) = rows.all(tables.SYNC_SLOTS)
    assert (row.succeeded_at, row.outcome_unknown, row.last_error) == (None, False, str(error))
    run = rows.perform(analytics_sync, outside, EIGHT)
    assert len({key for _, key in application.calls}) == 1
    assert alerts.outages == {}
    (row,) = rows.all(tables.SYNC_SLOTS)
    assert (row.attempts, row.last_error) == (3, None)
    assert run.counts["sent"] == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"text": "a\x00"},
        {"text": "a" * 30_000},
        {"text": "ñ" * 15_000},
        {"text": "\ud83d"},
        {"number": math.nan},
        {"number": math.inf},
        {"odd": object()},
    ],
    ids=["null character", "long", "long in bytes", "half a character", "nan", "inf", "odd"],
)
def test_an_answer_that_cannot_be_kept_is_left_out(rows: Rows, answer: dict[str, Any]) -> None:
    """What the application says must not make a success fail."""
    application, alerts = FakeApplication(answer=answer), FakeAlerts()
    outside = analytics_sync.Outside(application, alerts)
    rows.perform(analytics_sync, outside, EIGHT)
    (row,) = rows.all(tables.SYNC_SLOTS)
    assert "left_out" in row.answer
