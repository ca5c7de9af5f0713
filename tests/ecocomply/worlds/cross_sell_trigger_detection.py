"""Permits that speak of other modules, and some that do not, or were looked through before."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, MODULE, OTHER, OTHER_SITE, SITE, add, name, people

PARAMS = {"company_id": None, "document_id": None, "process_recent_only": True}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all instants are relative to `now`, and long enough before it for copies that are moved."""
    people(connection)
    water, power = name("module", 2), name("module", 3)
    add(
        connection,
        "modules",
        {
            "id": water,
            "module_code": "MODULE_2",
            "module_name": "Trade effluent",
            "cross_sell_keywords": ["sewer"],
        },
        {
            "id": power,
            "module_code": "MODULE_3",
            "module_name": "Power",
            "cross_sell_keywords": ["CHP", "stand-by"],
        },
    )
    has = {"id": name("activation", 1), "company_id": OTHER, "module_id": water}
    add(connection, "module_activations", has)
    earlier = now - timedelta(days=60)
    documents = (
        (SITE, "A CHP plant on stand by, and a sewer.", {}),
        (SITE, "The chp again", {"scanned_at": earlier - timedelta(days=1)}),
        (SITE, "Matchpoint", {}),
        (SITE, "A sewer", {"scanned_at": earlier + timedelta(days=1)}),
        (SITE, "A sewer", {"status": "SUPERSEDED"}),
        (OTHER_SITE, "A sewer", {}),
    )
    for number, (site, text, more) in enumerate(documents, start=1):
        row = {
            "id": name("document", number),
            "site_id": site,
            "module_id": MODULE,
            "title": f"Permit {number}",
        }
        owner = {"company_id": COMPANY if site == SITE else OTHER, "document_type": "PERMIT"}
        read = {"extraction_status": "COMPLETED", "extracted_text": text, "updated_at": earlier}
        add(connection, "documents", row | owner | read | more)
