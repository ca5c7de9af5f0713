"""Companies, their sites, who works for them and in which role, and the modules that they have."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    column,
    text,
    true,
)

from include.columns import Word, identity, instant, one_of, stamp
from include.ecocomply.tables.base import METADATA, belongs, listed, tenant

ROLES = ("OWNER", "ADMIN", "MANAGER", "TEAM_LEAD", "COMPLIANCE_OFFICER", "STAFF", "CONSULTANT")
ACTIVATION_STATUSES = ("ACTIVE", "SUSPENDED", "INACTIVE")

COMPANIES = Table(
    "companies",
    METADATA,
    identity(),
    Column("name", Text, nullable=False),
    # Evidence older than this is archived; none: it is kept.
    Column("evidence_retention_years", Integer),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    stamp("created_at"),
    stamp("updated_at"),
    instant("deleted_at"),
    CheckConstraint(column("evidence_retention_years") > 0, name="evidence_retention_years"),
)

SITES = tenant(
    "sites",
    Column("name", Text, nullable=False),
    # Whose public holidays count: an ISO country and one of its parts.
    Column("country_code", Text, nullable=False, server_default="GB"),
    Column("region", Text, nullable=False, server_default="ENG"),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    stamp("created_at"),
    stamp("updated_at"),
    instant("deleted_at"),
)

USERS = tenant(
    "users",
    Column("email", Text, nullable=False),
    Column("full_name", Text),
    # Where SMS go to; none: no SMS.
    Column("phone", Text),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    stamp("created_at"),
    stamp("updated_at"),
    instant("deleted_at"),
)

USER_ROLES = tenant(
    "user_roles",
    belongs("user_id", "users", required=True),
    Column("role", Word, nullable=False),
    stamp("created_at"),
    one_of("role", ROLES),
    UniqueConstraint("user_id", "role"),
    # Recipients are looked up by role, company by company.
    Index("ix_user_roles_company_role", "company_id", "role"),
)

USER_SITE_ASSIGNMENTS = tenant(
    "user_site_assignments",
    belongs("user_id", "users", required=True),
    belongs("site_id", "sites", required=True),
    stamp("created_at"),
    UniqueConstraint("user_id", "site_id"),
)

MODULES = Table(
    "modules",
    METADATA,
    identity(),
    # MODULE_1, MODULE_2, …
    Column("module_code", Text, nullable=False),
    Column("module_name", Text, nullable=False),
    listed("cross_sell_keywords", Text, "{}"),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    stamp("created_at"),
    stamp("updated_at"),
    UniqueConstraint("module_code"),
)

MODULE_ACTIVATIONS = tenant(
    "module_activations",
    belongs("module_id", "modules", required=True),
    belongs("site_id", "sites"),
    Column("status", Word, nullable=False, server_default="ACTIVE"),
    stamp("activated_at"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", ACTIVATION_STATUSES),
    Index(
        "ix_module_activations_active", "company_id", "module_id", postgresql_where=text("status = 'ACTIVE'")
    ),
)
