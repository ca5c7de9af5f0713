"""Consignment notes that pass, warn and fail; one that is checked already, one of others."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, HOSTILE, OTHER, OTHER_SITE, SITE, STAFF, add, name, people

PARAMS = {"company_id": None, "batch_size": 2}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    for number, days in ((1, 100), (2, -1)):
        add(
            connection,
            "contractors",
            {
                "id": name("contractor", number),
                "company_id": COMPANY,
                "name": f"Carrier {number}",
                "licence_number": f"CBDU{number}",
                "licence_expiry_date": today + timedelta(days=days),
                "licence_tier": "UPPER",
            },
        )
    add(connection, "waste_streams", {"id": name("stream", 1), "site_id": SITE, "name": "Oil"})
    rules = (
        ("CARRIER_LICENCE", None, "ERROR"),
        ("VOLUME_LIMIT", {"max_volume": 20, "unit": "TONNES"}, "ERROR"),
        ("STORAGE_DURATION", {"max_storage_days": 30}, "WARNING"),
        ("CUSTOM", {"expression": "quantity < 30.0", "error_message": HOSTILE}, "WARNING"),
        ("CUSTOM", None, "ERROR"),
    )
    for number, (kind, config, severity) in enumerate(rules, start=1):
        add(
            connection,
            "validation_rules",
            {
                "id": name("rule", number),
                "company_id": COMPANY,
                "rule_type": kind,
                "rule_config": config,
                "severity": severity,
            },
        )
    own = {"max_volume": 50, "unit": "TONNES"}
    add(
        connection,
        "validation_rules",
        {
            "id": name("rule", 6),
            "company_id": COMPANY,
            "waste_stream_id": name("stream", 1),
            "rule_type": "VOLUME_LIMIT",
            "rule_config": own,
        },
    )
    note = {
        "company_id": COMPANY, "site_id": SITE, "carrier_id": name("contractor", 1), "quantity": 20, "unit": "TONNES",
        "ewc_code": "130205*", "consignment_date": today - timedelta(days=2),
        "created_by": STAFF,
    }  # fmt: skip
    checked = {"pre_validation_status": "PASSED", "pre_validated_at": now - timedelta(days=1)}
    for number, more in enumerate(
        (
            {},
            {"carrier_id": name("contractor", 2), "quantity": 30, "consignment_number": HOSTILE},
            {
                "waste_stream_id": name("stream", 1),
                "quantity": 40,
                "consignment_date": today - timedelta(days=31),
                "created_by": None,
            },
            {"ewc_code": "13"} | checked,
            {"company_id": OTHER, "site_id": OTHER_SITE, "carrier_id": None, "created_by": None},
        ),
        start=1,
    ):
        add(connection, "consignment_notes", {"id": name("note", number)} | note | more)


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: a note with its checks and notifications."""
    return row["id"] if table == "consignment_notes" else row.get("entity_id", row["id"])
