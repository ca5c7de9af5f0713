"""Corrective actions and the items that they are made of."""

from __future__ import annotations

from sqlalchemy import Column, Date, Index, Text, text

from include.columns import Word, instant, one_of, stamp
from include.ecocomply.tables.base import belongs, by_user, tenant

LIFECYCLE_PHASES = ("IDENTIFICATION", "ACTION", "RESOLUTION", "CLOSED")
ACTION_STATUSES = ("OPEN", "IN_PROGRESS", "RESOLVED", "CLOSED", "CANCELLED")
ITEM_STATUSES = ("PENDING", "IN_PROGRESS", "COMPLETED", "CANCELLED")

CORRECTIVE_ACTIONS = tenant(
    "corrective_actions",
    belongs("site_id", "sites"),
    Column("corrective_action_name", Text, nullable=False),
    Column("lifecycle_phase", Word, nullable=False, server_default="IDENTIFICATION"),
    Column("status", Word, nullable=False, server_default="OPEN"),
    by_user("created_by"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("lifecycle_phase", LIFECYCLE_PHASES),
    one_of("status", ACTION_STATUSES),
    Index(
        "ix_corrective_actions_in_action",
        "id",
        postgresql_where=text("lifecycle_phase = 'ACTION' AND status = 'IN_PROGRESS'"),
    ),
)

CORRECTIVE_ACTION_ITEMS = tenant(
    "corrective_action_items",
    belongs("corrective_action_id", "corrective_actions", required=True),
    Column("item_title", Text, nullable=False),
    Column("due_date", Date),
    by_user("assigned_to"),
    Column("status", Word, nullable=False, server_default="PENDING"),
    instant("completed_at"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", ITEM_STATUSES),
    Index(
        "ix_corrective_action_items_open",
        "due_date",
        "id",
        postgresql_where=text("status IN ('PENDING', 'IN_PROGRESS')"),
    ),
)
