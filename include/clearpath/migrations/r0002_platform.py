"""What the platform adds: claims, the ledger of alerts, the lab's set-aside records, keys and indexes."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from alembic import op
from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Date,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    and_,
    column,
    false,
    insert,
    literal,
    literal_column,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB

from include.adoption import Adoption
from include.as_of import local_date
from include.columns import Word, baseline_table, identity, instant, metadata, one_of, stamp

revision = "0002"
down_revision = "0001"

_ZONE = ZoneInfo("America/Edmonton")

_TABLES = metadata()
_BASELINE = baseline_table(_TABLES)

_CONTRACTORS = Table(
    "contractors",
    _TABLES,
    identity(),
    Column("status", Word),
    Column("cnrpp_expiry_date", Date),
    Index(
        "ix_contractors_active_expiry",
        "cnrpp_expiry_date",
        postgresql_where=text("status = 'active'"),
    ),
)
Table(
    "test_sessions",
    _TABLES,
    identity(),
    Column("user_id", Uuid),
    Column("contractor_id", Uuid),
    Column("clearpath_order_id", Text),
    Column("kit_serial_number", Text),
    Column("expected_completion_date", Date),
    Index("ix_test_sessions_user", "user_id"),
    Index("ix_test_sessions_contractor", "contractor_id"),
    Index("ix_test_sessions_order", "clearpath_order_id"),
    Index("ix_test_sessions_kit", "kit_serial_number"),
    Index(
        "ix_test_sessions_open_completion",
        "expected_completion_date",
        postgresql_where=text("status IN ('active', 'retrieval_due', 'mailed', 'results_pending')"),
    ),
)
Table(
    "results",
    _TABLES,
    identity(),
    Column("below_detection", Boolean, nullable=False, server_default=false()),
    Column("reported_value", Text),
    Column("reported_unit", Text),
    Column("source", Text),
    Column("lab_record_id", Text),
    UniqueConstraint("lab_record_id"),
    CheckConstraint(
        and_(column("value_bq_m3") >= 0, column("value_bq_m3") < literal_column("'Infinity'")),
        name="value_bq_m3",
    ),
)
_CERTIFICATES = Table(
    "certificates",
    _TABLES,
    identity(),
    Column("valid_until", Date),
    Column("pdf_path", Text),
    Column("current_pdf_path", Text),
    instant("rendered_at"),
    Column("render_error", Text),
    instant("render_failed_at"),
    Column("past_at_adoption", Boolean, nullable=False, server_default=false()),
    stamp("created_at"),
    Index("ix_certificates_valid_until", "valid_until", postgresql_where=text("status = 'valid'")),
    Index(
        "ix_certificates_without_pdf",
        "created_at",
        "id",
        postgresql_where=text("pdf_path IS NULL AND NOT past_at_adoption"),
    ),
)
Table(
    "email_batches",
    _TABLES,
    identity(),
    Column("provider", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    stamp("claimed_at"),
    instant("closed_at"),
    Index("ix_email_batches_open", "claimed_at", postgresql_where=text("closed_at IS NULL")),
)
Table(
    "email_log",
    _TABLES,
    identity(),
    Column("user_id", Uuid),
    Column("test_session_id", Uuid),
    Column("email_type", Word),
    instant("scheduled_at"),
    Column("permanent", Boolean, nullable=False, server_default=false()),
    Column("outcome_unknown", Boolean, nullable=False, server_default=false()),
    instant("next_attempt_at"),
    Column("status_reason", Text),
    Column("last_error", Text),
    Column("batch_id", Uuid, ForeignKey("email_batches.id", ondelete="SET NULL")),
    stamp("updated_at"),
    Index(
        "ix_email_log_due",
        "scheduled_at",
        "id",
        postgresql_where=text("status = 'queued' OR (status = 'failed' AND NOT permanent)"),
    ),
    Index("ix_email_log_session", "test_session_id", "email_type"),
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
    Index(
        "uq_email_log_claimed_once",
        "user_id",
        "test_session_id",
        "email_type",
        unique=True,
        postgresql_where=text("batch_id IS NOT NULL"),
    ),
)
Table(
    "email_attempts",
    _TABLES,
    Column("batch_id", Uuid, ForeignKey("email_batches.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("email_id", Uuid, ForeignKey("email_log.id", ondelete="CASCADE")),
    Column("cnrpp_alert_id", Uuid, ForeignKey("cnrpp_alerts.id", ondelete="CASCADE")),
    Column("message", Text, nullable=False),
    instant("begun_at"),
    Column("outcome", Word),
    Column("reason", Text),
    Column("provider_message_id", Text),
    instant("answered_at"),
    one_of("outcome", ("accepted", "rejected", "deferred", "unknown")),
    CheckConstraint("num_nonnulls(email_id, cnrpp_alert_id) = 1", name="subject"),
    Index("ix_email_attempts_email", "email_id"),
    Index(
        "ix_email_attempts_cnrpp_alert", "cnrpp_alert_id", postgresql_where=text("cnrpp_alert_id IS NOT NULL")
    ),
    Index("ix_email_attempts_open", "batch_id", postgresql_where=text("outcome IS NULL")),
)
_CNRPP_ALERTS = Table(
    "cnrpp_alerts",
    _TABLES,
    identity(),
    Column("contractor_id", Uuid, ForeignKey("contractors.id", ondelete="CASCADE"), nullable=False),
    Column("alert_month", Date, nullable=False),
    Column("expiry_date", Date),
    instant("run_as_of"),
    Column("batch_id", Uuid, ForeignKey("email_batches.id", ondelete="SET NULL")),
    instant("sent_at"),
    Column("provider_message_id", Text),
    Column("last_error", Text),
    Column("outcome_unknown", Boolean, nullable=False, server_default=false()),
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
Table(
    "lab_set_aside",
    _TABLES,
    identity(),
    Column("lab_record_key", Text, nullable=False),
    Column("reason_code", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("excerpt", Text, nullable=False),
    Column("record", JSONB),
    stamp("first_seen_at"),
    stamp("last_tried_at"),
    Column("tries", Integer, nullable=False, server_default="1"),
    instant("resolved_at"),
    UniqueConstraint("lab_record_key"),
    CheckConstraint("char_length(excerpt) <= 500", name="excerpt"),
    Index("ix_lab_set_aside_open", "first_seen_at", postgresql_where=text("resolved_at IS NULL")),
)
Table(
    "jobs_state",
    _TABLES,
    Column("job_name", Text),
    instant("paused_until"),
    Column("pause_reason", Text),
)

_NOTIFY = """
CREATE OR REPLACE FUNCTION clearpath_certificates_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('clearpath_certificates', '');
    RETURN NULL;
END
$$
"""
_TRIGGER = """
CREATE OR REPLACE TRIGGER clearpath_certificates_changed AFTER INSERT ON certificates
FOR EACH STATEMENT EXECUTE FUNCTION clearpath_certificates_changed()
"""


def upgrade() -> None:
    """Make what is missing; in an adopted database, mark what was past by then as seen."""
    Adoption(op.get_context(), "clearpath", revision, _TABLES).run()
    op.execute(_NOTIFY)
    op.execute(_TRIGGER)
    adopted_at = op.get_bind().scalar(select(_BASELINE.c.at).where(_BASELINE.c.name == "adoption"))
    if adopted_at is not None:
        _baseline(adopted_at)


def _baseline(adopted_at: datetime) -> None:
    op.execute(
        update(_CERTIFICATES)
        .where(_CERTIFICATES.c.pdf_path.is_(None), _CERTIFICATES.c.created_at <= adopted_at)
        .values(past_at_adoption=True)
    )
    today = local_date(adopted_at, _ZONE)
    # The job's own rule takes these out of service; no mail tells of what is long known.
    expired = select(
        _CONTRACTORS.c.id,
        literal(today.replace(day=1)),
        _CONTRACTORS.c.cnrpp_expiry_date,
        literal(adopted_at),
        true(),
    ).where(_CONTRACTORS.c.status == "active", _CONTRACTORS.c.cnrpp_expiry_date < today)
    columns = ["contractor_id", "alert_month", "expiry_date", "run_as_of", "past_at_adoption"]
    op.execute(insert(_CNRPP_ALERTS).from_select(columns, expired))
