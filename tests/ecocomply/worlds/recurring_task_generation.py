"""Definitions of tasks that are due, were missed, begin, wait and are switched off."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, OTHER, OTHER_SITE, SITE, STAFF, add, name, people


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    own = (
        ("WEEKLY", -8, {"default_assignee_id": STAFF}),
        ("MONTHLY", 0, {"anchor_date": today - timedelta(days=400)}),
        ("ANNUAL", None, {}),
        ("QUARTERLY", 1, {}),
        ("DAILY", -3, {"is_active": False}),
        ("DAILY", -1, {"company_id": OTHER, "site_id": OTHER_SITE}),
    )
    for number, (frequency, days, more) in enumerate(own, start=1):
        row = {
            "id": name("recurring task", number), "company_id": COMPANY, "site_id": SITE, "title": f"Walk {number}",
            "frequency": frequency, "next_due_date": None if days is None else today + timedelta(days=days),
        }  # fmt: skip
        add(connection, "recurring_tasks", row | more)


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: a definition with its tasks."""
    return row["recurring_task_id"] if table == "tasks" else row["id"]
