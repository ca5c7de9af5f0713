"""Runs that nobody has held against the limits are found generator by generator, as they are worked on."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0006"
down_revision = "0005"

_TABLE = "runtime_monitoring"


def upgrade() -> None:
    """Exchange the index by day for one by generator; a day is no order that anybody asks for."""
    op.create_index(
        "ix_runtime_monitoring_unchecked_of",
        _TABLE,
        ["generator_id", "id"],
        postgresql_where=text("validation_status = 'APPROVED' AND exceedance_checked_at IS NULL"),
        if_not_exists=True,
    )
    op.drop_index("ix_runtime_monitoring_unchecked", _TABLE, if_exists=True)
