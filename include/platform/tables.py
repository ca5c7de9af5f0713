"""The platform's own tables, in the database `almanac`, as the newest migration leaves them."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text, UniqueConstraint, false, text
from sqlalchemy.dialects.postgresql import JSONB

from include.columns import Word, baseline_table, findings_table, identity, instant, metadata, one_of, stamp

RUN_STATES = ("running", "success", "failed", "deferred", "skipped")
ALERT_KINDS = ("task", "timeout", "outage", "stuck", "run")

METADATA = metadata()

RUN_SUMMARY = Table(
    "run_summary",
    METADATA,
    Column("dag_id", Text, primary_key=True),
    Column("run_id", Text, primary_key=True),
    instant("as_of", required=True),
    stamp("started_at"),
    instant("ended_at"),
    Column("state", Word, nullable=False, server_default="running"),
    Column("counts", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("notes", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    Column("preview", Boolean, nullable=False, server_default=false()),
    # What the run was given, defaults included; null for runs of before this was kept.
    Column("params", JSONB),
    one_of("state", RUN_STATES),
    Index("ix_run_summary_dag_started", "dag_id", "started_at"),
    Index("ix_run_summary_started", "started_at"),
    Index("ix_run_summary_running", "started_at", postgresql_where=text("state = 'running'")),
)

RUN_STEP = Table(
    "run_step",
    METADATA,
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
    one_of("state", RUN_STATES),
)

PREVIEW = Table(
    "preview",
    METADATA,
    Column("dag_id", Text, primary_key=True),
    Column("run_id", Text, primary_key=True),
    stamp("made_at"),
    instant("as_of", required=True),
    Column("result", JSONB, nullable=False),
    Index("ix_preview_made", "made_at"),
)

ALERT = Table(
    "alert",
    METADATA,
    identity(),
    # What happened, once: the same cause is the same alert.
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
    # There was nobody to write to: logged, and done.
    Column("no_address", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("cause"),
    one_of("kind", ALERT_KINDS),
    Index("ix_alert_created", "created_at"),
    Index(
        "ix_alert_undelivered",
        "created_at",
        postgresql_where=text("delivered_at IS NULL AND NOT no_address"),
    ),
)

OUTAGE = Table(
    "outage",
    METADATA,
    identity(),
    Column("service", Text, nullable=False),
    stamp("opened_at"),
    instant("closed_at"),
    Column("reason", Text),
    Index("uq_outage_open", "service", unique=True, postgresql_where=text("closed_at IS NULL")),
    Index("ix_outage_opened", "opened_at"),
)

BASELINE = baseline_table(METADATA)

ADOPTION_FINDINGS = findings_table(METADATA)
