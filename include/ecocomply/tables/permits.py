"""What happens to a permit: its renewal, variation or surrender, and the regulator's answer."""

from __future__ import annotations

from sqlalchemy import Column, Date, Index, Text, text

from include.columns import Word, one_of, stamp
from include.ecocomply.tables.base import belongs, by_user, tenant

WORKFLOW_TYPES = ("RENEWAL", "VARIATION", "SURRENDER")
WORKFLOW_STATUSES = ("DRAFT", "SUBMITTED", "UNDER_REVIEW", "APPROVED", "REJECTED", "COMPLETED", "CANCELLED")

PERMIT_WORKFLOWS = tenant(
    "permit_workflows",
    belongs("document_id", "documents", required=True),
    Column("workflow_type", Word, nullable=False),
    Column("status", Word, nullable=False, server_default="DRAFT"),
    # The expiry that a renewal is for.
    Column("expiry_date", Date),
    Column("submitted_date", Date),
    Column("regulator_response_deadline", Date),
    Column("regulator_response_date", Date),
    Column("workflow_notes", Text),
    by_user("created_by"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("workflow_type", WORKFLOW_TYPES),
    one_of("status", WORKFLOW_STATUSES),
    Index(
        "uq_permit_workflows_renewal",
        "document_id",
        "expiry_date",
        unique=True,
        postgresql_where=text("workflow_type = 'RENEWAL'"),
    ),
    Index(
        "ix_permit_workflows_unanswered",
        "regulator_response_deadline",
        "id",
        postgresql_where=text("status = 'UNDER_REVIEW' AND regulator_response_date IS NULL"),
    ),
    info={"written": True},
)
