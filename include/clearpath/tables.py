"""ClearPath's tables as the newest migration leaves them.

An application's database that was adopted can differ: a status may be an enum type, a unique key that old
rows broke stands as a partial index. So a statement writes `ON CONFLICT DO NOTHING` without naming columns,
and compares a status with words, never with an array of text.
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
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    and_,
    column,
    false,
    literal_column,
    text,
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

SESSION_STATUSES = (
    "pending",
    "active",
    "retrieval_due",
    "mailed",
    "results_pending",
    "complete",
    "cancelled",
    "expired",
)
CONTRACTOR_STATUSES = ("active", "inactive")
CERTIFICATE_STATUSES = ("valid", "expired")
EMAIL_STATUSES = ("queued", "sent", "failed", "cancelled", "duplicate", "abandoned")
ATTEMPT_OUTCOMES = ("accepted", "rejected", "deferred", "unknown")
SEQUENCED_TYPES = ("day_30", "day_60", "day_80", "day_88", "results_prompt")
"""The mail that a session's course brings; `email_log` also holds an application's other types."""

METADATA = metadata()

USERS = Table(
    "users",
    METADATA,
    identity(),
    Column("email", Text),
    Column("full_name", Text),
    stamp("created_at"),
    stamp("updated_at"),
)

CONTRACTORS = Table(
    "contractors",
    METADATA,
    identity(),
    Column("name", Text),
    Column("email", Text),
    Column("cnrpp_id", Text),
    Column("status", Word, nullable=False, server_default="active"),
    Column("cnrpp_expiry_date", Date),
    instant("last_cnrpp_alert_sent_at"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", CONTRACTOR_STATUSES),
    Index(
        "ix_contractors_active_expiry",
        "cnrpp_expiry_date",
        postgresql_where=text("status = 'active'"),
    ),
)

TEST_SESSIONS = Table(
    "test_sessions",
    METADATA,
    identity(),
    Column("user_id", Uuid, ForeignKey("users.id"), nullable=False),
    Column("contractor_id", Uuid, ForeignKey("contractors.id")),
    Column("status", Word, nullable=False, server_default="pending"),
    Column("clearpath_order_id", Text),
    Column("kit_serial_number", Text),
    Column("address", Text),
    instant("activated_at"),
    Column("expected_completion_date", Date),
    instant("expired_at"),
    instant("completed_at"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", SESSION_STATUSES),
    Index("ix_test_sessions_user", "user_id"),
    Index("ix_test_sessions_contractor", "contractor_id"),
    # Not unique: two sessions of one order or kit are what the lab's "ambiguous" means.
    Index("ix_test_sessions_order", "clearpath_order_id"),
    Index("ix_test_sessions_kit", "kit_serial_number"),
    Index(
        "ix_test_sessions_open_completion",
        "expected_completion_date",
        postgresql_where=text("status IN ('active', 'retrieval_due', 'mailed', 'results_pending')"),
    ),
)

RESULTS = Table(
    "results",
    METADATA,
    identity(),
    Column("test_session_id", Uuid, ForeignKey("test_sessions.id"), nullable=False),
    Column("value_bq_m3", Numeric),
    # `value_bq_m3` is then the lab's limit: the true value lies below it.
    Column("below_detection", Boolean, nullable=False, server_default=false()),
    Column("reported_value", Text),
    Column("reported_unit", Text),
    Column("source", Text),
    Column("lab_record_id", Text),
    instant("measured_at"),
    stamp("created_at"),
    UniqueConstraint("test_session_id"),
    UniqueConstraint("lab_record_id"),
    # NaN is greater than infinity here, so this keeps out both.
    CheckConstraint(
        and_(column("value_bq_m3") >= 0, column("value_bq_m3") < literal_column("'Infinity'")),
        name="value_bq_m3",
    ),
)

CERTIFICATES = Table(
    "certificates",
    METADATA,
    identity(),
    Column("test_session_id", Uuid, ForeignKey("test_sessions.id"), nullable=False),
    Column("certificate_number", Text),
    Column("status", Word, nullable=False, server_default="valid"),
    Column("issued_on", Date),
    Column("valid_until", Date),
    instant("expired_at"),
    Column("pdf_needs_regeneration", Boolean, nullable=False, server_default=false()),
    # The original: written once, never replaced.
    Column("pdf_path", Text),
    # What a download gives: the original, or a later one that was made beside it.
    Column("current_pdf_path", Text),
    instant("rendered_at"),
    Column("render_error", Text),
    instant("render_failed_at"),
    # Issued before the platform came: its PDF is the application's, so it does not wait for one of ours.
    Column("past_at_adoption", Boolean, nullable=False, server_default=false()),
    stamp("created_at"),
    stamp("updated_at"),
    UniqueConstraint("test_session_id"),
    UniqueConstraint("certificate_number"),
    one_of("status", CERTIFICATE_STATUSES),
    Index("ix_certificates_valid_until", "valid_until", postgresql_where=text("status = 'valid'")),
    Index(
        "ix_certificates_without_pdf",
        "created_at",
        "id",
        postgresql_where=text("pdf_path IS NULL AND NOT past_at_adoption"),
    ),
    Index("ix_certificates_listed", "issued_on", "id"),
)

EMAIL_BATCHES = Table(
    "email_batches",
    METADATA,
    # Its text is the idempotency key.
    identity(),
    Column("provider", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    stamp("claimed_at"),
    instant("closed_at"),
    Index("ix_email_batches_open", "claimed_at", postgresql_where=text("closed_at IS NULL")),
)

EMAIL_LOG = Table(
    "email_log",
    METADATA,
    identity(),
    Column("user_id", Uuid, ForeignKey("users.id"), nullable=False),
    Column("test_session_id", Uuid, ForeignKey("test_sessions.id")),
    Column("email_type", Word, nullable=False),
    Column("status", Word, nullable=False, server_default="queued"),
    instant("scheduled_at"),
    instant("sent_at"),
    Column("provider_message_id", Text),
    Column("retry_count", Integer, nullable=False, server_default="0"),
    Column("permanent", Boolean, nullable=False, server_default=false()),
    Column("outcome_unknown", Boolean, nullable=False, server_default=false()),
    instant("next_attempt_at"),
    Column("status_reason", Text),
    Column("last_error", Text),
    # The claim that holds the row; null when none does.
    Column("batch_id", Uuid, ForeignKey("email_batches.id", ondelete="SET NULL")),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", EMAIL_STATUSES),
    Index(
        "ix_email_log_due",
        "scheduled_at",
        "id",
        postgresql_where=text("status = 'queued' OR (status = 'failed' AND NOT permanent)"),
    ),
    Index("ix_email_log_listed", "scheduled_at", "id"),
    Index("ix_email_log_session", "test_session_id", "email_type"),
    # What a second copy is looked for among; the session comes last, since null equals null there.
    Index(
        "ix_email_log_out",
        "user_id",
        "email_type",
        "test_session_id",
        postgresql_where=text("status = 'sent' OR batch_id IS NOT NULL OR outcome_unknown"),
    ),
    Index(
        "ix_email_log_failures",
        "updated_at",
        postgresql_where=text("status IN ('failed', 'abandoned')"),
    ),
    Index("ix_email_log_batch", "batch_id", postgresql_where=text("batch_id IS NOT NULL")),
    # Held from the claim on, so that what the provider took can always be recorded as sent.
    Index(
        "uq_email_log_sequenced_once",
        "user_id",
        "test_session_id",
        "email_type",
        unique=True,
        postgresql_nulls_not_distinct=True,
        postgresql_where=text(
            "email_type IN ('day_30', 'day_60', 'day_80', 'day_88', 'results_prompt') "
            "AND (status = 'sent' OR batch_id IS NOT NULL)"
        ),
    ),
    # Of an application's own types two may be sent, but no two are claimed side by side.
    Index(
        "uq_email_log_claimed_once",
        "user_id",
        "test_session_id",
        "email_type",
        unique=True,
        postgresql_where=text("batch_id IS NOT NULL"),
    ),
)

EMAIL_FRAMES = Table(
    "email_frames",
    METADATA,
    # The SHA-256 of the content: what messages of one template have in common. Never changed or deleted.
    Column("name", Text, primary_key=True),
    Column("content", Text, nullable=False),
    stamp("created_at"),
)

EMAIL_ATTEMPTS = Table(
    "email_attempts",
    METADATA,
    Column("batch_id", Uuid, ForeignKey("email_batches.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    # What the message is of: a mail of the log, or an alert of the C-NRPP ledger. Cascades: an application
    # that deletes its own row must not stumble over ours.
    Column("email_id", Uuid, ForeignKey("email_log.id", ondelete="CASCADE")),
    Column("cnrpp_alert_id", Uuid, ForeignKey("cnrpp_alerts.id", ondelete="CASCADE")),
    # As include.stored_message packs it: JSON that gives the message byte for byte as claimed.
    Column("message", Text, nullable=False),
    # Which of email_frames it stands in. No foreign key: its check would cost more than the row.
    Column("frame", Text),
    # From then on the provider may have it.
    instant("begun_at"),
    Column("outcome", Word),
    Column("reason", Text),
    Column("provider_message_id", Text),
    instant("answered_at"),
    one_of("outcome", ATTEMPT_OUTCOMES),
    CheckConstraint("num_nonnulls(email_id, cnrpp_alert_id) = 1", name="subject"),
    Index("ix_email_attempts_email", "email_id"),
    Index(
        "ix_email_attempts_cnrpp_alert", "cnrpp_alert_id", postgresql_where=text("cnrpp_alert_id IS NOT NULL")
    ),
    Index("ix_email_attempts_open", "batch_id", postgresql_where=text("outcome IS NULL")),
)

CNRPP_ALERTS = Table(
    "cnrpp_alerts",
    METADATA,
    identity(),
    Column("contractor_id", Uuid, ForeignKey("contractors.id", ondelete="CASCADE"), nullable=False),
    # The first day of the local month that the alert counts for.
    Column("alert_month", Date, nullable=False),
    Column("expiry_date", Date),
    instant("run_as_of"),
    # The claim that holds the row; null when none does.
    Column("batch_id", Uuid, ForeignKey("email_batches.id", ondelete="SET NULL")),
    instant("sent_at"),
    Column("provider_message_id", Text),
    Column("last_error", Text),
    Column("outcome_unknown", Boolean, nullable=False, server_default=false()),
    # Had expired before the platform came: settled without a mail, never to be sent.
    Column("past_at_adoption", Boolean, nullable=False, server_default=false()),
    stamp("created_at"),
    UniqueConstraint("contractor_id", "alert_month"),
    CheckConstraint("extract(day from alert_month) = 1", name="alert_month"),
    Index(
        "ix_cnrpp_alerts_unsent",
        "created_at",
        postgresql_where=text("sent_at IS NULL AND NOT outcome_unknown AND NOT past_at_adoption"),
    ),
)

LAB_SET_ASIDE = Table(
    "lab_set_aside",
    METADATA,
    identity(),
    Column("lab_record_key", Text, nullable=False),
    Column("reason_code", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("excerpt", Text, nullable=False),
    # Null if the record is not JSON that Postgres can hold.
    Column("record", JSONB),
    stamp("first_seen_at"),
    stamp("last_tried_at"),
    Column("tries", Integer, nullable=False, server_default="1"),
    instant("resolved_at"),
    UniqueConstraint("lab_record_key"),
    CheckConstraint("char_length(excerpt) <= 500", name="excerpt"),
    Index("ix_lab_set_aside_open", "first_seen_at", postgresql_where=text("resolved_at IS NULL")),
)

JOBS_STATE = Table(
    "jobs_state",
    METADATA,
    identity(),
    Column("job_name", Text, nullable=False),
    instant("last_run_at"),
    instant("last_poll_timestamp"),
    instant("paused_until"),
    Column("pause_reason", Text),
    UniqueConstraint("job_name"),
)

BASELINE = baseline_table(METADATA)

ADOPTION_FINDINGS = findings_table(METADATA)
