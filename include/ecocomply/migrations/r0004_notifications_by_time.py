"""The log of notifications is read latest first, a page at a time."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the index."""
    op.create_index("ix_notifications_created", "notifications", ["created_at", "id"], if_not_exists=True)
