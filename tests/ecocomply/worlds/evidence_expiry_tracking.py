"""Evidence on both sides of every mark."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, OTHER, OTHER_SITE, SITE, STAFF, add, name, people


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    own = (
        (31, {}),
        (30, {"uploaded_by": STAFF}),
        (9, {}),
        (1, {}),
        (0, {"company_id": OTHER, "site_id": OTHER_SITE}),
        (-1, {}),
        (5, {"deleted_at": now - timedelta(days=9)}),
    )
    for number, (days, more) in enumerate(own, start=1):
        row = {
            "id": name("evidence", number),
            "company_id": COMPANY,
            "site_id": SITE,
            "file_name": "stack.pdf",
        }
        add(connection, "evidence_items", row | {"expiry_date": today + timedelta(days=days)} | more)
    obligation = {
        "id": name("obligation", 1),
        "company_id": COMPANY,
        "site_id": SITE,
        "summary": "Stack test",
    }
    add(connection, "obligations", obligation | {"assigned_to": STAFF})
    link = {"id": name("link", 1), "obligation_id": obligation["id"], "evidence_id": name("evidence", 3)}
    add(connection, "obligation_evidence_links", link)
