"""Obligations in every state that the schedule leaves or changes.

None is due often: ten copies of the deadlines that are made must stay fewer than a preview shows.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, OTHER, OTHER_SITE, SITE, add, name, people

PARAMS = {"company_id": None, "site_id": None, "force_recalculate": False}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    theirs = {"company_id": OTHER, "site_id": OTHER_SITE}
    own = (
        ("MONTHLY", -95, "PENDING", {}),
        ("QUARTERLY", -89, "PENDING", {}),
        ("ANNUAL", -368, "IN_PROGRESS", {}),
        ("ANNUAL", -200, "COMPLETED", {}),
        ("QUARTERLY", -100, "OVERDUE", {}),
        ("ONE_TIME", 40, "PENDING", {}),
        ("ONE_TIME", -9, "COMPLETED", {"deadline_date": today - timedelta(days=9)}),
        ("MONTHLY", -40, "NOT_APPLICABLE", {}),
        ("MONTHLY", None, "PENDING", {}),
        ("ANNUAL", -360, "PENDING", theirs),
        (None, None, "PENDING", {"deadline_date": today + timedelta(days=5)}),
        (None, None, "COMPLETED", {"deadline_date": today - timedelta(days=5)}),
    )
    for number, (frequency, base, status, more) in enumerate(own, start=1):
        row = {
            "id": name("obligation", number), "company_id": COMPANY, "site_id": SITE, "summary": f"Duty {number}",
            "frequency": frequency, "status": status, "created_at": now - timedelta(days=60),
            "base_date": None if base is None else today + timedelta(days=base),
        }  # fmt: skip
        add(connection, "obligations", row | more)
    for number in (2, 5):
        add(
            connection,
            "schedules",
            {
                "id": name("schedule", number), "obligation_id": name("obligation", number), "frequency": "QUARTERLY",
                "base_date": today - timedelta(days=89), "status": "ACTIVE" if number == 2 else "PAUSED",
            },
        )  # fmt: skip
    add(
        connection,
        "schedules",
        {
            "id": name("schedule", 12), "obligation_id": name("obligation", 12), "frequency": "ONE_TIME",
            "next_due_date": today - timedelta(days=5),
        },
    )  # fmt: skip
    for number, days in ((2, 2), (5, -8)):
        add(
            connection,
            "deadlines",
            {
                "id": name("deadline", number), "obligation_id": name("obligation", number),
                "due_date": today + timedelta(days=days), "status": "PENDING" if days > 0 else "COMPLETED",
                "completed_at": None if days > 0 else now - timedelta(days=9),
            },
        )  # fmt: skip


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: an obligation with its schedule and its deadlines."""
    return row["id"] if table == "obligations" else row.get("obligation_id", row["id"])
