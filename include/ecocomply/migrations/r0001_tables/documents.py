"""Permits and other documents, what is read out of them, what people review of that, and imports of spreadsheets."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    Index,
    Integer,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    false,
    text,
    true,
)

from include.columns import Word, identity, instant, one_of, stamp
from include.ecocomply.migrations.r0001_tables.base import (
    METADATA,
    belongs,
    by_user,
    holds,
    json,
    listed,
    tenant,
)
from include.ecocomply.migrations.r0001_tables.obligations import REVIEW_STATUSES

DOCUMENT_STATUSES = ("DRAFT", "ACTIVE", "SUPERSEDED", "EXPIRED", "ARCHIVED")
EXTRACTION_STATUSES = (
    "PENDING", "PROCESSING", "COMPLETED", "FAILED", "OCR_FAILED", "EXTRACTION_FAILED", "REVIEW_REQUIRED",
    "ZERO_OBLIGATIONS",
)  # fmt: skip
REVIEW_TYPES = (
    "LOW_CONFIDENCE", "SUBJECTIVE", "NO_MATCH", "DATE_FAILURE", "DUPLICATE", "OCR_QUALITY", "CONFLICT",
    "HALLUCINATION", "OCR_FAILURE", "EXTRACTION_FAILURE", "VALIDATION_FAILURE", "ZERO_OBLIGATIONS",
)  # fmt: skip
IMPORT_STATUSES = ("PENDING", "PROCESSING", "PENDING_REVIEW", "COMPLETED", "FAILED", "CANCELLED")

DOCUMENTS = tenant(
    "documents",
    belongs("site_id", "sites", required=True),
    belongs("module_id", "modules", on_delete="SET NULL"),
    Column("title", Text, nullable=False),
    Column("document_type", Text, nullable=False),
    Column("permit_number", Text),
    Column("regulator", Text),
    Column("expiry_date", Date),
    by_user("assigned_to"),
    Column("status", Word, nullable=False, server_default="ACTIVE"),
    Column("storage_path", Text),
    Column("mime_type", Text),
    Column("file_size_bytes", BigInteger),
    Column("file_hash", Text),
    Column("page_count", Integer),
    Column("is_native_pdf", Boolean),
    Column("is_large_document", Boolean),
    Column("extraction_status", Word, nullable=False, server_default="PENDING"),
    Column("extracted_text", Text),
    Column("ocr_confidence", Numeric),
    Column("error_message", Text),
    instant("extraction_completed_at"),
    instant("scanned_at"),
    by_user("uploaded_by"),
    json("metadata"),
    stamp("created_at"),
    stamp("updated_at"),
    instant("deleted_at"),
    one_of("status", DOCUMENT_STATUSES),
    one_of("extraction_status", EXTRACTION_STATUSES),
    Index(
        "ix_documents_expiring",
        "expiry_date",
        "id",
        postgresql_where=text("status = 'ACTIVE' AND deleted_at IS NULL"),
    ),
    Index("ix_documents_permit", "site_id", "permit_number"),
    Index(
        "ix_documents_unscanned",
        "updated_at",
        "id",
        postgresql_where=text(
            "status = 'ACTIVE' AND extraction_status = 'COMPLETED' AND (scanned_at IS NULL OR scanned_at < updated_at)"
        ),
    ),
    Index(
        "ix_documents_unread",
        "created_at",
        postgresql_where=text("extraction_status IN ('PENDING', 'PROCESSING')"),
    ),
    info={"written": True},
)

EXTRACTION_RULES = Table(
    "extraction_rules",
    METADATA,
    identity(),
    Column("module_code", Text, nullable=False),
    Column("rule_name", Text, nullable=False),
    Column("pattern", Text, nullable=False),
    json("extraction"),
    Column("confidence", Numeric, nullable=False, server_default="1"),
    Column("rule_library_version", Text),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    stamp("created_at"),
    stamp("updated_at"),
    holds("confidence", "confidence BETWEEN 0 AND 1"),
    Index("ix_extraction_rules_active", "module_code", postgresql_where=text("is_active")),
)

EXTRACTION_LOGS = tenant(
    "extraction_logs",
    belongs("document_id", "documents", required=True),
    Column("run_key", Text),
    stamp("extraction_timestamp"),
    Column("model_identifier", Text),
    Column("rule_library_version", Text),
    Column("segments_processed", Integer),
    Column("obligations_extracted", Integer),
    Column("flagged_for_review", Integer),
    Column("processing_time_ms", Integer),
    Column("ocr_required", Boolean),
    Column("ocr_confidence", Numeric),
    json("errors", "[]"),
    json("warnings", "[]"),
    json("metadata"),
    stamp("created_at"),
    UniqueConstraint("document_id", "run_key"),
)

EXTRACTION_ANSWERS = tenant(
    "extraction_answers",
    belongs("document_id", "documents", required=True),
    Column("request_hash", Text, nullable=False),
    Column("model_identifier", Text, nullable=False),
    json("answer"),
    stamp("created_at"),
    UniqueConstraint("document_id", "request_hash"),
)

REVIEW_QUEUE_ITEMS = tenant(
    "review_queue_items",
    belongs("site_id", "sites"),
    belongs("document_id", "documents"),
    belongs("obligation_id", "obligations"),
    Column("review_type", Word, nullable=False),
    Column("is_blocking", Boolean, nullable=False, server_default=false()),
    Column("priority", Integer, nullable=False, server_default="0"),
    json("original_data"),
    json("edited_data", None),
    Column("review_status", Word, nullable=False, server_default="PENDING"),
    Column("hallucination_risk", Boolean, nullable=False, server_default=false()),
    Column("escalation_level", Integer, nullable=False, server_default="0"),
    instant("escalated_at"),
    by_user("reviewed_by"),
    instant("reviewed_at"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("review_type", REVIEW_TYPES),
    one_of("review_status", REVIEW_STATUSES),
    holds("escalation_level", "escalation_level BETWEEN 0 AND 3"),
    Index(
        "ix_review_queue_items_waiting",
        "created_at",
        "id",
        postgresql_where=text("review_status = 'PENDING'"),
    ),
    Index(
        "uq_review_queue_items_waiting",
        "document_id",
        "obligation_id",
        "review_type",
        unique=True,
        postgresql_nulls_not_distinct=True,
        postgresql_where=text("review_status = 'PENDING' AND document_id IS NOT NULL"),
    ),
    info={"written": True},
)

REVIEW_QUEUE_ESCALATION_HISTORY = tenant(
    "review_queue_escalation_history",
    belongs("review_queue_item_id", "review_queue_items", required=True),
    Column("escalation_level", Integer, nullable=False),
    instant("escalated_at", required=True),
    listed("escalated_to", Uuid, "{}"),
    Column("hours_pending", Numeric),
    stamp("created_at"),
    holds("escalation_level", "escalation_level BETWEEN 1 AND 3"),
    UniqueConstraint("review_queue_item_id", "escalation_level"),
)

EXCEL_IMPORTS = tenant(
    "excel_imports",
    belongs("site_id", "sites", required=True),
    belongs("user_id", "users", required=True),
    Column("file_name", Text),
    Column("file_path", Text),
    Column("file_size_bytes", BigInteger),
    Column("status", Word, nullable=False, server_default="PENDING"),
    json("import_options"),
    json("column_report"),
    json("valid_rows", "[]"),
    json("error_rows", "[]"),
    json("warning_rows", "[]"),
    Column("row_count", Integer),
    Column("valid_count", Integer),
    Column("error_count", Integer),
    Column("warning_count", Integer),
    Column("success_count", Integer),
    Column("skipped_count", Integer),
    by_user("confirmed_by"),
    instant("confirmed_at"),
    instant("completed_at"),
    Column("error_message", Text),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", IMPORT_STATUSES),
    Index(
        "ix_excel_imports_open",
        "created_at",
        postgresql_where=text("status IN ('PENDING', 'PENDING_REVIEW')"),
    ),
)
