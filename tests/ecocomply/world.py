"""The smallest EcoComply that all jobs share: two companies with sites and people; each job's rows are its own world's.

A job's world, `tests/ecocomply/worlds/<job>.py`, has `seed`, and whatever of the names below is otherwise for it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert

from include.ecocomply.tables.base import METADATA
from tests.fakes.world import FakeAlerts, FakeLab, FakeMail, FakeStorage, World

SETTINGS: Mapping[str, str | None] = {
    "ADMIN_ALERT_EMAIL": "ops@ecocomply.test",
    "APP_URL": "https://app.ecocomply.test",
    "PUBLIC_URL": "https://almanac.ecocomply.test/ecocomply",
}
PARAMS: Mapping[str, Any] = {}
BOOKKEEPING: Mapping[str, set[str]] = {}
"""Columns that count attempts, and so differ after a repeat."""

DAYLESS: set[str] = set()
"""DAGs that do the same whatever the day: they work on what waits."""

NAMES = {"email"}
"""Texts by which rows are known outside: copies of a row differ in them."""

HOSTILE = '<a href="https://evil.test">Reset</a> & Co'


def name(kind: str, number: int) -> uuid.UUID:
    """Return a stable id, so that two seeded databases hold the same rows."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"ecocomply/{kind}/{number}")


COMPANY, OTHER = name("company", 1), name("company", 2)
SITE, OTHER_SITE = name("site", 1), name("site", 2)
OWNER, ADMIN, MANAGER, STAFF, STRANGER = (name("user", n) for n in range(1, 6))
MODULE = name("module", 1)


def add(connection: Connection, table: str, *rows: Mapping[str, Any]) -> None:
    """Insert rows that need not have the same columns; what one leaves out gets its default."""
    for row in rows:
        connection.execute(insert(METADATA.tables[table]), [dict(row)])


def people(connection: Connection) -> None:
    """Insert two companies, a site of each, a module and people.

    COMPANY has an OWNER, an ADMIN, a MANAGER (assigned to SITE, with a phone) and STAFF; STRANGER is OTHER's OWNER.
    """
    add(connection, "modules", {"id": MODULE, "module_code": "MODULE_1", "module_name": "Permits"})
    add(connection, "companies", {"id": COMPANY, "name": HOSTILE}, {"id": OTHER, "name": "Other"})
    add(
        connection,
        "sites",
        {"id": SITE, "company_id": COMPANY, "name": "Leeds & Ñandú"},
        {"id": OTHER_SITE, "company_id": OTHER, "name": "Theirs"},
    )
    for user, role, company in (
        (OWNER, "OWNER", COMPANY),
        (ADMIN, "ADMIN", COMPANY),
        (MANAGER, "MANAGER", COMPANY),
        (STAFF, "STAFF", COMPANY),
        (STRANGER, "OWNER", OTHER),
    ):
        phone = "+447700900123" if user == MANAGER else None
        email = f"{role.lower()}-{company.hex[:4]}@ecocomply.test"
        add(
            connection,
            "users",
            {"id": user, "company_id": company, "email": email, "full_name": role, "phone": phone},
        )
        add(connection, "user_roles", {"id": uuid.uuid5(user, "role"), "user_id": user, "role": role})
    add(
        connection,
        "user_site_assignments",
        {"id": name("assignment", 1), "user_id": MANAGER, "site_id": SITE},
    )


def seed(connection: Connection, now: datetime) -> None:
    """Insert what every job's world begins with."""
    people(connection)


def world(now: datetime) -> World:
    """Return the world outside."""
    return World(FakeMail(), FakeAlerts(), FakeLab([]), FakeStorage())


def grow(around: World, copies: int) -> None:
    """Nothing outside knows of rows."""


def outside(job: Any, around: World) -> Any:
    """Return what a job that works in its database alone is handed."""
    return job.Outside()


def unit(table: str, row: Mapping[str, Any]) -> Any:
    """Return what stands or falls together: here each row by itself."""
    return row["id"]
