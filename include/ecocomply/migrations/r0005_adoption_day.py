"""The day of the adoption, as the jobs ask for it: what was past by then is history, and nobody is told of it."""

from __future__ import annotations

from importlib import resources

from alembic import op
from sqlalchemy import text

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the view; whoever works on the tables may read it."""
    for name in ("adoption", "adoption_seen"):
        source = resources.files("include.ecocomply.migrations").joinpath("r0005_ddl", f"{name}.sql")
        op.execute(text(source.read_text(encoding="utf-8")))
