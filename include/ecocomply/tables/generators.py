"""Module 3, generators: their hours, fuel and tests, what went wrong, and the annual emissions report."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Date,
    Index,
    Integer,
    Numeric,
    Text,
    UniqueConstraint,
    Uuid,
    column,
    false,
    text,
    true,
)

from include.columns import Word, instant, one_of, stamp
from include.ecocomply.tables.base import belongs, by_user, holds, json, listed, tenant
from include.ecocomply.tables.obligations import VALIDATION_STATUSES

DATA_SOURCES = ("MANUAL", "AUTOMATED", "CSV", "MAINTENANCE_RECORD")
TEST_STATUSES = ("PENDING", "PASS", "FAIL", "NON_COMPLIANT")
AER_STATUSES = ("DRAFT", "READY", "SUBMITTED", "ACKNOWLEDGED")

GENERATORS = tenant(
    "generators",
    belongs("site_id", "sites"),
    # The registration.
    belongs("document_id", "documents", required=True),
    Column("generator_identifier", Text, nullable=False),
    Column("generator_type", Text),
    Column("capacity_mw", Numeric),
    Column("fuel_type", Text),
    Column("annual_run_hour_limit", Numeric),
    Column("monthly_run_hour_limit", Numeric),
    # The year of its hours begins on this day; none: on 1 January.
    Column("anniversary_date", Date),
    Column("current_year_hours", Numeric, nullable=False, server_default="0"),
    Column("current_month_hours", Numeric, nullable=False, server_default="0"),
    # The latest day whose run found other hours than before.
    Column("hours_as_of", Date),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    stamp("created_at"),
    stamp("updated_at"),
    instant("deleted_at"),
    Index("ix_generators_active", "id", postgresql_where=text("is_active AND deleted_at IS NULL")),
)

RUN_HOUR_RECORDS = tenant(
    "run_hour_records",
    belongs("generator_id", "generators", required=True),
    Column("recording_date", Date, nullable=False),
    Column("hours_recorded", Numeric, nullable=False),
    Column("notes", Text),
    stamp("created_at"),
    stamp("updated_at"),
    holds("hours_recorded", "hours_recorded >= 0 AND hours_recorded < 'Infinity'"),
    # A sum over a window needs no look at the rows.
    Index(
        "ix_run_hour_records_generator",
        "generator_id",
        "recording_date",
        postgresql_include=["hours_recorded"],
    ),
)

RUNTIME_MONITORING = tenant(
    "runtime_monitoring",
    belongs("site_id", "sites"),
    belongs("generator_id", "generators", required=True),
    Column("run_date", Date, nullable=False),
    Column("runtime_hours", Numeric, nullable=False),
    # In minutes, as the meter gives it.
    Column("run_duration", Numeric),
    Column("reason_code", Text),
    Column("entry_reason_notes", Text),
    Column("data_source", Word, nullable=False, server_default="MANUAL"),
    Column("validation_status", Word, nullable=False, server_default="PENDING"),
    by_user("validated_by"),
    instant("validated_at"),
    belongs("evidence_linkage_id", "evidence_items", on_delete="SET NULL"),
    Column("job_escalation_threshold_exceeded", Boolean, nullable=False, server_default=false()),
    Column("job_escalation_annual_limit_exceeded", Boolean, nullable=False, server_default=false()),
    Column("job_escalation_monthly_limit_exceeded", Boolean, nullable=False, server_default=false()),
    Column("job_escalation_notification_sent", Boolean, nullable=False, server_default=false()),
    # An entry is looked at once, however old it is.
    instant("exceedance_checked_at"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("data_source", DATA_SOURCES),
    one_of("validation_status", VALIDATION_STATUSES),
    holds("runtime_hours", "runtime_hours >= 0 AND runtime_hours < 'Infinity'"),
    Index("ix_runtime_monitoring_generator", "generator_id", "run_date"),
    Index(
        "ix_runtime_monitoring_unchecked_of",
        "generator_id",
        "id",
        postgresql_where=text("validation_status = 'APPROVED' AND exceedance_checked_at IS NULL"),
    ),
    Index(
        "ix_runtime_monitoring_unvalidated",
        "created_at",
        "id",
        postgresql_where=text("validation_status = 'PENDING' AND data_source = 'MANUAL'"),
    ),
)

FUEL_USAGE_LOGS = tenant(
    "fuel_usage_logs",
    belongs("generator_id", "generators", required=True),
    Column("log_date", Date, nullable=False),
    Column("fuel_type", Text, nullable=False),
    Column("quantity", Numeric, nullable=False),
    Column("unit", Text, nullable=False),
    Column("sulphur_content_percentage", Numeric),
    Column("sulphur_content_mg_per_kg", Numeric),
    stamp("created_at"),
    stamp("updated_at"),
    CheckConstraint(column("quantity") >= 0, name="quantity"),
    Index("ix_fuel_usage_logs_generator", "generator_id", "log_date"),
)

SULPHUR_CONTENT_REPORTS = tenant(
    "sulphur_content_reports",
    belongs("generator_id", "generators", required=True),
    Column("test_date", Date, nullable=False),
    Column("fuel_type", Text),
    Column("batch_reference", Text),
    Column("sulphur_content_percentage", Numeric),
    Column("sulphur_content_mg_per_kg", Numeric),
    Column("compliance_status", Word, nullable=False, server_default="PENDING"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("compliance_status", TEST_STATUSES),
    Index("ix_sulphur_content_reports_generator", "generator_id", "test_date"),
)

STACK_TESTS = tenant(
    "stack_tests",
    belongs("generator_id", "generators", required=True),
    Column("test_date", Date, nullable=False),
    # Kilogrammes an hour of running.
    Column("nox_rate", Numeric),
    Column("so2_rate", Numeric),
    Column("co_rate", Numeric),
    Column("particulates_rate", Numeric),
    Column("compliance_status", Word, nullable=False, server_default="PENDING"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("compliance_status", TEST_STATUSES),
    Index("ix_stack_tests_generator", "generator_id", "test_date"),
)

GENERATOR_INCIDENTS = tenant(
    "generator_incidents",
    belongs("generator_id", "generators", required=True),
    Column("incident_date", Date, nullable=False),
    Column("description", Text, nullable=False),
    stamp("created_at"),
    stamp("updated_at"),
    Index("ix_generator_incidents_generator", "generator_id", "incident_date"),
)

AER_DOCUMENTS = tenant(
    "aer_documents",
    belongs("site_id", "sites"),
    belongs("document_id", "documents", required=True),
    Column("reporting_period_start", Date, nullable=False),
    Column("reporting_period_end", Date, nullable=False),
    Column("submission_deadline", Date),
    Column("status", Word, nullable=False, server_default="DRAFT"),
    # None: every active generator of the registration.
    listed("generator_ids", Uuid),
    json("generator_data", "[]"),
    json("fuel_consumption_data", "[]"),
    json("emissions_data", "[]"),
    json("incidents_data", "[]"),
    Column("total_run_hours", Numeric),
    Column("is_validated", Boolean, nullable=False, server_default=false()),
    json("validation_errors", "[]"),
    Column("generated_file_path", Text),
    Column("csv_file_path", Text),
    Column("generation_time_ms", Integer),
    instant("generated_at"),
    instant("submitted_at"),
    by_user("created_by"),
    # One a request, or one a period where nobody asked; an application's own has none.
    Column("dedupe_key", Text),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("status", AER_STATUSES),
    CheckConstraint(
        column("reporting_period_end") >= column("reporting_period_start"), name="reporting_period"
    ),
    UniqueConstraint("document_id", "dedupe_key"),
    info={"written": True},
)
