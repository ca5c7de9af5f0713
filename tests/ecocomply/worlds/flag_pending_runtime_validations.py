"""Entries that wait too long, not long enough, or not at all; and another company's."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, OTHER, OTHER_SITE, SITE, add, name, people

PARAMS = {"company_id": None, "pending_threshold_hours": 24}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all instants are relative to `now`."""
    people(connection)
    registration = {"title": "MCPD", "document_type": "REGISTRATION"}
    mine, theirs = {"company_id": COMPANY, "site_id": SITE}, {"company_id": OTHER, "site_id": OTHER_SITE}
    for number, where in enumerate((mine, theirs), start=1):
        document = {"id": name("document", number)}
        add(connection, "documents", registration | where | document)
        for one in (number, number + 2):
            generator = {"id": name("generator", one), "generator_identifier": f"GEN-{one} & Co"}
            add(connection, "generators", where | generator | {"document_id": document["id"]})
    # Generator, hours since it was written down, what else it is.
    for number, (generator, hours, more) in enumerate(
        (
            (1, 25, {}),
            (1, 90, {}),
            (1, 23, {}),
            (1, 90, {"data_source": "CSV"}),
            (2, 30, {}),
            (3, 90, {"validation_status": "APPROVED"}),
            (3, 60, {}),
        ),
        start=1,
    ):
        where = theirs if generator == 2 else mine
        written = now - timedelta(hours=hours)
        entry = {"id": name("run", number), "generator_id": name("generator", generator), "runtime_hours": 2}
        days = {"run_date": written.date(), "created_at": written}
        add(connection, "runtime_monitoring", where | entry | days | more)
