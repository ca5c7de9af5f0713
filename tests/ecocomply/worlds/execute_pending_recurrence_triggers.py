"""Rules of each type that fire, skip and fail; one whose date is to come, one of others."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, HOSTILE, OTHER, OTHER_SITE, SITE, add, name, people

PARAMS = {"company_id": None, "batch_size": 2}
TOO_MUCH = {"condition": "waste_volume > threshold", "threshold_value": 1000}


def obligation(connection: Connection, number: int, **more: Any) -> str:
    """Add an obligation and return its id, as templates hold it."""
    row = {"id": name("obligation", number), "company_id": COMPANY, "site_id": SITE, "summary": HOSTILE}
    add(connection, "obligations", row | more)
    return str(row["id"])


def rule(
    connection: Connection, number: int, now: datetime, kind: str, config: Any, more: Mapping[str, Any]
) -> None:
    """Add a rule that is older than all events."""
    row: dict[str, Any] = {
        "id": name("trigger", number), "company_id": COMPANY, "rule_name": HOSTILE, "trigger_type": kind,
        "rule_config": config, "target_entity_type": "DEADLINE", "created_at": now - timedelta(days=90),
    }  # fmt: skip
    add(connection, "recurrence_trigger_rules", row | dict(more))


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all days are relative to that of `now`."""
    people(connection)
    today = now.date()
    mine, dull = obligation(connection, 1), obligation(connection, 2, status="NOT_APPLICABLE")
    theirs = obligation(connection, 3, company_id=OTHER, site_id=OTHER_SITE)
    for number, (kind, config, target, more) in enumerate(
        (
            ("SCHEDULED", {"frequency": "WEEKLY"}, mine, {"next_execution_date": today - timedelta(days=8)}),
            (
                "SCHEDULED",
                {"frequency": "MONTHLY", "day_of_month": 31, "create_advance_days": 7},
                mine,
                {"next_execution_date": today, "target_entity_type": "SCHEDULE"},
            ),
            ("SCHEDULED", {"frequency": "DAILY"}, dull, {"next_execution_date": today}),
            ("SCHEDULED", {"frequency": "DAILY"}, mine, {"next_execution_date": today + timedelta(days=40)}),
            ("SCHEDULED", {"frequency": "SOMETIMES"}, mine, {"next_execution_date": today}),
            ("EVENT_BASED", {"event_types": ["PERMIT_APPROVED"], "delay_days": 30}, mine, {}),
            ("CONDITIONAL", TOO_MUCH, mine, {"trigger_expression": "waste"}),
            (
                "SCHEDULED",
                {"frequency": "ONE_TIME"},
                theirs,
                {"next_execution_date": today - timedelta(days=1), "company_id": OTHER},
            ),
        ),
        start=1,
    ):
        rule(connection, number, now, kind, config, {"template_data": {"obligation_id": target}} | more)
    for number, (kind, data, days) in enumerate(
        (
            ("PERMIT_APPROVED", {}, 3),
            ("waste", {"waste_volume": 1001}, 2),
            ("waste", {"waste_volume": 1000}, 1),
        ),
        start=1,
    ):
        row = {"id": name("event", number), "company_id": COMPANY, "event_type": kind, "event_data": data}
        add(connection, "recurrence_events", row | {"occurred_at": now - timedelta(days=days)})


def unit(table: str, row: dict) -> object:
    """Return what stands or falls together: a rule with its executions."""
    return row.get("trigger_rule_id", row["id"])
