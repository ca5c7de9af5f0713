"""Two consultants of one client, whose figures have changed; assignments that end, and one that has ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, OTHER, SITE, STRANGER, add, name, people

PARAMS = {"consultant_id": None, "sync_type": "FULL"}
FIRST, SECOND, GONE = name("user", 11), name("user", 12), name("company", 3)


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    add(connection, "companies", {"id": GONE, "name": "Gone", "deleted_at": now - timedelta(days=30)})
    for number, user in enumerate((FIRST, SECOND), start=11):
        person = {"id": user, "company_id": OTHER, "email": f"{number}@ecocomply.test"}
        add(connection, "users", person)
        add(connection, "user_roles", {"id": name("role", number), "user_id": user, "role": "CONSULTANT"})
    assigned = ((FIRST, COMPANY), (SECOND, COMPANY), (FIRST, GONE), (STRANGER, COMPANY), (SECOND, OTHER))
    for number, (user, client) in enumerate(assigned, start=1):
        row = {"id": name("client", number), "consultant_id": user, "company_id": client}
        ended = {"status": "INACTIVE"} if client == OTHER else {}
        add(connection, "consultant_client_assignments", row | ended)
    for number, (user, client) in enumerate(((FIRST, COMPANY), (SECOND, COMPANY), (SECOND, OTHER)), start=1):
        row = {
            "id": name("dashboard", number),
            "consultant_id": user,
            "company_id": client,
            "overdue_count": 9,
        }
        add(connection, "consultant_dashboard", row | {"synced_at": now - timedelta(days=60)})
    deadlines = (
        (-95, {"status": "COMPLETED"}),
        (-9, {"status": "COMPLETED", "completed_at": now - timedelta(days=20)}),
        (-5, {"status": "COMPLETED", "completed_at": now - timedelta(days=1)}),
        (-1, {}),
        (5, {}),
    )
    obligation = {
        "id": name("obligation", 1),
        "site_id": SITE,
        "company_id": COMPANY,
        "summary": "Stack test",
    }
    add(connection, "obligations", obligation)
    for number, (days, more) in enumerate(deadlines, start=1):
        due = {"id": name("deadline", number), "obligation_id": name("obligation", 1)}
        add(connection, "deadlines", due | {"due_date": today + timedelta(days=days)} | more)
    gap = {"id": name("gap", 1), "obligation_id": name("obligation", 1), "deadline_id": name("deadline", 4)}
    found = {"gap_type": "NO_EVIDENCE", "severity": "HIGH", "detected_at": now - timedelta(days=1)}
    add(connection, "evidence_gaps", gap | found)
    log = {
        "id": name("log", 1),
        "company_id": COMPANY,
        "action_type": "EVIDENCE_LINKED",
        "entity_type": "EVIDENCE",
    }
    add(connection, "audit_logs", log | {"created_at": now - timedelta(days=1)})


def unit(table: str, row: Mapping[str, Any]) -> Any:
    """Return what stands or falls together: a consultant's dashboard."""
    return row["consultant_id"] if table == "consultant_dashboard" else row["id"]
