"""Obligations, when they are due, the evidence for them, and tasks that come back."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    Index,
    Integer,
    Numeric,
    Text,
    UniqueConstraint,
    false,
    text,
    true,
)

from include.columns import Word, instant, one_of, stamp
from include.ecocomply.tables.base import (
    FREQUENCIES,
    REPEATING,
    belongs,
    by_user,
    holds,
    json,
    listed,
    tenant,
)

OBLIGATION_STATUSES = ("PENDING", "IN_PROGRESS", "DUE_SOON", "OVERDUE", "COMPLETED", "NOT_APPLICABLE")
REVIEW_STATUSES = ("NOT_REQUIRED", "PENDING", "CONFIRMED", "EDITED", "REJECTED")
IMPORT_SOURCES = ("MANUAL", "PDF_EXTRACTION", "EXCEL_IMPORT")
SCHEDULE_STATUSES = ("ACTIVE", "PAUSED", "ARCHIVED")
DEADLINE_STATUSES = ("PENDING", "DUE_SOON", "OVERDUE", "COMPLETED", "NOT_APPLICABLE")
VALIDATION_STATUSES = ("PENDING", "APPROVED", "REJECTED")
STORAGE_TIERS = ("STANDARD", "COLD")
TASK_STATUSES = ("PENDING", "IN_PROGRESS", "COMPLETED", "CANCELLED")

OBLIGATIONS = tenant(
    "obligations",
    belongs("site_id", "sites", required=True),
    belongs("document_id", "documents"),
    belongs("module_id", "modules", on_delete="SET NULL"),
    # The title.
    Column("summary", Text, nullable=False),
    Column("description", Text),
    # As the permit has it.
    Column("original_text", Text),
    Column("category", Text),
    Column("condition_type", Text),
    Column("condition_reference", Text),
    Column("frequency", Word),
    # Due dates are base_date plus whole periods.
    Column("base_date", Date),
    Column("deadline_date", Date),
    Column("status", Word, nullable=False, server_default="PENDING"),
    Column("evidence_required", Boolean, nullable=False, server_default=true()),
    by_user("assigned_to"),
    Column("confidence_score", Numeric),
    Column("is_subjective", Boolean, nullable=False, server_default=false()),
    listed("subjective_phrases", Text, "{}"),
    Column("review_status", Word, nullable=False, server_default="NOT_REQUIRED"),
    by_user("reviewed_by"),
    instant("reviewed_at"),
    Column("import_source", Word, nullable=False, server_default="MANUAL"),
    # What an extraction of the document calls it, so that a run that begins again makes it once.
    Column("extraction_key", Text),
    belongs("excel_import_id", "excel_imports", on_delete="SET NULL"),
    # Each row of an import makes one obligation.
    Column("excel_row_number", Integer),
    # Was overdue before the platform came: nobody is told of that again.
    Column("past_at_adoption", Boolean, nullable=False, server_default=false()),
    by_user("created_by"),
    stamp("created_at"),
    stamp("updated_at"),
    instant("deleted_at"),
    one_of("frequency", FREQUENCIES),
    one_of("status", OBLIGATION_STATUSES),
    one_of("review_status", REVIEW_STATUSES),
    one_of("import_source", IMPORT_SOURCES),
    holds("confidence_score", "confidence_score BETWEEN 0 AND 1"),
    UniqueConstraint("document_id", "extraction_key"),
    UniqueConstraint("excel_import_id", "excel_row_number"),
    # Everything that recurs or waits, in the order in which chunks go through it.
    Index(
        "ix_obligations_open",
        "id",
        postgresql_where=text("status <> 'NOT_APPLICABLE' AND deleted_at IS NULL"),
    ),
    Index(
        "ix_obligations_due",
        "deadline_date",
        postgresql_where=text("status IN ('PENDING', 'IN_PROGRESS', 'DUE_SOON') AND deleted_at IS NULL"),
    ),
    Index(
        "ix_obligations_overdue",
        "deadline_date",
        postgresql_where=text("status = 'OVERDUE' AND deleted_at IS NULL"),
    ),
    # Whether a row of an import is there already.
    Index("ix_obligations_site_summary", "site_id", "summary", postgresql_where=text("deleted_at IS NULL")),
    info={"written": True},
)

SCHEDULES = tenant(
    "schedules",
    belongs("obligation_id", "obligations", required=True),
    Column("frequency", Word, nullable=False),
    Column("base_date", Date),
    Column("next_due_date", Date),
    Column("status", Word, nullable=False, server_default="ACTIVE"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("frequency", FREQUENCIES),
    one_of("status", SCHEDULE_STATUSES),
    UniqueConstraint("obligation_id"),
    info={"written": True},
)

DEADLINES = tenant(
    "deadlines",
    belongs("site_id", "sites"),
    belongs("obligation_id", "obligations", required=True),
    belongs("schedule_id", "schedules", on_delete="SET NULL"),
    Column("due_date", Date, nullable=False),
    Column("status", Word, nullable=False, server_default="PENDING"),
    # From the day after the deadline before it, to its own.
    Column("compliance_period_start", Date),
    Column("compliance_period_end", Date),
    instant("completed_at"),
    by_user("completed_by"),
    Column("sla_target_date", Date),
    instant("sla_breached_at"),
    Column("sla_breach_duration_hours", Numeric),
    Column("breach_notification_sent", Boolean, nullable=False, server_default=false()),
    instant("breach_detected_at"),
    Column("past_at_adoption", Boolean, nullable=False, server_default=false()),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", DEADLINE_STATUSES),
    UniqueConstraint("obligation_id", "due_date"),
    Index(
        "ix_deadlines_waiting", "due_date", "id", postgresql_where=text("status IN ('PENDING', 'DUE_SOON')")
    ),
    Index("ix_deadlines_overdue", "due_date", "id", postgresql_where=text("status = 'OVERDUE'")),
    # A schedule's next due date, and an obligation's.
    Index(
        "ix_deadlines_of_schedule",
        "schedule_id",
        "due_date",
        postgresql_where=text("status IN ('PENDING', 'DUE_SOON')"),
    ),
    # Breaches that nobody was told of; they don't wait for a job to mark them overdue.
    Index(
        "ix_deadlines_untold",
        "due_date",
        "id",
        postgresql_where=text(
            "NOT breach_notification_sent AND status IN ('PENDING', 'DUE_SOON', 'OVERDUE')"
        ),
    ),
    Index(
        "ix_deadlines_sla_open",
        "sla_target_date",
        "id",
        postgresql_where=text("sla_breached_at IS NULL AND status <> 'COMPLETED'"),
    ),
    Index(
        "ix_deadlines_sla_breached",
        "sla_breached_at",
        "id",
        postgresql_where=text("sla_breached_at IS NOT NULL AND status <> 'COMPLETED'"),
    ),
    # A site's last 90 days.
    Index("ix_deadlines_site_due", "site_id", "due_date"),
    Index("ix_deadlines_company_due", "company_id", "due_date"),
    info={"written": True},
)

EVIDENCE_ITEMS = tenant(
    "evidence_items",
    belongs("site_id", "sites"),
    Column("file_name", Text, nullable=False),
    Column("file_type", Text),
    Column("mime_type", Text),
    Column("file_size_bytes", BigInteger),
    # SHA-256, in hexadecimal digits.
    Column("file_hash", Text),
    Column("storage_path", Text),
    Column("storage_tier", Word, nullable=False, server_default="STANDARD"),
    stamp("upload_date"),
    by_user("uploaded_by"),
    Column("expiry_date", Date),
    Column("validation_status", Word, nullable=False, server_default="PENDING"),
    Column("is_archived", Boolean, nullable=False, server_default=false()),
    instant("archived_at"),
    Column("archived_reason", Text),
    json("metadata"),
    stamp("created_at"),
    stamp("updated_at"),
    instant("deleted_at"),
    one_of("validation_status", VALIDATION_STATUSES),
    one_of("storage_tier", STORAGE_TIERS),
    Index(
        "ix_evidence_items_expiring",
        "expiry_date",
        "id",
        postgresql_where=text("deleted_at IS NULL AND NOT is_archived"),
    ),
    Index(
        "ix_evidence_items_kept",
        "company_id",
        "created_at",
        postgresql_where=text("deleted_at IS NULL AND NOT is_archived"),
    ),
)

OBLIGATION_EVIDENCE_LINKS = tenant(
    "obligation_evidence_links",
    belongs("obligation_id", "obligations", required=True),
    belongs("evidence_id", "evidence_items", required=True),
    stamp("linked_at"),
    by_user("linked_by"),
    instant("unlinked_at"),
    by_user("unlinked_by"),
    Index(
        "uq_obligation_evidence_links_live",
        "obligation_id",
        "evidence_id",
        unique=True,
        postgresql_where=text("unlinked_at IS NULL"),
    ),
)

RECURRING_TASKS = tenant(
    "recurring_tasks",
    belongs("site_id", "sites"),
    Column("title", Text, nullable=False),
    Column("description", Text),
    Column("frequency", Word, nullable=False),
    # Due dates are anchor_date plus whole periods.
    Column("anchor_date", Date),
    Column("next_due_date", Date),
    by_user("default_assignee_id"),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    instant("last_generated_at"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("frequency", REPEATING),
    Index("ix_recurring_tasks_due", "next_due_date", "id", postgresql_where=text("is_active")),
)

TASKS = tenant(
    "tasks",
    belongs("site_id", "sites"),
    belongs("recurring_task_id", "recurring_tasks", on_delete="SET NULL"),
    Column("title", Text, nullable=False),
    Column("description", Text),
    Column("due_date", Date),
    by_user("assigned_to"),
    Column("status", Word, nullable=False, server_default="PENDING"),
    instant("completed_at"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", TASK_STATUSES),
    UniqueConstraint("recurring_task_id", "due_date"),
    info={"written": True},
)
