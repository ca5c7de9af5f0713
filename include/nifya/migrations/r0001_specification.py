"""The specification's tables and those it speaks of, made or taken over; the mail's ledger; the parsers' breakers."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    and_,
    column,
    false,
    insert,
    text,
    true,
    update,
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

_LAST_HOUR = 23

_TABLES = metadata()
_BASELINE = baseline_table(_TABLES)
findings_table(_TABLES)

Table(
    "users",
    _TABLES,
    Column("id", String(128), primary_key=True),
    Column("email", Text),
    Column("name", Text),
    Column("timezone", Text, nullable=False, server_default="Europe/Madrid"),
    Column("digest_hour", Integer, nullable=False, server_default="9"),
    instant("last_digest_at"),
    instant("digests_stopped_at"),
    stamp("created_at"),
    stamp("updated_at"),
    CheckConstraint(
        and_(column("digest_hour") >= 0, column("digest_hour") <= _LAST_HOUR), name="digest_hour"
    ),
)
Table(
    "scheduled_jobs",
    _TABLES,
    identity(),
    Column("type", String(255), nullable=False),
    Column("data", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("status", String(50), nullable=False, server_default="pending"),
    Column("schedule", JSONB),
    instant("next_run_at", required=True),
    instant("last_run_at"),
    stamp("created_at"),
    stamp("updated_at"),
    Column("created_by", String(128), ForeignKey("users.id")),
    Column("error", Text),
    Column("series_id", Uuid),
    Column("recurrence_ended", Text),
    one_of("status", ("pending", "processing", "completed", "failed")),
    UniqueConstraint("series_id", "next_run_at"),
    Index("idx_scheduled_jobs_status", "status"),
    Index("idx_scheduled_jobs_next_run_at", "next_run_at"),
    info={"written": True},
)
Table(
    "subscriptions",
    _TABLES,
    identity(),
    Column("user_id", String(128), ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text),
    Column("type_id", Text, nullable=False, info={"any_type": True}),
    Column("prompts", JSONB, nullable=False, server_default=text("'[]'::jsonb"), info={"any_type": True}),
    Column("active", Boolean, nullable=False, server_default=true()),
    stamp("created_at"),
    stamp("updated_at"),
    Index("ix_subscriptions_user", "user_id"),
)
_PROCESSING = Table(
    "subscription_processing",
    _TABLES,
    identity(),
    Column("subscription_id", Uuid, ForeignKey("subscriptions.id", ondelete="CASCADE"), nullable=False),
    Column("status", Word, nullable=False, server_default="pending"),
    instant("last_run_at"),
    instant("last_success_at"),
    Column("error", Text),
    Column("failures_in_row", Integer, nullable=False, server_default="0"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", ("pending", "processing", "completed", "failed")),
    UniqueConstraint("subscription_id"),
    info={"written": True},
)
Table(
    "email_batches",
    _TABLES,
    identity(),
    Column("provider", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    stamp("claimed_at"),
)
Table(
    "digests",
    _TABLES,
    identity(),
    Column("user_id", String(128), ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    instant("due_at", required=True),
    Column("status", Word, nullable=False, server_default="queued"),
    Column("retry_count", Integer, nullable=False, server_default="0"),
    Column("permanent", Boolean, nullable=False, server_default=false()),
    Column("outcome_unknown", Boolean, nullable=False, server_default=false()),
    instant("next_attempt_at"),
    Column("batch_id", Uuid, ForeignKey("email_batches.id", ondelete="SET NULL")),
    instant("sent_at"),
    Column("provider_message_id", Text),
    Column("last_error", Text),
    Column("unsubscribe_token", Uuid, nullable=False, server_default=text("gen_random_uuid()")),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", ("queued", "sent", "failed", "abandoned")),
    UniqueConstraint("user_id", "due_at"),
    UniqueConstraint("unsubscribe_token"),
    Index("ix_digests_open", "due_at", postgresql_where=text("status IN ('queued', 'failed')")),
    Index("ix_digests_batch", "batch_id", postgresql_where=text("batch_id IS NOT NULL")),
)
_NOTIFICATIONS = Table(
    "notifications",
    _TABLES,
    identity(),
    Column("user_id", String(128), ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("subscription_id", Uuid, ForeignKey("subscriptions.id", ondelete="CASCADE"), nullable=False),
    Column("title", Text, nullable=False),
    Column("content", Text),
    Column("source_url", Text),
    Column("metadata", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("read", Boolean, nullable=False, server_default=false()),
    Column("digest_id", Uuid, ForeignKey("digests.id", ondelete="SET NULL")),
    Column("past_at_adoption", Boolean, nullable=False, server_default=false()),
    stamp("created_at"),
    UniqueConstraint("subscription_id", "source_url"),
    Index(
        "ix_notifications_undigested",
        "user_id",
        "created_at",
        postgresql_where=text("digest_id IS NULL AND NOT past_at_adoption"),
    ),
    Index("ix_notifications_digest", "digest_id", postgresql_where=text("digest_id IS NOT NULL")),
    info={"written": True},
)
Table(
    "email_attempts",
    _TABLES,
    Column("batch_id", Uuid, ForeignKey("email_batches.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("digest_id", Uuid, ForeignKey("digests.id", ondelete="CASCADE"), nullable=False),
    Column("message", Text, nullable=False),
    instant("begun_at"),
    Column("outcome", Word),
    Column("reason", Text),
    Column("provider_message_id", Text),
    instant("answered_at"),
    one_of("outcome", ("accepted", "rejected", "deferred", "unknown")),
    Index("ix_email_attempts_digest", "digest_id"),
    Index("ix_email_attempts_open", "batch_id", postgresql_where=text("outcome IS NULL")),
)
Table(
    "mail_pauses",
    _TABLES,
    Column("service", Text, primary_key=True),
    instant("paused_until"),
    Column("pause_reason", Text),
)
Table(
    "parser_breakers",
    _TABLES,
    Column("parser", Text, primary_key=True),
    Column("failures", Integer, nullable=False, server_default="0"),
    instant("open_until"),
    instant("probe_until"),
    Column("last_error", Text),
    stamp("updated_at"),
)


def upgrade() -> None:
    """Make or adopt the tables; on a database in use, note when that was, and what was past by then."""
    adoption = Adoption(op.get_context(), "nifya", revision, _TABLES)
    adoption.run()
    if not adoption.had_rows:
        return
    op.execute(insert(_BASELINE).values(name="adoption"))
    # The application told of these already.
    op.execute(update(_NOTIFICATIONS).values(past_at_adoption=True))
    # What was read by then is not asked for again.
    op.execute(
        update(_PROCESSING)
        .where(_PROCESSING.c.status == "completed", _PROCESSING.c.last_success_at.is_(None))
        .values(last_success_at=_PROCESSING.c.last_run_at)
    )
