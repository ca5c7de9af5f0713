"""The record of every background job, of those that failed for good, and of everything that was done."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Text,
    UniqueConstraint,
    Uuid,
    column,
    text,
)

from include.columns import Word, instant, one_of, stamp
from include.ecocomply.background_jobs import JOBS
from include.ecocomply.tables.base import METADATA, belongs, by_user, json, tenant
from include.queues.schema import audit_table, claim_columns, queue_indexes

JOB_STATUSES = ("PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED")
HEALTH_STATUSES = ("HEALTHY", "STALE", "FAILED")
RESOLUTIONS = ("RETRIED", "PERMANENT_FAILURE")

# Rows of these three without a company are the service's alone.
BACKGROUND_JOBS = tenant(
    "background_jobs",
    Column("job_type", Text, nullable=False),
    Column("status", Word, nullable=False, server_default="PENDING"),
    # Larger is more urgent; 0 means the job type's own, which `urgency` then has.
    Column("priority", Integer, nullable=False, server_default="0"),
    Column("urgency", Integer, nullable=False, server_default="0"),
    json("payload"),
    json("result", None),
    # How far it is: `current` and `total`.
    json("progress", None),
    Column("error_message", Text),
    Column("error_stack", Text),
    stamp("scheduled_for"),
    instant("started_at"),
    instant("completed_at"),
    # Attempts after the first, kept by the database, as max_attempts is of max_retries.
    Column("retry_count", Integer, nullable=False, server_default="0"),
    Column("max_retries", Integer, nullable=False, server_default="2"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("max_attempts", Integer),
    Column("timeout_seconds", Integer, nullable=False, server_default="300"),
    Column("retry_backoff_seconds", Integer, nullable=False, server_default="2"),
    instant("last_heartbeat"),
    Column("health_status", Word, nullable=False, server_default="HEALTHY"),
    Column("heartbeat_interval_seconds", Integer, nullable=False, server_default="60"),
    # The two tables name each other.
    Column(
        "dead_letter_queue_id",
        Uuid,
        ForeignKey(
            "dead_letter_queue.id",
            ondelete="SET NULL",
            use_alter=True,
            name="fk_background_jobs_dead_letter_queue_id",
        ),
    ),
    # Whose claims the job works under; nobody's: it is the service's.
    by_user("created_by"),
    # The run of the DAG, and what it is as of, also when it is tried again.
    Column("dag_run_id", Text),
    instant("as_of"),
    Column("dedupe_key", Text),
    *claim_columns(),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", JOB_STATUSES),
    one_of("health_status", HEALTH_STATUSES),
    CheckConstraint(column("max_retries") >= 0, name="max_retries"),
    UniqueConstraint("dedupe_key"),
    Index("ix_background_jobs_dag_run", "dag_run_id"),
    Index("ix_background_jobs_stale", "last_heartbeat", postgresql_where=text("status = 'RUNNING'")),
    # Metrics of an hour, a day, a week.
    Index("ix_background_jobs_created", "created_at", "job_type"),
    Index(
        "ix_background_jobs_ended",
        "completed_at",
        postgresql_where=text("status IN ('COMPLETED', 'FAILED', 'CANCELLED')"),
    ),
    *queue_indexes(JOBS),
    owned=False,
    info={"written": True},
)

DEAD_LETTER_QUEUE = tenant(
    "dead_letter_queue",
    belongs("job_id", "background_jobs", required=True),
    Column("error_message", Text, nullable=False),
    Column("error_stack", Text),
    json("error_context"),
    Column("retry_count", Integer, nullable=False, server_default="0"),
    stamp("last_attempted_at"),
    instant("resolved_at"),
    by_user("resolved_by"),
    # Who resolved it here.
    Column("resolved_by_airflow_user", Text),
    Column("resolution", Word),
    Column("resolution_notes", Text),
    stamp("created_at"),
    one_of("resolution", RESOLUTIONS),
    Index(
        "uq_dead_letter_queue_unresolved", "job_id", unique=True, postgresql_where=text("resolved_at IS NULL")
    ),
    Index("ix_dead_letter_queue_open", "created_at", postgresql_where=text("resolved_at IS NULL")),
    Index("ix_dead_letter_queue_resolved", "resolved_at", postgresql_where=text("resolved_at IS NOT NULL")),
    owned=False,
    info={"written": True},
)

AUDIT_LOGS = tenant(
    "audit_logs",
    by_user("user_id"),
    Column("action_type", Text, nullable=False),
    Column("entity_type", Text, nullable=False),
    Column("entity_id", Uuid),
    json("previous_values", None),
    json("new_values", None),
    # A row's error is told once a job, row, reason and day.
    Column("dedupe_key", Text),
    stamp("created_at"),
    UniqueConstraint("dedupe_key"),
    # A company's latest.
    Index("ix_audit_logs_company", "company_id", "created_at"),
    Index("ix_audit_logs_entity", "entity_id", "created_at"),
    Index("ix_audit_logs_created", "created_at"),
    owned=False,
    info={"written": True},
)

QUEUE_AUDIT = audit_table(METADATA)
