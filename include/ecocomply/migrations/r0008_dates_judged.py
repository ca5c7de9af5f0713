"""Gaps and hours say which date they are of, so that a moved one starts anew and an older one undoes nothing."""

from __future__ import annotations

from importlib import resources

from alembic import op
from sqlalchemy import Column, Date, text

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add both; open gaps are of their deadlines' present dates."""
    op.add_column("evidence_gaps", Column("due_date", Date), if_not_exists=True)
    op.add_column("generators", Column("hours_as_of", Date), if_not_exists=True)
    # The rows are nobody's without a role.
    op.execute(text("SET LOCAL ROLE ecocomply_service"))
    source = resources.files("include.ecocomply.migrations").joinpath("r0008_ddl", "gaps_dated.sql")
    op.execute(text(source.read_text(encoding="utf-8")))
    op.execute(text("RESET ROLE"))
