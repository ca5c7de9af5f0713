"""Rules that make schedules and deadlines, the events that fire them, and what came of each."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Date,
    Index,
    Integer,
    Text,
    UniqueConstraint,
    text,
    true,
)

from include.columns import Word, instant, one_of, stamp
from include.ecocomply.tables.base import belongs, holds, json, tenant

TRIGGER_TYPES = ("SCHEDULED", "EVENT_BASED", "CONDITIONAL")
TARGET_TYPES = ("SCHEDULE", "DEADLINE")
EXECUTION_RESULTS = ("SUCCESS", "SKIPPED", "FAILED")

RECURRENCE_TRIGGER_RULES = tenant(
    "recurrence_trigger_rules",
    Column("rule_name", Text, nullable=False),
    Column("trigger_type", Word, nullable=False),
    # For people, and the one event that an event rule without a list of them matches.
    Column("trigger_expression", Text),
    json("rule_config"),
    Column("target_entity_type", Word, nullable=False),
    json("template_data"),
    Column("next_execution_date", Date),
    instant("last_executed_at"),
    Column("execution_count", Integer, nullable=False, server_default="0"),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("trigger_type", TRIGGER_TYPES),
    one_of("target_entity_type", TARGET_TYPES),
    Index(
        "ix_recurrence_trigger_rules_due",
        "next_execution_date",
        "id",
        postgresql_where=text("is_active AND trigger_type = 'SCHEDULED'"),
    ),
    Index(
        "ix_recurrence_trigger_rules_listening",
        "company_id",
        "id",
        postgresql_where=text("is_active AND trigger_type <> 'SCHEDULED'"),
    ),
)

RECURRENCE_EVENTS = tenant(
    "recurrence_events",
    # Its id is what the application calls the event, where it gives one.
    Column("event_type", Text, nullable=False),
    json("event_data"),
    stamp("occurred_at"),
    stamp("created_at"),
    Index("ix_recurrence_events_company", "company_id", "occurred_at"),
    info={"written": True},
)

RECURRENCE_TRIGGER_EXECUTIONS = tenant(
    "recurrence_trigger_executions",
    belongs("trigger_rule_id", "recurrence_trigger_rules", required=True),
    belongs("event_id", "recurrence_events"),
    # The date that a scheduled rule fired for.
    Column("period", Date),
    belongs("schedule_id", "schedules", on_delete="SET NULL"),
    belongs("deadline_id", "deadlines", on_delete="SET NULL"),
    # As of the run.
    instant("execution_date", required=True),
    Column("next_due_date", Date),
    Column("execution_result", Word, nullable=False),
    json("execution_data"),
    stamp("created_at"),
    one_of("execution_result", EXECUTION_RESULTS),
    holds("made", "num_nonnulls(schedule_id, deadline_id) <= 1"),
    UniqueConstraint("trigger_rule_id", "event_id"),
    UniqueConstraint("trigger_rule_id", "period"),
    info={"written": True},
)
