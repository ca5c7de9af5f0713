"""Notifications say that they wait, and why they were sent or not; what fails is shown in the application."""

from __future__ import annotations

from importlib import resources

from alembic import op
from sqlalchemy import text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; make the triggers, which work with the rights of whoever changes a row."""
    for name in (
        "status_reason", "notifications_copied", "notifications_copied_trigger", "notifications_waiting",
        "notifications_waiting_trigger",
    ):  # fmt: skip
        source = resources.files("include.ecocomply.migrations").joinpath("r0002_ddl", f"{name}.sql")
        # Colons of slices and casts are no binds.
        op.execute(text(source.read_text(encoding="utf-8").replace(":", r"\:").replace(r"\:\:", "::")))
