"""Runs of generators under, near and over their limits; of an old year; not approved; and another company's."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, OTHER, OTHER_SITE, SITE, add, name, people

PARAMS = {"company_id": None, "generator_id": None, "batch_size": 3}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    add(
        connection,
        "modules",
        {"id": name("module", 3), "module_code": "MODULE_3", "module_name": "Generators"},
    )
    registration = {"title": "MCPD", "document_type": "REGISTRATION"}
    mine = {"company_id": COMPANY, "site_id": SITE, "document_id": name("document", 1)}
    theirs = {"company_id": OTHER, "site_id": OTHER_SITE, "document_id": name("document", 2)}
    for number, where in enumerate((mine, theirs), start=1):
        owner = {key: where[key] for key in ("company_id", "site_id")}
        add(connection, "documents", registration | owner | {"id": name("document", number)})
    since = {"anniversary_date": today - timedelta(days=400)}
    approved, pending = {"validation_status": "APPROVED"}, {"validation_status": "PENDING"}
    seen = approved | {"exceedance_checked_at": now - timedelta(days=9)}
    rows = (
        (mine | since | {"annual_run_hour_limit": 500}, ((1, approved), (3, approved))),
        (mine | since | {"annual_run_hour_limit": 11}, ((1, approved), (3, pending))),
        (mine | since | {"annual_run_hour_limit": 10}, ((1, approved),)),
        (mine | since | {"annual_run_hour_limit": None, "monthly_run_hour_limit": 5}, ((0, approved),)),
        (mine | since | {"annual_run_hour_limit": 50}, ((900, approved), (1, seen))),
        (theirs | since | {"annual_run_hour_limit": 10}, ((2, approved),)),
    )
    for number, (row, runs) in enumerate(rows, start=1):
        generator = {"id": name("generator", number), "generator_identifier": f"GEN-{number} & Co"}
        add(connection, "generators", row | generator)
        for place, (days, state) in enumerate(runs):
            entry = {
                "id": name("run", 10 * number + place),
                "generator_id": generator["id"],
                "runtime_hours": 10,
            }
            where = {"company_id": row["company_id"], "site_id": row["site_id"]}
            add(
                connection,
                "runtime_monitoring",
                entry | where | state | {"run_date": today - timedelta(days=days)},
            )
    # Two clocks of windows that ended yesterday, and one that ends today.
    for number, days in ((1, 1), (2, 1), (3, 0)):
        end = (today - timedelta(days=days)).isoformat()
        clock = {
            "id": name("clock", number),
            "entity_id": name("generator", number),
            "entity_type": "generator",
        }
        about = {"clock_type": "MONTHLY_LIMIT_EXCEEDED", "metadata": {"window_end": end, "run_date": end}}
        where = {"company_id": COMPANY, "site_id": SITE, "target_date": today - timedelta(days=9)}
        add(connection, "compliance_clocks_universal", clock | about | where)


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: a generator with its runs, its clocks and who is told."""
    return row.get("generator_id") or row.get("entity_id") or row["id"]
