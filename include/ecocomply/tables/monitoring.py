"""What watches: clocks, escalations of what is overdue, gaps in the evidence, scores of risk, and modules to offer."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Date,
    Index,
    Integer,
    Numeric,
    Text,
    UniqueConstraint,
    Uuid,
    column,
    text,
    true,
)

from include.columns import Word, instant, one_of, stamp
from include.ecocomply.tables.base import belongs, by_user, holds, json, listed, tenant

CRITICALITIES = ("RED", "AMBER", "GREEN")
CLOCK_STATUSES = ("ACTIVE", "OVERDUE", "COMPLETED")
ESCALATED_ENTITIES = ("OBLIGATION", "DEADLINE")
GAP_TYPES = ("NO_EVIDENCE", "EXPIRED_EVIDENCE", "INSUFFICIENT_EVIDENCE")
GAP_SEVERITIES = ("CRITICAL", "HIGH", "MEDIUM", "LOW")
RISK_BANDS = ("LOW", "MEDIUM", "HIGH", "CRITICAL")
CROSS_SELL_STATUSES = ("PENDING", "ACCEPTED", "DISMISSED", "CONVERTED")

_MOST = 100

COMPLIANCE_CLOCKS_UNIVERSAL = tenant(
    "compliance_clocks_universal",
    belongs("site_id", "sites"),
    belongs("module_id", "modules", on_delete="SET NULL"),
    Column("entity_type", Text, nullable=False),
    Column("entity_id", Uuid, nullable=False),
    Column("clock_type", Text, nullable=False),
    Column("target_date", Date, nullable=False),
    Column("days_remaining", Integer),
    Column("criticality", Word),
    Column("status", Word, nullable=False, server_default="ACTIVE"),
    listed("reminder_days", Integer, "{90,30,7}"),
    # Emptied when the target date changes, whoever changes it.
    listed("reminders_sent", Integer, "{}"),
    by_user("assigned_to"),
    json("metadata"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("criticality", CRITICALITIES),
    one_of("status", CLOCK_STATUSES),
    UniqueConstraint("entity_type", "entity_id", "clock_type"),
    Index(
        "ix_compliance_clocks_universal_running",
        "target_date",
        "id",
        postgresql_where=text("status IN ('ACTIVE', 'OVERDUE')"),
    ),
)

ESCALATION_WORKFLOWS = tenant(
    "escalation_workflows",
    Column("workflow_name", Text),
    # None: for every category that has none of its own.
    Column("obligation_category", Text),
    # Days overdue; a level without is skipped.
    Column("level_1_days", Integer),
    Column("level_2_days", Integer),
    Column("level_3_days", Integer),
    Column("level_4_days", Integer),
    listed("level_1_recipients", Uuid, "{}"),
    listed("level_2_recipients", Uuid, "{}"),
    listed("level_3_recipients", Uuid, "{}"),
    listed("level_4_recipients", Uuid, "{}"),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    stamp("created_at"),
    stamp("updated_at"),
    Index(
        "ix_escalation_workflows_active",
        "company_id",
        "obligation_category",
        postgresql_where=text("is_active"),
    ),
)

ESCALATIONS = tenant(
    "escalations",
    belongs("site_id", "sites"),
    belongs("obligation_id", "obligations"),
    belongs("workflow_id", "escalation_workflows", on_delete="SET NULL"),
    Column("entity_type", Word, nullable=False),
    Column("entity_id", Uuid, nullable=False),
    Column("escalation_level", Integer, nullable=False),
    # As of the run.
    instant("escalated_at", required=True),
    listed("escalated_to", Uuid, "{}"),
    Column("escalation_reason", Text),
    instant("resolved_at"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("entity_type", ESCALATED_ENTITIES),
    holds("escalation_level", "escalation_level BETWEEN 1 AND 4"),
    Index(
        "uq_escalations_unresolved",
        "entity_id",
        "escalation_level",
        "entity_type",
        unique=True,
        postgresql_where=text("resolved_at IS NULL"),
    ),
    Index("ix_escalations_of_site", "site_id", postgresql_where=text("resolved_at IS NULL")),
    info={"written": True},
)

EVIDENCE_GAPS = tenant(
    "evidence_gaps",
    belongs("site_id", "sites"),
    belongs("obligation_id", "obligations", required=True),
    belongs("deadline_id", "deadlines", required=True),
    # What the severity is of: for another date of the deadline it starts anew.
    Column("due_date", Date),
    Column("gap_type", Word, nullable=False),
    Column("severity", Word, nullable=False),
    # As of the run that found it, and of the one that found evidence.
    instant("detected_at", required=True),
    instant("resolved_at"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("gap_type", GAP_TYPES),
    one_of("severity", GAP_SEVERITIES),
    Index("uq_evidence_gaps_open", "deadline_id", unique=True, postgresql_where=text("resolved_at IS NULL")),
    Index("ix_evidence_gaps_of_site", "site_id", "severity", postgresql_where=text("resolved_at IS NULL")),
    info={"written": True},
)

RISK_SCORES = tenant(
    "risk_scores",
    belongs("site_id", "sites", required=True),
    Column("score_date", Date, nullable=False),
    Column("risk_score", Numeric(4, 1), nullable=False),
    Column("risk_band", Word, nullable=False),
    Column("overdue_score", Numeric(4, 1), nullable=False),
    Column("evidence_gap_score", Numeric(4, 1), nullable=False),
    Column("escalation_score", Numeric(4, 1), nullable=False),
    Column("historical_score", Numeric(4, 1), nullable=False),
    # What was counted, and how many clocks were red, amber and green.
    json("factors"),
    # Days in a row in HIGH or CRITICAL, this one included.
    Column("consecutive_high_days", Integer, nullable=False, server_default="0"),
    instant("calculated_at", required=True),
    stamp("created_at"),
    one_of("risk_band", RISK_BANDS),
    *(
        CheckConstraint(column(name).between(0, _MOST), name=name)
        for name in (
            "risk_score",
            "overdue_score",
            "evidence_gap_score",
            "escalation_score",
            "historical_score",
        )
    ),
    UniqueConstraint("site_id", "score_date"),
    info={"written": True},
)

CROSS_SELL_TRIGGERS = tenant(
    "cross_sell_triggers",
    belongs("target_module_id", "modules", required=True),
    Column("trigger_type", Word, nullable=False, server_default="KEYWORD"),
    # The document's id.
    Column("trigger_source", Text, nullable=False),
    listed("detected_keywords", Text, "{}"),
    Column("confidence", Numeric),
    Column("status", Word, nullable=False, server_default="PENDING"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("trigger_type", ("KEYWORD",)),
    one_of("status", CROSS_SELL_STATUSES),
    UniqueConstraint("company_id", "target_module_id", "trigger_source"),
    info={"written": True},
)
