"""The demo has a row for every rule, made by the functions that applications call."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from include.leadmetrics import demo, tables
from tests.leadmetrics.rows import Rows


def seed(rows: Rows, now: datetime) -> None:
    """Put the demo's day into the database."""
    with rows.db.engine.begin() as connection:
        demo.seed(connection, now)


def test_every_branch_has_a_row(rows: Rows) -> None:
    """A run over it sends, skips and fails, takes a lost claim back, and leaves what is not due."""
    seed(rows, datetime.now(UTC))
    run = rows.perform()
    for count in ("processed", "enqueued", "sent", "skipped", "failed", "taken_back"):
        assert run.counts[count] > 0, count
    slugs = {row.template_slug for row in rows.outbox()}
    assert slugs == {"signup-reminder-early", "signup-reminder-late", "signup-alert-internal"}
    assert "pending" in {row.status for row in rows.all(tables.SCHEDULED_TASK)}


def test_again_at_once_and_later(rows: Rows) -> None:
    """The same moment adds nothing; a later demo brings registrations of its own, so that it has something to do."""
    now = datetime.now(UTC)
    seed(rows, now)
    tasks = len(rows.all(tables.SCHEDULED_TASK))
    rows.perform()
    seed(rows, now)
    assert len(rows.all(tables.SCHEDULED_TASK)) == tasks
    seed(rows, now + timedelta(minutes=1))
    assert rows.perform().counts["sent"] > 0


def test_tasks_are_as_old_as_their_registrations(rows: Rows) -> None:
    """A reminder of a registration that began 90 minutes ago was due half an hour ago."""
    now = datetime.now(UTC)
    seed(rows, now)
    task = next(
        row
        for row in rows.all(tables.SCHEDULED_TASK)
        if row.taskType == "signup.reminder.early" and row.payload["sessionId"].endswith("-1")
    )
    assert abs(task.scheduledAt - (now - timedelta(minutes=30))) < timedelta(minutes=1)
