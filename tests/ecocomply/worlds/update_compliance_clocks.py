"""Clocks on both sides of every mark."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, MODULE, OTHER, OTHER_SITE, SITE, STAFF, add, name, people

PARAMS = {"company_id": None, "site_id": None, "module_id": None, "batch_size": 2}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    clock = {"entity_type": "OBLIGATION", "clock_type": "DEADLINE", "company_id": COMPANY, "site_id": SITE}
    ended = {"status": "COMPLETED", "days_remaining": -9, "criticality": "GREEN"}
    right = {"days_remaining": 200, "criticality": "GREEN"}
    own = (
        (-1, {"assigned_to": STAFF}),
        (7, {"reminders_sent": [90, 30]}),
        (8, {"module_id": MODULE}),
        (30, {}),
        (31, {"reminders_sent": [90]}),
        (-9, ended),
        (200, right),
        (60, {"company_id": OTHER, "site_id": OTHER_SITE}),
    )
    for number, (days, more) in enumerate(own, start=1):
        row = {"id": name("clock", number), "entity_id": name("obligation", number)}
        add(
            connection,
            "compliance_clocks_universal",
            clock | row | {"target_date": today + timedelta(days=days)} | more,
        )


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: a clock with its notifications."""
    return row["entity_id"] if table == "notifications" else row["id"]
