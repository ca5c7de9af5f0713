"""ArcVest's tables as the newest migration leaves them.

The application owns them and writes to them too: it may enqueue a job by one INSERT, and claim one with
`claim_next_job()`. In an adopted database a status may be an enum type; a statement compares it with words.
"""

from __future__ import annotations

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
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from include.arcvest.jobs import JOBS
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
from include.queues.schema import audit_table, claim_columns, queue_indexes

JOB_STATUSES = ("pending", "processing", "completed", "failed", "cancelled")
IDEA_STATUSES = ("new", "scored", "selected", "processing", "completed", "failed", "rejected")
PIPELINE_STEPS = ("claude_draft", "gpt_improve", "gemini_polish", "claude_package", "completed")
CALENDAR_STATUSES = ("draft", "scheduled", "published", "cancelled")

METADATA = metadata()

JOB_QUEUE = Table(
    "job_queue",
    METADATA,
    identity(),
    # Not a list of words: the application may add types of its own.
    Column("job_type", Text, nullable=False),
    Column("payload", JSONB, server_default=text("'{}'::jsonb")),
    # Higher goes first.
    Column("priority", Integer, nullable=False, server_default="0"),
    Column("status", Word, nullable=False, server_default="pending"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("max_attempts", Integer, nullable=False, server_default="5"),
    Column("last_error", Text),
    stamp("next_run_at"),
    stamp("created_at"),
    instant("started_at"),
    instant("completed_at"),
    # The batch that a job belongs to: within one, a lower priority waits for the higher.
    Column("correlation_id", Uuid),
    Column("parent_job_id", Uuid, ForeignKey("job_queue.id")),
    *claim_columns(),
    one_of("status", JOB_STATUSES),
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
    Index("ix_job_queue_failed", "completed_at", postgresql_where=text("status = 'failed'")),
    Index(
        "ix_job_queue_idea",
        text("(payload ->> 'idea_id')"),
        postgresql_where=text("job_type = 'process_pipeline'"),
    ),
    *queue_indexes(JOBS),
)

JOB_BATCHES = Table(
    "job_batches",
    METADATA,
    # What was enqueued once stays enqueued, also when the queue's row is long deleted.
    Column("batch_date", Date, primary_key=True),
    Column("batch", Word, primary_key=True),
    Column("job_type", Text, primary_key=True),
    Column("job_id", Uuid, nullable=False),
    stamp("enqueued_at"),
    one_of("batch", ("morning", "evening")),
)

IDEA_QUEUE = Table(
    "idea_queue",
    METADATA,
    identity(),
    # The kind of scan that found it: news, bloomberg, email; an application may have others.
    Column("source", Text, nullable=False),
    # The feed's or the sender's name.
    Column("source_name", Text),
    # A mail without a link of its own has its `mid:` URL.
    Column("url", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("summary", Text),
    instant("published_at"),
    Column("status", Word, nullable=False, server_default="new"),
    # 0 to 100; its parts by criterion, each 0 to 1.
    Column("score", Numeric),
    Column("score_parts", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    instant("scored_at"),
    # The select_daily job that picked it, so that a repeat of that job counts it.
    Column("selected_by_job_id", Uuid),
    instant("selected_at"),
    Column("pipeline_step", Word),
    Column("pipeline_data", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("last_error", Text),
    stamp("created_at"),
    stamp("updated_at"),
    UniqueConstraint("url"),
    one_of("status", IDEA_STATUSES),
    one_of("pipeline_step", PIPELINE_STEPS),
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

CONTENT_CALENDAR = Table(
    "content_calendar",
    METADATA,
    identity(),
    Column("idea_id", Uuid, ForeignKey("idea_queue.id")),
    Column("title", Text, nullable=False),
    Column("html", Text, nullable=False),
    Column("excerpt", Text, nullable=False),
    # A list of strings.
    Column("tags", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    Column("image_prompt", Text, nullable=False),
    Column("scheduled_date", Date),
    Column("status", Word, nullable=False, server_default="draft"),
    stamp("created_at"),
    stamp("updated_at"),
    UniqueConstraint("idea_id"),
    one_of("status", CALENDAR_STATUSES),
    Index("ix_content_calendar_scheduled", "scheduled_date"),
)

ACTIVITY_LOG = Table(
    "activity_log",
    METADATA,
    identity(),
    Column("type", Text, nullable=False),
    Column("metadata", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    stamp("created_at"),
    Index("ix_activity_log_created", "created_at"),
)

SCAN_STATE = Table(
    "scan_state",
    METADATA,
    # A feed's URL, or the name of a mailbox.
    Column("source", Text, primary_key=True),
    # What a feed's server wants to hear to answer "not modified".
    Column("etag", Text),
    Column("last_modified", Text),
    # Where a mailbox has been read to.
    Column("position", Text),
    instant("read_at"),
    Column("last_error", Text),
)

SYNC_SLOTS = Table(
    "sync_slots",
    METADATA,
    # The DAG; `slot` is the instant that its call is for, and the Idempotency-Key is made of both.
    Column("job", Text, primary_key=True),
    Column("slot", DateTime(timezone=True), primary_key=True),
    Column("attempts", Integer, nullable=False, server_default="0"),
    instant("begun_at"),
    instant("succeeded_at"),
    # Nobody knows whether the application did it: a person decides.
    Column("outcome_unknown", Boolean, nullable=False, server_default=false()),
    Column("answer", JSONB),
    Column("last_error", Text),
)

QUEUE_AUDIT = audit_table(METADATA)

BASELINE = baseline_table(METADATA)

ADOPTION_FINDINGS = findings_table(METADATA)
