"""Generators under, at and over their limits, without one, put away, and another company's."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, OTHER, OTHER_SITE, SITE, add, name, people

PARAMS = {"company_id": None, "generator_id": None, "check_monthly": True, "check_annual": True}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    registration = {"title": "MCPD", "document_type": "REGISTRATION"}
    mine = {"company_id": COMPANY, "site_id": SITE, "document_id": name("document", 1)}
    theirs = {"company_id": OTHER, "site_id": OTHER_SITE, "document_id": name("document", 2)}
    for number, where in enumerate((mine, theirs), start=1):
        owner = {key: where[key] for key in ("company_id", "site_id")}
        add(connection, "documents", registration | owner | {"id": name("document", number)})
    rows = (
        mine | {"annual_run_hour_limit": 500, "anniversary_date": today - timedelta(days=400)},
        mine | {"annual_run_hour_limit": 100, "anniversary_date": today - timedelta(days=700)},
        mine | {"annual_run_hour_limit": 5000, "monthly_run_hour_limit": 5},
        mine | {"monthly_run_hour_limit": -1},
        mine | {"annual_run_hour_limit": 1, "is_active": False},
        theirs | {"annual_run_hour_limit": 95, "anniversary_date": today - timedelta(days=400)},
        mine | {"annual_run_hour_limit": 500},
    )
    for number, row in enumerate(rows, start=1):
        # Days ago, hours.
        generator = name("generator", number)
        add(connection, "generators", row | {"id": generator, "generator_identifier": f"GEN-{number} & Co"})
        for place, (days, hours) in enumerate(((0, 40), (1, 40), (2, 10), (500, 400))):
            if number < len(rows):
                hours_of = {"id": name("hours", 10 * number + place), "company_id": row["company_id"]}
                day = {"recording_date": today - timedelta(days=days), "hours_recorded": hours}
                add(connection, "run_hour_records", hours_of | day | {"generator_id": generator})


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: a generator with its alerts."""
    return row.get("entity_id") or row["id"]
