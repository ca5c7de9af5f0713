"""Module 4, hazardous waste: consignment notes, their carriers, and the rules that they are checked by."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Date,
    Index,
    Numeric,
    Text,
    UniqueConstraint,
    Uuid,
    text,
    true,
)

from include.columns import Word, instant, one_of, stamp
from include.ecocomply.tables.base import belongs, by_user, holds, json, tenant

UNITS = ("KG", "TONNES", "LITRES", "M3")
PRE_VALIDATION_STATUSES = ("NOT_VALIDATED", "PASSED", "PASSED_WITH_WARNINGS", "FAILED")
RULE_TYPES = ("CARRIER_LICENCE", "VOLUME_LIMIT", "STORAGE_DURATION", "EWC_CODE", "DESTINATION", "CUSTOM")
RULE_SEVERITIES = ("ERROR", "WARNING", "INFO")
RULE_RESULTS = ("PASS", "FAIL", "SKIPPED")
LICENCE_TIERS = ("UPPER", "LOWER")

CONTRACTORS = tenant(
    "contractors",
    Column("name", Text, nullable=False),
    Column("licence_number", Text),
    Column("licence_expiry_date", Date),
    Column("licence_tier", Word),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("licence_tier", LICENCE_TIERS),
)

WASTE_STREAMS = tenant(
    "waste_streams",
    belongs("site_id", "sites"),
    Column("name", Text, nullable=False),
    Column("ewc_code", Text),
    stamp("created_at"),
    stamp("updated_at"),
)

CONSIGNMENT_NOTES = tenant(
    "consignment_notes",
    belongs("site_id", "sites"),
    belongs("waste_stream_id", "waste_streams", on_delete="SET NULL"),
    belongs("carrier_id", "contractors", on_delete="SET NULL"),
    Column("consignment_number", Text),
    Column("consignment_date", Date, nullable=False),
    Column("quantity", Numeric),
    Column("unit", Word),
    Column("ewc_code", Text),
    # Who receives it, in whatever table an application keeps such sites.
    Column("destination_site_id", Uuid),
    Column("pre_validation_status", Word, nullable=False, server_default="NOT_VALIDATED"),
    json("pre_validation_errors", "[]"),
    instant("pre_validated_at"),
    by_user("created_by"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("unit", UNITS),
    one_of("pre_validation_status", PRE_VALIDATION_STATUSES),
    Index(
        "ix_consignment_notes_unvalidated",
        "created_at",
        "id",
        postgresql_where=text("pre_validation_status = 'NOT_VALIDATED'"),
    ),
)

VALIDATION_RULES = tenant(
    "validation_rules",
    # None: for every stream that has no rule of this type of its own.
    belongs("waste_stream_id", "waste_streams"),
    Column("rule_name", Text),
    Column("rule_type", Word, nullable=False),
    json("rule_config", None),
    Column("severity", Word, nullable=False, server_default="ERROR"),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("rule_type", RULE_TYPES),
    one_of("severity", RULE_SEVERITIES),
    Index("ix_validation_rules_active", "company_id", "waste_stream_id", postgresql_where=text("is_active")),
)

VALIDATION_EXECUTIONS = tenant(
    "validation_executions",
    belongs("validation_rule_id", "validation_rules", required=True),
    Column("entity_type", Text, nullable=False, server_default="CONSIGNMENT_NOTE"),
    Column("entity_id", Uuid, nullable=False),
    # As of the run.
    instant("execution_date", required=True),
    Column("result", Word, nullable=False),
    Column("error_message", Text),
    stamp("created_at"),
    one_of("result", RULE_RESULTS),
    holds("entity_type", "entity_type = upper(entity_type)"),
    UniqueConstraint("entity_id", "validation_rule_id", "execution_date"),
    info={"written": True},
)
