"""A dashboard that shows the clocks of yesterday: one group that has changed, one that is gone, one that is new."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, text

from tests.ecocomply.world import COMPANY, MODULE, OTHER, OTHER_SITE, SITE, add, name, people

PARAMS = {"refresh_mode": "CONCURRENT"}
DAYLESS = {"ecocomply_refresh_compliance_dashboard"}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    here = {"company_id": COMPANY, "site_id": SITE}
    theirs = {"company_id": OTHER, "site_id": OTHER_SITE}

    def clock(number: int, **values: object) -> None:
        given = {
            "entity_type": "OBLIGATION",
            "clock_type": "DEADLINE",
            "target_date": now.date() + timedelta(days=9),
        }
        ids = {"id": name("clock", number), "entity_id": name("obligation", number)}
        add(connection, "compliance_clocks_universal", given | ids | values)

    clock(1, **here, criticality="AMBER")
    clock(2, **here, module_id=MODULE)
    clock(3, **theirs, criticality="GREEN")
    connection.execute(text("REFRESH MATERIALIZED VIEW compliance_clock_dashboard"))
    clock(4, **here, status="OVERDUE", criticality="RED")
    clock(5, company_id=COMPANY)
    connection.execute(
        text("DELETE FROM compliance_clocks_universal WHERE id = :gone"), {"gone": name("clock", 2)}
    )
