"""Deadlines on both sides of today, with and without evidence; SLA targets on both sides; another company's."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, HOSTILE, OTHER, OTHER_SITE, SITE, STAFF, add, name, people

PARAMS = {"company_id": None, "batch_size": 2}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    # Of each: days since the due date, since the SLA target, and what else there is.
    for number, (due, target, status, company, more) in enumerate(
        (
            (1, None, "PENDING", COMPANY, {}),
            (2, 5, "OVERDUE", OTHER, {}),
            (0, 1, "DUE_SOON", OTHER, {}),
            (-9, 0, "PENDING", OTHER, {}),
            (3, 9, "COMPLETED", COMPANY, {}),
            (4, None, "OVERDUE", OTHER, {"breach_notification_sent": True, "breach_detected_at": now}),
        ),
        start=1,
    ):
        obligation = {
            "id": name("obligation", number),
            "company_id": company,
            "summary": HOSTILE,
            "assigned_to": STAFF,
        }
        add(connection, "obligations", obligation | {"site_id": SITE if company == COMPANY else OTHER_SITE})
        row = {"id": name("deadline", number), "obligation_id": obligation["id"], "status": status}
        dates = {
            "due_date": today - timedelta(days=due),
            "sla_target_date": None if target is None else today - timedelta(days=target),
        }
        add(connection, "deadlines", row | dates | more)
    add(
        connection,
        "evidence_items",
        {
            "id": name("evidence", 1), "company_id": OTHER, "site_id": OTHER_SITE, "file_name": "lab.pdf",
            "validation_status": "APPROVED",
        },
    )  # fmt: skip
    add(
        connection,
        "obligation_evidence_links",
        {"id": name("link", 1), "obligation_id": name("obligation", 2), "evidence_id": name("evidence", 1)},
    )


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: a deadline with its notifications."""
    return row["entity_id"] if table == "notifications" else row["id"]
