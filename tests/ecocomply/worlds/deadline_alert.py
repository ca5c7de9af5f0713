"""Deadlines on both sides of every mark, and of obligations that nobody is told of."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, OTHER, OTHER_SITE, SITE, STAFF, add, name, people

PARAMS = {"company_id": None, "site_id": None, "trigger_source": None}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    theirs = {"company_id": OTHER, "site_id": OTHER_SITE}
    own = (
        (8, "PENDING", {}),
        (6, "PENDING", {"assigned_to": STAFF}),
        (3, "PENDING", {}),
        (1, "DUE_SOON", {}),
        (0, "DUE_SOON", theirs),
        (-1, "DUE_SOON", {}),
        (-9, "PENDING", {}),
        (0, "COMPLETED", {}),
        (5, "PENDING", {"status": "NOT_APPLICABLE"}),
    )
    for number, (days, status, more) in enumerate(own, start=1):
        obligation = {
            "id": name("obligation", number), "company_id": COMPANY, "site_id": SITE, "summary": f"Duty {number}"
        }  # fmt: skip
        add(connection, "obligations", obligation | more)
        add(
            connection,
            "deadlines",
            {
                "id": name("deadline", number), "obligation_id": name("obligation", number), "status": status,
                "due_date": today + timedelta(days=days),
            },
        )  # fmt: skip


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: a deadline with its notifications."""
    return row["entity_id"] if table == "notifications" else row["id"]
