"""The specification's tables, and the ledgers of what is done once; made, or taken over from the application."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    and_,
    column,
    false,
    insert,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from include.adoption import Adoption
from include.columns import (
    Word,
    baseline_table,
    findings_table,
    identity,
    instant,
    metadata,
    one_of,
    stamp,
)

revision = "0001"
down_revision = None

_TABLES = metadata()
_BASELINE = baseline_table(_TABLES)
findings_table(_TABLES)

Table(
    "job_queue",
    _TABLES,
    identity(),
    Column("job_type", Text, nullable=False),
    Column("payload", JSONB, server_default=text("'{}'::jsonb")),
    Column("priority", Integer, nullable=False, server_default="0"),
    Column("status", Word, nullable=False, server_default="pending"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("max_attempts", Integer, nullable=False, server_default="5"),
    Column("last_error", Text),
    stamp("next_run_at"),
    stamp("created_at"),
    instant("started_at"),
    instant("completed_at"),
    Column("correlation_id", Uuid),
    Column("parent_job_id", Uuid, ForeignKey("job_queue.id")),
    one_of("status", ("pending", "processing", "completed", "failed", "cancelled")),
    Index(
        "idx_job_queue_pending",
        column("priority").desc(),
        "next_run_at",
        postgresql_where=text("status = 'pending'"),
    ),
    Index("idx_job_queue_processing", "started_at", postgresql_where=text("status = 'processing'")),
    Index(
        "ix_job_queue_batch_open",
        "correlation_id",
        "priority",
        postgresql_where=text("status IN ('pending', 'processing')"),
    ),
    Index("ix_job_queue_parent", "parent_job_id", postgresql_where=text("parent_job_id IS NOT NULL")),
)

Table(
    "job_batches",
    _TABLES,
    Column("batch_date", Date, primary_key=True),
    Column("batch", Word, primary_key=True),
    Column("job_type", Text, primary_key=True),
    Column("job_id", Uuid, nullable=False),
    stamp("enqueued_at"),
    one_of("batch", ("morning", "evening")),
)

Table(
    "idea_queue",
    _TABLES,
    identity(),
    Column("source", Text, nullable=False),
    Column("source_name", Text),
    Column("url", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("summary", Text),
    instant("published_at"),
    Column("status", Word, nullable=False, server_default="new"),
    Column("score", Numeric),
    Column("score_parts", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    instant("scored_at"),
    Column("selected_by_job_id", Uuid),
    instant("selected_at"),
    Column("pipeline_step", Word),
    Column("pipeline_data", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("last_error", Text),
    stamp("created_at"),
    stamp("updated_at"),
    UniqueConstraint("url"),
    one_of("status", ("new", "scored", "selected", "processing", "completed", "failed", "rejected")),
    one_of("pipeline_step", ("claude_draft", "gpt_improve", "gemini_polish", "claude_package", "completed")),
    CheckConstraint(and_(column("score") >= 0, column("score") <= 100), name="score"),  # noqa: PLR2004 - of a hundred
    Index("ix_idea_queue_new", "created_at", postgresql_where=text("status = 'new'")),
    Index("ix_idea_queue_scored", "score", "id", postgresql_where=text("status = 'scored'")),
    Index("ix_idea_queue_processing", "updated_at", postgresql_where=text("status = 'processing'")),
    Index(
        "ix_idea_queue_selected_by",
        "selected_by_job_id",
        postgresql_where=text("selected_by_job_id IS NOT NULL"),
    ),
)

Table(
    "content_calendar",
    _TABLES,
    identity(),
    Column("idea_id", Uuid, ForeignKey("idea_queue.id")),
    Column("title", Text, nullable=False),
    Column("html", Text, nullable=False),
    Column("excerpt", Text, nullable=False),
    Column("tags", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    Column("image_prompt", Text, nullable=False),
    Column("scheduled_date", Date),
    Column("status", Word, nullable=False, server_default="draft"),
    stamp("created_at"),
    stamp("updated_at"),
    UniqueConstraint("idea_id"),
    one_of("status", ("draft", "scheduled", "published", "cancelled")),
    Index("ix_content_calendar_scheduled", "scheduled_date"),
)

Table(
    "activity_log",
    _TABLES,
    identity(),
    Column("type", Text, nullable=False),
    Column("metadata", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    stamp("created_at"),
    Index("ix_activity_log_created", "created_at"),
)

Table(
    "scan_state",
    _TABLES,
    Column("source", Text, primary_key=True),
    instant("watermark"),
    Column("etag", Text),
    Column("last_modified", Text),
    instant("read_at"),
    Column("last_error", Text),
)

Table(
    "sync_slots",
    _TABLES,
    Column("job", Text, primary_key=True),
    Column("slot", DateTime(timezone=True), primary_key=True),
    Column("attempts", Integer, nullable=False, server_default="0"),
    instant("begun_at"),
    instant("succeeded_at"),
    Column("outcome_unknown", Boolean, nullable=False, server_default=false()),
    Column("answer", JSONB),
    Column("last_error", Text),
)


# The specification's own; the application goes on calling it.
_CLAIM = """
CREATE FUNCTION claim_next_job(p_worker_id TEXT DEFAULT 'default') RETURNS SETOF job_queue
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    UPDATE job_queue
    SET status = 'processing', started_at = now(), attempts = attempts + 1
    WHERE id = (
        SELECT id FROM job_queue
        WHERE status = 'pending' AND next_run_at <= now()
        ORDER BY priority DESC, next_run_at ASC
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    )
    RETURNING *;
END
$$
"""
_HAS_CLAIM = text("SELECT to_regprocedure('claim_next_job(text)') IS NOT NULL")


def upgrade() -> None:
    """Make or adopt the tables; on a database in use, note when that was."""
    adoption = Adoption(op.get_context(), "arcvest", revision, _TABLES)
    adoption.run()
    # An application's own stays as it is: another revision decides what it may claim.
    if not op.get_bind().scalar(_HAS_CLAIM):
        op.execute(_CLAIM)
    if adoption.had_rows:
        op.execute(insert(_BASELINE).values(name="adoption"))
