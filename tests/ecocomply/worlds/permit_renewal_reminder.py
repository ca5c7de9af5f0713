"""Documents on both sides of every mark, and one of another company."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, HOSTILE, OTHER, OTHER_SITE, SITE, add, name, people

PARAMS = {"company_id": None, "site_id": None, "reminder_days": [90, 30, 7]}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    for number, (days, company, more) in enumerate(
        (
            (91, COMPANY, {}),
            (90, COMPANY, {"permit_number": "EPR/1"}),
            (30, COMPANY, {}),
            (7, COMPANY, {}),
            (0, COMPANY, {}),
            (-1, COMPANY, {}),
            (5, COMPANY, {"status": "ARCHIVED"}),
            (31, OTHER, {}),
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
        add(connection, "documents", row | place | {"expiry_date": now.date() + timedelta(days=days)} | more)
