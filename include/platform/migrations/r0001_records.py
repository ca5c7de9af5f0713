"""Summaries, previews, alerts and outages."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, Index, Integer, Table, Text, UniqueConstraint, false, text
from sqlalchemy.dialects.postgresql import JSONB

from include.adoption import Adoption
from include.columns import Word, baseline_table, findings_table, identity, instant, metadata, one_of, stamp

revision = "0001"
down_revision = None

_TABLES = metadata()
Table(
    "run_summary",
    _TABLES,
    Column("dag_id", Text, primary_key=True),
    Column("run_id", Text, primary_key=True),
    instant("as_of", required=True),
    stamp("started_at"),
    instant("ended_at"),
    Column("state", Word, nullable=False, server_default="running"),
    Column("counts", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("notes", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    Column("preview", Boolean, nullable=False, server_default=false()),
    one_of("state", ("running", "success", "failed", "deferred", "skipped")),
    Index("ix_run_summary_dag_started", "dag_id", "started_at"),
    Index("ix_run_summary_started", "started_at"),
    Index("ix_run_summary_running", "started_at", postgresql_where=text("state = 'running'")),
)
Table(
    "run_step",
    _TABLES,
    Column("dag_id", Text, primary_key=True),
    Column("run_id", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("try_number", Integer, primary_key=True, autoincrement=False),
    stamp("started_at"),
    instant("ended_at"),
    Column("counts", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("notes", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    Column("state", Word, nullable=False, server_default="running"),
    Column("error", Text),
    one_of("state", ("running", "success", "failed", "deferred", "skipped")),
)
Table(
    "preview",
    _TABLES,
    Column("dag_id", Text, primary_key=True),
    Column("run_id", Text, primary_key=True),
    stamp("made_at"),
    instant("as_of", required=True),
    Column("result", JSONB, nullable=False),
    Index("ix_preview_made", "made_at"),
)
Table(
    "alert",
    _TABLES,
    identity(),
    Column("cause", Text, nullable=False),
    Column("kind", Word, nullable=False),
    Column("severity", Text, nullable=False, server_default="ERROR"),
    Column("dag_id", Text),
    Column("run_id", Text),
    Column("task_id", Text),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),
    stamp("created_at"),
    instant("delivered_at"),
    instant("delivery_claimed_at"),
    Column("delivery_attempts", Integer, nullable=False, server_default="0"),
    Column("last_error", Text),
    Column("no_address", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("cause"),
    one_of("kind", ("task", "timeout", "outage", "stuck", "run")),
    Index("ix_alert_created", "created_at"),
    Index(
        "ix_alert_undelivered",
        "created_at",
        postgresql_where=text("delivered_at IS NULL AND NOT no_address"),
    ),
)
Table(
    "outage",
    _TABLES,
    identity(),
    Column("service", Text, nullable=False),
    stamp("opened_at"),
    instant("closed_at"),
    Column("reason", Text),
    Index("uq_outage_open", "service", unique=True, postgresql_where=text("closed_at IS NULL")),
    Index("ix_outage_opened", "opened_at"),
)

baseline_table(_TABLES)
findings_table(_TABLES)


def upgrade() -> None:
    """Make the tables that are missing."""
    Adoption(op.get_context(), "platform", revision, _TABLES).run()
