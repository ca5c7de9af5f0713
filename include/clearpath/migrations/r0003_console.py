"""What the console lists by: a page of a long log is read from an index, not sorted out of the whole."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Date, Index, Table

from include.adoption import Adoption
from include.columns import identity, instant, metadata

revision = "0003"
down_revision = "0002"

_TABLES = metadata()

Table(
    "email_log",
    _TABLES,
    identity(),
    instant("scheduled_at"),
    Index("ix_email_log_listed", "scheduled_at", "id"),
)
Table(
    "certificates",
    _TABLES,
    identity(),
    Column("issued_on", Date),
    Index("ix_certificates_listed", "issued_on", "id"),
)


def upgrade() -> None:
    """Make the indexes."""
    Adoption(op.get_context(), "clearpath", revision, _TABLES).run()
