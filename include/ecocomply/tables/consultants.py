"""Consultants: which companies each of them looks after, and what they see of each."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Numeric, Text, UniqueConstraint, text

from include.columns import Word, instant, one_of, stamp
from include.ecocomply.tables.base import belongs, json, tenant

ASSIGNMENT_STATUSES = ("ACTIVE", "INACTIVE")

# In both tables the company is the client, which the row belongs to.
CONSULTANT_CLIENT_ASSIGNMENTS = tenant(
    "consultant_client_assignments",
    belongs("consultant_id", "users", required=True),
    Column("status", Word, nullable=False, server_default="ACTIVE"),
    stamp("assigned_at"),
    Column("status_reason", Text),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", ASSIGNMENT_STATUSES),
    UniqueConstraint("consultant_id", "company_id"),
    Index(
        "ix_consultant_client_assignments_active",
        "consultant_id",
        "company_id",
        postgresql_where=text("status = 'ACTIVE'"),
    ),
)

CONSULTANT_DASHBOARD = tenant(
    "consultant_dashboard",
    belongs("consultant_id", "users", required=True),
    Column("overdue_count", Integer, nullable=False, server_default="0"),
    # Due within 30 days.
    Column("due_soon_count", Integer, nullable=False, server_default="0"),
    Column("open_gap_count", Integer, nullable=False, server_default="0"),
    # The share of 90 days' deadlines that were completed in time, in percent; none: nothing was due.
    Column("compliance_score", Numeric(4, 1)),
    json("upcoming_deadlines", "[]"),
    json("recent_activity", "[]"),
    instant("synced_at"),
    Column("sync_error", Text),
    stamp("created_at"),
    stamp("updated_at"),
    UniqueConstraint("consultant_id", "company_id"),
    info={"written": True},
)
