"""Workflows under review on both sides of the deadline and of a week after it, and one of another company."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, HOSTILE, OTHER, OTHER_SITE, SITE, STAFF, add, name, people

PARAMS = {"company_id": None}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    for number, (days, company, more) in enumerate(
        (
            (1, COMPANY, {"workflow_notes": HOSTILE}),
            (7, COMPANY, {}),
            (8, COMPANY, {}),
            (0, COMPANY, {}),
            (9, COMPANY, {"status": "APPROVED"}),
            (9, COMPANY, {"regulator_response_date": today}),
            (40, OTHER, {}),
        ),
        start=1,
    ):
        document = {
            "id": name("document", number),
            "company_id": company,
            "title": HOSTILE,
            "document_type": "PERMIT",
        }
        place = {"site_id": SITE if company == COMPANY else OTHER_SITE}
        add(connection, "documents", document | place | {"assigned_to": STAFF if number % 2 else None})
        workflow = {
            "id": name("workflow", number), "document_id": document["id"], "workflow_type": "VARIATION",
            "status": "UNDER_REVIEW", "regulator_response_deadline": today - timedelta(days=days),
        }  # fmt: skip
        add(connection, "permit_workflows", workflow | more)


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: a workflow with its notifications."""
    return row["entity_id"] if table == "notifications" else row["id"]
