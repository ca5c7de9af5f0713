"""Sites with something of every factor, with nothing wrong, put away, and another company's; some scored before."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, OTHER, OTHER_SITE, SITE, add, name, people

PARAMS = {"company_id": None, "site_id": None}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    quiet, closed = {"id": name("site", 3), "name": "Quiet"}, {"id": name("site", 4), "name": "Closed"}
    add(connection, "sites", {"company_id": COMPANY} | quiet)
    add(connection, "sites", {"company_id": COMPANY, "is_active": False} | closed)
    # Site, days overdue, how its deadline stands.
    rows = (
        (COMPANY, SITE, 45, {"status": "OVERDUE"}),
        (COMPANY, SITE, 7, {"status": "PENDING"}),
        (COMPANY, SITE, 20, {"status": "COMPLETED", "completed_at": now - timedelta(days=10)}),
        (OTHER, OTHER_SITE, 100, {"status": "OVERDUE"}),
        (COMPANY, SITE, 5, None),
    )
    for number, (company, site, days, deadline) in enumerate(rows, start=1):
        due, owner = today - timedelta(days=days), {"company_id": company, "site_id": site}
        obligation = {"id": name("obligation", number), "summary": f"Duty {number}", "deadline_date": due}
        add(connection, "obligations", owner | obligation)
        if deadline:
            row = {"id": name("deadline", number), "obligation_id": obligation["id"], "due_date": due}
            add(connection, "deadlines", owner | row | deadline)
    of_first = {"company_id": COMPANY, "site_id": SITE, "obligation_id": name("obligation", 1)}
    gap = {"id": name("gap", 1), "deadline_id": name("deadline", 1), "gap_type": "NO_EVIDENCE"}
    add(
        connection,
        "evidence_gaps",
        of_first | gap | {"severity": "CRITICAL", "detected_at": now - timedelta(1)},
    )
    for level in (1, 2):
        escalation = {
            "id": name("escalation", level),
            "entity_type": "DEADLINE",
            "entity_id": name("deadline", 1),
        }
        raised = {"escalation_level": level, "escalated_at": now - timedelta(days=3)}
        add(connection, "escalations", of_first | escalation | raised)
    clock = {
        "id": name("clock", 1),
        "entity_type": "PERMIT",
        "entity_id": name("permit", 1),
        "criticality": "RED",
    }
    about = {"company_id": COMPANY, "site_id": SITE, "clock_type": "PERMIT_EXPIRY", "target_date": today}
    add(connection, "compliance_clocks_universal", clock | about)
    nothing = dict.fromkeys(
        ("risk_score", "overdue_score", "evidence_gap_score", "escalation_score", "historical_score"), 0
    )
    # Scored a few days ago, and two of them today already, before something changed.
    for number, (company, site, days) in enumerate(
        ((COMPANY, SITE, 4), (COMPANY, SITE, 0), (OTHER, OTHER_SITE, 0), (OTHER, OTHER_SITE, 4)), start=1
    ):
        day = {
            "score_date": today - timedelta(days=days),
            "calculated_at": now - timedelta(days=days, hours=1),
        }
        row = {"id": name("score", number), "company_id": company, "site_id": site, "risk_band": "LOW"}
        add(connection, "risk_scores", nothing | row | day)


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: a site with its score."""
    return row.get("site_id") or row["id"]
