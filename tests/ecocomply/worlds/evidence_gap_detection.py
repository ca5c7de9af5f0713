"""Deadlines ahead and passed, with gaps and without, and every state of their evidence."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, OTHER, OTHER_SITE, SITE, STAFF, add, name, people

PARAMS = {"company_id": None, "look_ahead_days": 30}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    approved = {"validation_status": "APPROVED"}
    own = (
        (5, {"assigned_to": STAFF}, None, None),
        (20, {}, None, None),
        (25, {}, {}, None),
        (9, {}, approved, None),
        (31, {}, None, None),
        (6, {}, {"expiry_date": today - timedelta(days=1)} | approved, None),
        (10, {"company_id": OTHER, "site_id": OTHER_SITE}, None, None),
        (4, {}, None, "MEDIUM"),
        (-3, {}, {}, "LOW"),
        (12, {}, approved, "HIGH"),
        (13, {"status": "NOT_APPLICABLE"}, None, "HIGH"),
    )
    for number, (days, more, evidence, gap) in enumerate(own, start=1):
        key = name("obligation", number)
        obligation = {"id": key, "company_id": COMPANY, "site_id": SITE, "summary": f"Duty {number}"} | more
        add(connection, "obligations", obligation)
        deadline = {"id": name("deadline", number), "obligation_id": key}
        add(connection, "deadlines", deadline | {"due_date": today + timedelta(days=days)})
        if evidence is not None:
            item = {"id": name("evidence", number), "company_id": COMPANY, "site_id": SITE}
            add(connection, "evidence_items", item | {"file_name": "stack.pdf"} | evidence)
            link = {"id": name("link", number), "obligation_id": key, "evidence_id": item["id"]}
            add(connection, "obligation_evidence_links", link)
        if gap is not None:
            row = {"id": name("gap", number), "obligation_id": key, "deadline_id": deadline["id"]}
            found = {"gap_type": "NO_EVIDENCE", "severity": gap, "detected_at": now - timedelta(days=30)}
            add(connection, "evidence_gaps", row | found)


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: a gap with its notifications."""
    return row["entity_id"] if table == "notifications" else row["id"]
