"""Whom a job tells doesn't depend on who asked for it: a user's job may ask who the consultants of its company are."""

from __future__ import annotations

from importlib import resources

from alembic import op
from sqlalchemy import text

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make the function; nobody but the two roles may call it."""
    for name in ("consultants", "consultants_nobody", "consultants_jobs"):
        source = resources.files("include.ecocomply.migrations").joinpath("r0007_ddl", f"{name}.sql")
        # Colons of casts are no binds.
        op.execute(text(source.read_text(encoding="utf-8").replace("::", r"\:\:")))
