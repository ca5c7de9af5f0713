"""The jobs' role refreshes the dashboard of the clocks, by a function that works with its owner's rights."""

from __future__ import annotations

from importlib import resources

from alembic import op
from sqlalchemy import text

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the function; nobody but the service may call it."""
    for name in ("refresh_dashboard", "refresh_dashboard_nobody", "refresh_dashboard_service"):
        source = resources.files("include.ecocomply.migrations").joinpath("r0003_ddl", f"{name}.sql")
        # Colons of casts are no binds.
        op.execute(text(source.read_text(encoding="utf-8").replace("::", r"\:\:")))
