"""Permits on both sides of the notice, with and without a renewal, and one of another company."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, HOSTILE, OTHER, OTHER_SITE, SITE, STAFF, add, name, people

PARAMS = {"company_id": None, "advance_notice_days": 90}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    for number, (days, company, more) in enumerate(
        (
            (90, COMPANY, {"assigned_to": STAFF}),
            (91, COMPANY, {}),
            (0, COMPANY, {"document_type": "LICENCE"}),
            (-1, COMPANY, {}),
            (20, COMPANY, {"status": "SUPERSEDED"}),
            (40, COMPANY, {}),
            (60, OTHER, {}),
        ),
        start=1,
    ):
        row = {
            "id": name("document", number),
            "company_id": company,
            "title": HOSTILE,
            "document_type": "PERMIT",
        }
        place = {"site_id": SITE if company == COMPANY else OTHER_SITE}
        add(connection, "documents", row | place | {"expiry_date": today + timedelta(days=days)} | more)
    renewal = {"id": name("workflow", 1), "document_id": name("document", 6), "workflow_type": "RENEWAL"}
    ended = {"status": "COMPLETED", "expiry_date": today + timedelta(days=40)}
    add(connection, "permit_workflows", renewal | ended)
