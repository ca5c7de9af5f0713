"""Packs of evidence, whom they are shared with, and reports."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    Index,
    Integer,
    Text,
    UniqueConstraint,
    Uuid,
    column,
    false,
    text,
    true,
)

from include.columns import Word, instant, one_of, stamp
from include.ecocomply.migrations.r0001_tables.base import belongs, by_user, holds, json, tenant

PACK_TYPES = (
    "AUDIT_PACK", "REGULATOR_INSPECTION", "TENDER_CLIENT_ASSURANCE", "BOARD_MULTI_SITE_RISK", "INSURER_BROKER"
)  # fmt: skip
RECIPIENT_TYPES = ("REGULATOR", "CLIENT", "BOARD", "INSURER", "INTERNAL")
PACK_FORMATS = ("PDF", "ZIP")
PACK_STATUSES = ("GENERATING", "READY", "FAILED")
DISTRIBUTION_METHODS = ("EMAIL", "SHARED_LINK")
SHARING_STATUSES = ("PENDING", "SENT", "FAILED", "UNKNOWN")
REPORT_TYPES = (
    "OBLIGATIONS", "COMPLIANCE_SUMMARY", "EVIDENCE_REGISTER", "DEADLINE_CALENDAR", "MODULE_SPECIFIC"
)  # fmt: skip
REPORT_FORMATS = ("PDF", "EXCEL")
REPORT_STATUSES = ("PENDING", "GENERATING", "COMPLETED", "FAILED")

AUDIT_PACKS = tenant(
    "audit_packs",
    belongs("site_id", "sites"),
    belongs("document_id", "documents"),
    Column("pack_type", Word, nullable=False, server_default="AUDIT_PACK"),
    Column("status", Word, nullable=False, server_default="READY"),
    Column("recipient_type", Word),
    Column("recipient_name", Text),
    Column("purpose", Text),
    Column("date_range_start", Date, nullable=False),
    Column("date_range_end", Date, nullable=False),
    json("filters_applied"),
    Column("include_evidence_files", Boolean, nullable=False, server_default=true()),
    Column("output_format", Word, nullable=False, server_default="PDF"),
    Column("storage_path", Text),
    Column("file_size_bytes", BigInteger),
    Column("file_hash", Text),
    Column("total_obligations", Integer, nullable=False, server_default="0"),
    Column("complete_count", Integer, nullable=False, server_default="0"),
    Column("pending_count", Integer, nullable=False, server_default="0"),
    Column("overdue_count", Integer, nullable=False, server_default="0"),
    Column("evidence_count", Integer, nullable=False, server_default="0"),
    Column("integrity_errors_count", Integer, nullable=False, server_default="0"),
    json("integrity_report"),
    Column("generation_time_ms", Integer),
    by_user("generated_by"),
    instant("generated_at"),
    Column("shared_link_token", Text),
    instant("shared_link_expires_at"),
    Column("dedupe_key", Text),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("pack_type", PACK_TYPES),
    one_of("status", PACK_STATUSES),
    one_of("recipient_type", RECIPIENT_TYPES),
    one_of("output_format", PACK_FORMATS),
    holds("board_has_no_site", "(pack_type = 'BOARD_MULTI_SITE_RISK') = (site_id IS NULL)"),
    CheckConstraint(column("date_range_end") >= column("date_range_start"), name="date_range"),
    UniqueConstraint("shared_link_token"),
    UniqueConstraint("dedupe_key"),
    info={"written": True},
)

PACK_SHARING = tenant(
    "pack_sharing",
    belongs("pack_id", "audit_packs", required=True),
    Column("distribution_id", Uuid),
    Column("distribution_method", Word, nullable=False),
    Column("distributed_to", Text),
    Column("recipient_name", Text),
    Column("message", Text),
    Column("shared_link_token", Text),
    instant("expires_at"),
    Column("status", Word, nullable=False, server_default="PENDING"),
    belongs("batch_id", "email_batches", on_delete="SET NULL"),
    instant("sent_at"),
    Column("provider_message_id", Text),
    Column("last_error", Text),
    Column("retry_count", Integer, nullable=False, server_default="0"),
    Column("permanent", Boolean, nullable=False, server_default=false()),
    instant("next_attempt_at"),
    instant("first_viewed_at"),
    Column("view_count", Integer, nullable=False, server_default="0"),
    by_user("created_by"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("distribution_method", DISTRIBUTION_METHODS),
    one_of("status", SHARING_STATUSES),
    UniqueConstraint("shared_link_token"),
    Index(
        "uq_pack_sharing_recipient",
        "distribution_id",
        "distributed_to",
        unique=True,
        postgresql_nulls_not_distinct=True,
        postgresql_where=text("distribution_id IS NOT NULL"),
    ),
    Index("ix_pack_sharing_waiting", "created_at", "id", postgresql_where=text("status = 'PENDING'")),
)

REPORTS = tenant(
    "reports",
    belongs("site_id", "sites"),
    Column("report_type", Word, nullable=False),
    Column("format", Word, nullable=False, server_default="PDF"),
    Column("template", Text),
    json("filters"),
    Column("status", Word, nullable=False, server_default="PENDING"),
    Column("file_url", Text),
    Column("storage_path", Text),
    Column("file_size_bytes", BigInteger),
    Column("row_count", Integer),
    instant("generated_at"),
    by_user("requested_by"),
    Column("error_message", Text),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("report_type", REPORT_TYPES),
    one_of("format", REPORT_FORMATS),
    one_of("status", REPORT_STATUSES),
    Index("ix_reports_waiting", "created_at", postgresql_where=text("status IN ('PENDING', 'GENERATING')")),
)
