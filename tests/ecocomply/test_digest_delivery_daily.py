"""The daily digests; the rules that both frequencies share have their tests in test_digest_delivery.py."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from include.ecocomply import digest_delivery_daily as job
from include.mail_sending import Outside
from include.run import EngineDatabase
from tests.ecocomply.rows import Rows
from tests.fakes.world import FakeAlerts, FakeMail

FIRST = datetime(2026, 11, 25, 6, 0, tzinfo=UTC)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company."""
    return Rows(database_of("ecocomply"))


def waiting(rows: Rows, user: UUID, subject: str, at: datetime) -> None:
    """Add a notification that waits."""
    rows.notification(user, subject=subject, created_at=at, scheduled_for=at)


@pytest.mark.parametrize(
    ("as_of", "told"),
    [
        (datetime(2026, 11, 24, 7, 0, tzinfo=UTC), ["old"]),
        (datetime(2026, 11, 25, 7, 0, tzinfo=UTC), ["new", "old"]),
        (datetime(2026, 11, 26, 7, 0, tzinfo=UTC), ["new", "old"]),
    ],
)
def test_what_was_there_by_then_is_told_however_old(rows: Rows, as_of: datetime, told: list[str]) -> None:
    """18.5, ruling: what is created up to as_of, the instant itself included; a run that was missed loses nothing."""
    ana, bea = rows.reader("ana", "DAILY_DIGEST"), rows.reader("bea", "WEEKLY_DIGEST")
    for user in (ana, bea):
        waiting(rows, user, "old", datetime(2026, 10, 1, tzinfo=UTC))
        waiting(rows, user, "new", datetime(2026, 11, 25, 7, 0, tzinfo=UTC))
    mail = FakeMail()
    run = rows.perform(job, Outside(mail, FakeAlerts()), as_of)
    (sent,) = mail.delivered
    assert sent.to == "ana@ecocomply.test"
    assert run.counts["processed"] == run.counts["sent"] == 1
    standing = sorted(
        row.subject for row in rows.all("notifications") if row.user_id == ana and row.status == "DELIVERED"
    )
    assert standing == told
    assert {row.status for row in rows.all("notifications") if row.user_id == bea} == {"PENDING"}


@pytest.mark.parametrize(
    ("as_of", "digests"),
    [
        # Twice a day, and the day after.
        (datetime(2026, 11, 25, 7, 0, tzinfo=UTC), 1),
        (datetime(2026, 11, 25, 23, 59, tzinfo=UTC), 1),
        (datetime(2026, 11, 26, 0, 0, tzinfo=UTC), 2),
    ],
)
def test_where_a_period_ends(rows: Rows, as_of: datetime, digests: int) -> None:
    """Unique per user, frequency and period: what comes in between waits for the next one."""
    ana = rows.reader("ana", "DAILY_DIGEST")
    mail = FakeMail()
    for subject, at in (("first", FIRST), ("second", FIRST + timedelta(minutes=30))):
        waiting(rows, ana, subject, at)
        rows.perform(job, Outside(mail, FakeAlerts()), FIRST if subject == "first" else as_of)
    assert len(mail.delivered) == digests
    assert sorted(row.status for row in rows.all("notifications")) == (
        ["DELIVERED", "PENDING"] if digests == 1 else ["DELIVERED", "DELIVERED"]
    )
