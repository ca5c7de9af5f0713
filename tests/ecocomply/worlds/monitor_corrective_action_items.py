"""Items on both sides of every day that people are told on."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, HOSTILE, OTHER, OTHER_SITE, SITE, STAFF, add, name, people

PARAMS = {"company_id": None, "batch_size": 2}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    for number, (company, site, status) in enumerate(
        [(COMPANY, SITE, "IN_PROGRESS"), (COMPANY, SITE, "CANCELLED"), (OTHER, OTHER_SITE, "OPEN")], start=1
    ):
        action = {"id": name("action", number), "company_id": company, "site_id": site, "status": status}
        add(connection, "corrective_actions", action | {"corrective_action_name": HOSTILE})
    # Few, since each that grows old is told to four people by up to three channels.
    items = (
        (1, 3, {"assigned_to": STAFF}),
        (1, 0, {}),
        (1, -8, {"assigned_to": STAFF, "status": "IN_PROGRESS"}),
        (1, -9, {"status": "COMPLETED"}),
        (2, -8, {"assigned_to": STAFF}),
        (3, -8, {}),
    )
    for number, (action, days, more) in enumerate(items, start=1):
        # The company is that of the action.
        item = {
            "id": name("item", number),
            "corrective_action_id": name("action", action),
            "item_title": "Seal it",
        }
        add(connection, "corrective_action_items", item | {"due_date": today + timedelta(days=days)} | more)
