"""An event that meets two conditions and not a third, one that can't be evaluated, and rules of other events."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from tests.ecocomply.world import COMPANY, OTHER, OTHER_SITE, add, name, people
from tests.ecocomply.worlds.execute_pending_recurrence_triggers import TOO_MUCH, obligation, rule, unit

__all__ = ["PARAMS", "seed", "unit"]

PARAMS = {
    "event_type": "waste",
    "event_data": {"waste_volume": 1001},
    "company_id": str(COMPANY),
    "event_id": None,
}


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; the event itself is the run's."""
    people(connection)
    mine, another = obligation(connection, 1), obligation(connection, 2)
    theirs = obligation(connection, 3, company_id=OTHER, site_id=OTHER_SITE)
    listens = {"trigger_expression": "waste"}
    for number, (kind, config, target, more) in enumerate(
        (
            ("CONDITIONAL", TOO_MUCH | {"event_types": ["waste"]}, mine, {}),
            ("CONDITIONAL", TOO_MUCH, another, {"target_entity_type": "SCHEDULE"} | listens),
            ("CONDITIONAL", TOO_MUCH | {"threshold_value": 1001}, mine, listens),
            ("CONDITIONAL", {"condition": "colour == 'red'"}, mine, listens),
            ("CONDITIONAL", TOO_MUCH, mine, {"trigger_expression": "noise"}),
            ("EVENT_BASED", {}, mine, listens),
            ("CONDITIONAL", TOO_MUCH, theirs, {"company_id": OTHER} | listens),
        ),
        start=1,
    ):
        target_of = {"template_data": {"obligation_id": target, "frequency": "MONTHLY"}}
        rule(connection, number, now - timedelta(days=3650), kind, config, target_of | more)
    row = {"id": name("event", 9), "company_id": COMPANY, "event_type": "waste", "event_data": {}}
    add(connection, "recurrence_events", row | {"occurred_at": now - timedelta(days=1)})
