"""The specification's tables: made, or taken over from the application that has them."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    Boolean,
    Column,
    Date,
    ForeignKey,
    Integer,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    false,
    insert,
    text,
)

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
    "users",
    _TABLES,
    identity(),
    Column("email", Text),
    Column("full_name", Text),
    stamp("created_at"),
    stamp("updated_at"),
)
Table(
    "contractors",
    _TABLES,
    identity(),
    Column("name", Text),
    Column("email", Text),
    Column("cnrpp_id", Text),
    Column("status", Word, nullable=False, server_default="active"),
    Column("cnrpp_expiry_date", Date),
    instant("last_cnrpp_alert_sent_at"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", ("active", "inactive")),
)
Table(
    "test_sessions",
    _TABLES,
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
    one_of(
        "status",
        (
            "pending",
            "active",
            "retrieval_due",
            "mailed",
            "results_pending",
            "complete",
            "cancelled",
            "expired",
        ),
    ),
)
Table(
    "results",
    _TABLES,
    identity(),
    Column("test_session_id", Uuid, ForeignKey("test_sessions.id"), nullable=False),
    Column("value_bq_m3", Numeric),
    instant("measured_at"),
    stamp("created_at"),
    UniqueConstraint("test_session_id"),
    info={"written": True},
)
Table(
    "certificates",
    _TABLES,
    identity(),
    Column("test_session_id", Uuid, ForeignKey("test_sessions.id"), nullable=False),
    Column("certificate_number", Text),
    Column("status", Word, nullable=False, server_default="valid"),
    Column("issued_on", Date),
    Column("valid_until", Date),
    instant("expired_at"),
    Column("pdf_needs_regeneration", Boolean, nullable=False, server_default=false()),
    Column("pdf_path", Text),
    stamp("created_at"),
    stamp("updated_at"),
    UniqueConstraint("test_session_id"),
    UniqueConstraint("certificate_number"),
    one_of("status", ("valid", "expired")),
    info={"written": True},
)
Table(
    "email_log",
    _TABLES,
    identity(),
    Column("user_id", Uuid, ForeignKey("users.id"), nullable=False),
    Column("test_session_id", Uuid, ForeignKey("test_sessions.id")),
    # An application's other types stay as they are; the words below are those that the jobs write.
    Column(
        "email_type",
        Word,
        nullable=False,
        info={"words": ("day_30", "day_60", "day_80", "day_88", "results_prompt")},
    ),
    Column("status", Word, nullable=False, server_default="queued"),
    instant("scheduled_at"),
    instant("sent_at"),
    Column("provider_message_id", Text),
    Column("retry_count", Integer, nullable=False, server_default="0"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", ("queued", "sent", "failed", "cancelled", "duplicate", "abandoned")),
    info={"written": True},
)
Table(
    "jobs_state",
    _TABLES,
    # Nothing refers to it, so an application's number will do.
    Column(
        "id",
        Uuid,
        primary_key=True,
        server_default=text("gen_random_uuid()"),
        info={"any_type": True},
    ),
    Column("job_name", Text, nullable=False),
    instant("last_run_at"),
    instant("last_poll_timestamp"),
    UniqueConstraint("job_name"),
    info={"written": True},
)


def upgrade() -> None:
    """Make or adopt the tables; on a database in use, note when that was."""
    adoption = Adoption(op.get_context(), "clearpath", revision, _TABLES)
    adoption.run()
    if adoption.had_rows:
        op.execute(insert(_BASELINE).values(name="adoption"))
