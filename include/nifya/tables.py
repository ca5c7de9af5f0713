"""NIFYA's tables as the newest migration leaves them.

`scheduled_jobs`, `users`, `subscriptions`, `subscription_processing` and `notifications` are the application's;
an adopted one can differ, so a statement writes `ON CONFLICT DO NOTHING` without naming columns. The rest is
the platform's.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Date,
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
    text,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB

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
from include.nifya.job_queue import JOBS
from include.queues.schema import audit_table, claim_columns, queue_indexes

JOB_STATUSES = ("pending", "processing", "completed", "failed")
PROCESSING_STATUSES = ("pending", "processing", "completed", "failed")
DIGEST_STATUSES = ("queued", "sent", "failed", "abandoned")
ATTEMPT_OUTCOMES = ("accepted", "rejected", "deferred", "unknown")

_LAST_HOUR = 23

METADATA = metadata()

USERS = Table(
    "users",
    METADATA,
    Column("id", String(128), primary_key=True),
    Column("email", Text),
    Column("name", Text),
    # An IANA name; the user's day, and the hour of the digest, are told by it.
    Column("timezone", Text, nullable=False, server_default="Europe/Madrid"),
    # The local hour, 0 to 23, at which the digest is due.
    Column("digest_hour", Integer, nullable=False, server_default="9"),
    # As of the run that made the latest digest: what was crossed before it is settled.
    instant("last_digest_at"),
    # Set by the link in a digest; no digest goes out from then on.
    instant("digests_stopped_at"),
    stamp("created_at"),
    stamp("updated_at"),
    CheckConstraint(
        and_(column("digest_hour") >= 0, column("digest_hour") <= _LAST_HOUR), name="digest_hour"
    ),
)

SCHEDULED_JOBS = Table(
    "scheduled_jobs",
    METADATA,
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
    # The id of the first row of a recurring job, on every row after it; null on the first.
    Column("series_id", Uuid),
    # Why no row follows this one although it has a schedule.
    Column("recurrence_ended", Text),
    Column("attempts", Integer, nullable=False, server_default="0"),
    # When a later try may start, or one that a person wants now; the planned time stays.
    instant("retry_at"),
    instant("finished_at"),
    # Runs of the series that failed in a row just before this one, and when the first of them was planned.
    Column("failures_in_row", Integer, nullable=False, server_default="0"),
    instant("failing_since"),
    Column("failing_told", Boolean, nullable=False, server_default=false()),
    # What the operators are told of the streak under, from before they are; all that fail together share it.
    Column("failing_cause", Text),
    # The job that a person wanted once more, or before its time: this one does it once, outside the series.
    Column("copy_of", Uuid),
    # False until the operators were told that the series ended unasked, under the cause.
    Column("ending_told", Boolean, nullable=False, server_default=true()),
    Column("ending_cause", Text),
    *claim_columns(),
    one_of("status", JOB_STATUSES),
    UniqueConstraint("series_id", "next_run_at"),
    Index("idx_scheduled_jobs_status", "status"),
    Index("idx_scheduled_jobs_next_run_at", "next_run_at"),
    Index("ix_scheduled_jobs_listed", "next_run_at", "id"),
    Index(
        "ix_scheduled_jobs_failing",
        "failing_since",
        postgresql_where=text("failures_in_row >= 3 AND NOT failing_told"),
    ),
    Index(
        "ix_scheduled_jobs_copies",
        "copy_of",
        postgresql_where=text("copy_of IS NOT NULL AND status IN ('pending', 'processing')"),
    ),
    Index("ix_scheduled_jobs_endings", "id", postgresql_where=text("NOT ending_told")),
    *queue_indexes(JOBS),
    info={"written": True},
)

SUBSCRIPTIONS = Table(
    "subscriptions",
    METADATA,
    identity(),
    Column("user_id", String(128), ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text),
    # Which parser reads for it: boe, doga.
    Column("type_id", Text, nullable=False, info={"any_type": True}),
    # A list of texts: what the user wants to hear of. An application may have it as an array of text.
    Column("prompts", JSONB, nullable=False, server_default=text("'[]'::jsonb"), info={"any_type": True}),
    Column("active", Boolean, nullable=False, server_default=true()),
    stamp("created_at"),
    stamp("updated_at"),
    Index("ix_subscriptions_user", "user_id"),
)

SUBSCRIPTION_PROCESSING = Table(
    "subscription_processing",
    METADATA,
    identity(),
    Column("subscription_id", Uuid, ForeignKey("subscriptions.id", ondelete="CASCADE"), nullable=False),
    Column("status", Word, nullable=False, server_default="pending"),
    # As of the latest run, whatever became of it.
    instant("last_run_at"),
    # As of the latest run that succeeded: content is asked for from there on.
    instant("last_success_at"),
    Column("error", Text),
    Column("failures_in_row", Integer, nullable=False, server_default="0"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", PROCESSING_STATUSES),
    UniqueConstraint("subscription_id"),
    info={"written": True},
)

EMAIL_BATCHES = Table(
    "email_batches",
    METADATA,
    # Its text is the idempotency key.
    identity(),
    Column("provider", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    stamp("claimed_at"),
)

DIGESTS = Table(
    "digests",
    METADATA,
    identity(),
    Column("user_id", String(128), ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    # The instant of the user's local hour that was crossed, and that this digest counts for.
    instant("due_at", required=True),
    # The user's own date of that instant, for which there is one digest; null on older doubles.
    Column("due_on", Date),
    Column("status", Word, nullable=False, server_default="queued"),
    Column("retry_count", Integer, nullable=False, server_default="0"),
    Column("permanent", Boolean, nullable=False, server_default=false()),
    Column("outcome_unknown", Boolean, nullable=False, server_default=false()),
    instant("next_attempt_at"),
    # The claim that holds the row; null when none does.
    Column("batch_id", Uuid, ForeignKey("email_batches.id", ondelete="SET NULL")),
    instant("sent_at"),
    Column("provider_message_id", Text),
    Column("last_error", Text),
    # What the link in the mail carries; the id itself stands in logs.
    Column("unsubscribe_token", Uuid, nullable=False, server_default=text("gen_random_uuid()")),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", DIGEST_STATUSES),
    UniqueConstraint("user_id", "due_at"),
    UniqueConstraint("user_id", "due_on"),
    UniqueConstraint("unsubscribe_token"),
    Index("ix_digests_open", "due_at", postgresql_where=text("status IN ('queued', 'failed')")),
    Index("ix_digests_batch", "batch_id", postgresql_where=text("batch_id IS NOT NULL")),
)

NOTIFICATIONS = Table(
    "notifications",
    METADATA,
    identity(),
    Column("user_id", String(128), ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("subscription_id", Uuid, ForeignKey("subscriptions.id", ondelete="CASCADE"), nullable=False),
    Column("title", Text, nullable=False),
    Column("content", Text),
    Column("source_url", Text),
    Column("metadata", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("read", Boolean, nullable=False, server_default=false()),
    # The digest that tells of it; null while none does.
    Column("digest_id", Uuid, ForeignKey("digests.id", ondelete="SET NULL")),
    # Was there before the platform came: told by the application, never to be in a digest of ours.
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

EMAIL_ATTEMPTS = Table(
    "email_attempts",
    METADATA,
    Column("batch_id", Uuid, ForeignKey("email_batches.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("digest_id", Uuid, ForeignKey("digests.id", ondelete="CASCADE"), nullable=False),
    # As include.stored_message packs it, without a frame: most of a digest is what it tells.
    Column("message", Text, nullable=False),
    # From then on the provider may have it.
    instant("begun_at"),
    Column("outcome", Word),
    Column("reason", Text),
    Column("provider_message_id", Text),
    instant("answered_at"),
    one_of("outcome", ATTEMPT_OUTCOMES),
    Index("ix_email_attempts_digest", "digest_id"),
    Index("ix_email_attempts_open", "batch_id", postgresql_where=text("outcome IS NULL")),
)

MAIL_PAUSES = Table(
    "mail_pauses",
    METADATA,
    # The connection whose provider wants to be left alone.
    Column("service", Text, primary_key=True),
    instant("paused_until"),
    Column("pause_reason", Text),
)

PARSER_BREAKERS = Table(
    "parser_breakers",
    METADATA,
    Column("parser", Text, primary_key=True),
    # In a row, the latest included; back to 0 with a success.
    Column("failures", Integer, nullable=False, server_default="0"),
    # Nothing is asked of the parser before.
    instant("open_until"),
    # One caller probes at a time; a probe that died is given up for lost then.
    instant("probe_until"),
    Column("last_error", Text),
    stamp("updated_at"),
)

QUEUE_AUDIT = audit_table(METADATA)

BASELINE = baseline_table(METADATA)

ADOPTION_FINDINGS = findings_table(METADATA)
