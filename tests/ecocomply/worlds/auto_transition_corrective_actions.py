"""Corrective actions that are done, not done, done by half, and past that phase."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import ADMIN, COMPANY, OTHER, OTHER_SITE, SITE, STRANGER, add, name, people

PARAMS = {"company_id": None}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all instants are relative to `now`."""
    people(connection)
    working = {"lifecycle_phase": "ACTION", "status": "IN_PROGRESS", "company_id": COMPANY, "site_id": SITE}
    theirs = {"company_id": OTHER, "site_id": OTHER_SITE, "created_by": STRANGER}
    actions = (
        ({"created_by": ADMIN}, ["COMPLETED", "COMPLETED"]),
        ({}, ["COMPLETED", "CANCELLED"]),
        ({"created_by": ADMIN}, ["COMPLETED", "PENDING"]),
        ({"created_by": ADMIN}, ["CANCELLED"]),
        ({"lifecycle_phase": "CLOSED", "status": "CLOSED"}, ["COMPLETED"]),
        (theirs, ["COMPLETED"]),
    )
    number = 0
    for action, (more, statuses) in enumerate(actions, start=1):
        row = {"id": name("action", action), "corrective_action_name": f"Spill {action}"}
        add(connection, "corrective_actions", working | row | more)
        for status in statuses:
            number += 1
            item = {
                "id": name("item", number),
                "corrective_action_id": name("action", action),
                "item_title": "Dig",
            }
            done = {"completed_at": now - timedelta(days=number)} if status == "COMPLETED" else {}
            add(connection, "corrective_action_items", item | {"status": status} | done)
