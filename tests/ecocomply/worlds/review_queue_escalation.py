"""Items on both sides of every level, one that was escalated too lately, one reviewed, one of another company."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, HOSTILE, OTHER, OTHER_SITE, SITE, add, name, people

PARAMS = {"company_id": None}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all hours are before `now`."""
    people(connection)
    for number, (company, site) in enumerate(((COMPANY, SITE), (OTHER, OTHER_SITE)), start=1):
        document = {
            "id": name("document", number),
            "site_id": site,
            "title": HOSTILE,
            "document_type": "PERMIT",
        }
        add(connection, "documents", document | {"company_id": company})
    for number, (hours, more) in enumerate(
        (
            (47, {}),
            (48, {}),
            (97, {}),
            (170, {"hallucination_risk": True}),
            (25, {"hallucination_risk": True}),
            (99, {"escalation_level": 1, "escalated_at": now - timedelta(hours=5)}),
            (99, {"review_status": "CONFIRMED"}),
            (500, {"document_id": name("document", 2)}),
        ),
        start=1,
    ):
        # Each of a kind of its own: a document has one of a kind that waits.
        kinds = (
            "SUBJECTIVE",
            "NO_MATCH",
            "DATE_FAILURE",
            "DUPLICATE",
            "OCR_QUALITY",
            "CONFLICT",
            "LOW_CONFIDENCE",
        )
        row = {
            "id": name("review", number), "document_id": name("document", 1), "review_type": kinds[number % 7],
            "created_at": now - timedelta(hours=hours),
        }  # fmt: skip
        add(connection, "review_queue_items", row | more)


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: an item with its history and its notifications."""
    names = {"notifications": "entity_id", "review_queue_escalation_history": "review_queue_item_id"}
    return row[names.get(table, "id")]
