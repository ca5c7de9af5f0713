"""Parameters of every frequency: due, late by every mark, sampled, put away, and another company's."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, OTHER, OTHER_SITE, SITE, add, name, people

PARAMS = {"company_id": None, "site_id": None, "parameter_id": None, "force_generate": False}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    consent = {"title": "Consent & Co", "document_type": "CONSENT", "company_id": COMPANY, "site_id": SITE}
    add(
        connection,
        "documents",
        consent | {"id": name("document", 1)},
        consent | {"id": name("document", 2), "status": "EXPIRED"},
        consent | {"id": name("document", 3), "company_id": OTHER, "site_id": OTHER_SITE},
    )
    parameter = {
        "company_id": COMPANY,
        "site_id": SITE,
        "document_id": name("document", 1),
        "parameter_type": "pH & COD",
        "created_at": now - timedelta(days=400),
    }
    rows = (
        {"sampling_frequency": "DAILY"},
        {"sampling_frequency": "WEEKLY", "sampling_weekday": 3},
        {"sampling_frequency": "MONTHLY"},
        {"sampling_frequency": "QUARTERLY"},
        {"sampling_frequency": "ANNUAL"},
        {"sampling_frequency": "WEEKLY", "is_active": False},
        {"sampling_frequency": "WEEKLY", "document_id": name("document", 2)},
        {
            "sampling_frequency": "WEEKLY",
            "document_id": name("document", 3),
            "company_id": OTHER,
            "site_id": OTHER_SITE,
        },
    )
    for number, more in enumerate(rows, start=1):
        add(connection, "parameters", parameter | {"id": name("parameter", number)} | more)
    # Days since the last sample.
    for number, days in ((1, 1), (2, 9), (3, 40), (5, 365)):
        sample = {"id": name("sample", number), "parameter_id": name("parameter", number)}
        add(
            connection,
            "lab_results",
            sample | {"company_id": COMPANY, "sample_date": today - timedelta(days=days)},
        )


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: a parameter with its reminders and its audit entry."""
    return row.get("entity_id") or row["id"]
