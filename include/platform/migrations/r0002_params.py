"""A run's summary keeps what the run was given."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from include.adoption import Adoption
from include.columns import metadata

revision = "0002"
down_revision = "0001"

_TABLES = metadata()
Table(
    "run_summary",
    _TABLES,
    Column("dag_id", Text, primary_key=True),
    Column("run_id", Text, primary_key=True),
    Column("params", JSONB),
)


def upgrade() -> None:
    """Add the column; runs of earlier days have none."""
    Adoption(op.get_context(), "platform", revision, _TABLES).run()
