"""Module 2, trade effluent: what a consent limits, and the laboratory's results."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Date,
    Index,
    Integer,
    Numeric,
    Text,
    false,
    text,
    true,
)

from include.columns import Word, one_of, stamp
from include.ecocomply.migrations.r0001_tables.base import REPEATING, belongs, holds, tenant

PARAMETERS = tenant(
    "parameters",
    belongs("site_id", "sites", required=True),
    belongs("document_id", "documents", required=True),
    Column("parameter_type", Text, nullable=False),
    Column("limit_value", Numeric),
    Column("unit", Text),
    Column("sampling_frequency", Word, nullable=False, server_default="WEEKLY"),
    Column("sampling_weekday", Integer, nullable=False, server_default="1"),
    Column("next_sample_date", Date),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("sampling_frequency", REPEATING),
    holds("sampling_weekday", "sampling_weekday BETWEEN 1 AND 7"),
    Index("ix_parameters_active", "id", postgresql_where=text("is_active")),
)

LAB_RESULTS = tenant(
    "lab_results",
    belongs("site_id", "sites"),
    belongs("parameter_id", "parameters", required=True),
    Column("sample_date", Date, nullable=False),
    Column("sample_id", Text),
    Column("recorded_value", Numeric),
    Column("unit", Text),
    Column("is_exceedance", Boolean, nullable=False, server_default=false()),
    stamp("created_at"),
    stamp("updated_at"),
    Index("ix_lab_results_parameter", "parameter_id", "sample_date"),
)
