"""Deadlines on both sides of every level, an obligation without any, and escalations that are over."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, HOSTILE, MANAGER, OTHER, OTHER_SITE, SITE, STAFF, add, name, people

PARAMS = {"company_id": None, "obligation_category": None, "batch_size": 2}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    add(
        connection,
        "escalation_workflows",
        {
            "id": name("workflow", 1), "company_id": COMPANY, "obligation_category": "REPORTING", "level_1_days": 3,
            "level_3_days": 5, "level_1_recipients": [STAFF, name("user", 99)], "level_3_recipients": [MANAGER],
        },
    )  # fmt: skip
    for number, (days, status, category, company) in enumerate(
        (
            (2, "OVERDUE", "REPORTING", COMPANY),
            (3, "OVERDUE", "REPORTING", COMPANY),
            (6, "OVERDUE", "MONITORING", COMPANY),
            (7, "OVERDUE", "MONITORING", COMPANY),
            (40, "OVERDUE", None, COMPANY),
            (9, "COMPLETED", None, COMPANY),
            (-3, "PENDING", None, COMPANY),
            (14, "OVERDUE", None, OTHER),
        ),
        start=1,
    ):
        site, due = SITE if company == COMPANY else OTHER_SITE, today - timedelta(days=days)
        add(
            connection,
            "obligations",
            {
                "id": name("obligation", number), "company_id": company, "site_id": site, "summary": HOSTILE,
                "category": category, "status": status, "deadline_date": due,
            },
        )  # fmt: skip
        # The fourth has none, and is escalated by itself.
        if number != 4:
            add(
                connection,
                "deadlines",
                {
                    "id": name("deadline", number), "obligation_id": name("obligation", number), "due_date": due,
                    "status": status,
                },
            )  # fmt: skip
    for number, (entity, level, days) in enumerate(((5, 1, 30), (6, 1, 3), (7, 1, 4), (7, 2, 3)), start=1):
        row = {
            "id": name("escalation", number),
            "company_id": COMPANY,
            "obligation_id": name("obligation", entity),
        }
        at = {"escalation_level": level, "escalated_at": now - timedelta(days=days)}
        entity_of = {"entity_type": "DEADLINE", "entity_id": name("deadline", entity)}
        add(connection, "escalations", row | at | entity_of)


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: what is escalated, with its notifications."""
    return row["entity_id"] if table in ("notifications", "escalations") else row["id"]
