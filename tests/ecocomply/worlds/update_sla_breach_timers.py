"""Breaches on both sides of every threshold, one that is completed, and one of another company."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, HOSTILE, OTHER, OTHER_SITE, SITE, STAFF, add, name, people

PARAMS = {"company_id": None, "batch_size": 2}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all hours are before `now`."""
    people(connection)
    for number, (hours, status, company, assigned) in enumerate(
        (
            (11, "OVERDUE", COMPANY, STAFF),
            (12, "PENDING", COMPANY, None),
            (24, "OVERDUE", COMPANY, STAFF),
            (30, "COMPLETED", COMPANY, STAFF),
            (48, "DUE_SOON", OTHER, None),
        ),
        start=1,
    ):
        row = {
            "id": name("obligation", number),
            "company_id": company,
            "summary": HOSTILE,
            "assigned_to": assigned,
        }
        add(connection, "obligations", row | {"site_id": SITE if company == COMPANY else OTHER_SITE})
        breached = now - timedelta(hours=hours)
        add(
            connection,
            "deadlines",
            {
                "id": name("deadline", number), "obligation_id": name("obligation", number), "status": status,
                "due_date": now.date() + timedelta(days=3), "sla_target_date": breached.date() - timedelta(days=1),
                "sla_breached_at": breached, "sla_breach_duration_hours": 0,
            },
        )  # fmt: skip


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: a deadline with its notifications."""
    return row["entity_id"] if table == "notifications" else row["id"]
