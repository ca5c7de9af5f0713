"""Claimed messages are stored small: without what all mails of a template have in common, which is kept once."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, Table, Text, Uuid

from include.adoption import Adoption
from include.columns import metadata, stamp

revision = "0004"
down_revision = "0003"

_TABLES = metadata()

Table(
    "email_frames",
    _TABLES,
    Column("name", Text, primary_key=True),
    Column("content", Text, nullable=False),
    stamp("created_at"),
)
Table(
    "email_attempts",
    _TABLES,
    Column("batch_id", Uuid, primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("frame", Text),
)


def upgrade() -> None:
    """Make the table of frames; what was claimed before stays as it is, a message without a frame."""
    Adoption(op.get_context(), "clearpath", revision, _TABLES).run()
