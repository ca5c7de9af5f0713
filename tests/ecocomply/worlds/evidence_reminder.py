"""Obligations within a week, with and without evidence that counts."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, OTHER, OTHER_SITE, SITE, STAFF, add, name, people

PARAMS = {"company_id": None, "site_id": None}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    own = (
        (7, {"assigned_to": STAFF}, None),
        (8, {}, None),
        (2, {}, {}),
        (3, {}, {"expiry_date": today - timedelta(days=1)}),
        (-1, {"status": "IN_PROGRESS"}, {"is_archived": True}),
        (4, {"evidence_required": False}, None),
        (5, {"company_id": OTHER, "site_id": OTHER_SITE}, None),
    )
    for number, (days, more, evidence) in enumerate(own, start=1):
        key = name("obligation", number)
        obligation = {"id": key, "company_id": COMPANY, "site_id": SITE, "summary": f"Duty {number}"}
        add(connection, "obligations", obligation | {"deadline_date": today + timedelta(days=days)} | more)
        if evidence is not None:
            item = {"id": name("evidence", number), "company_id": COMPANY, "site_id": SITE}
            add(connection, "evidence_items", item | {"file_name": "stack.pdf"} | evidence)
            link = {"id": name("link", number), "obligation_id": key, "evidence_id": item["id"]}
            add(connection, "obligation_evidence_links", link)
