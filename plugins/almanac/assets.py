"""Assets that one DAG emits and another waits for, each named once."""

from __future__ import annotations

from airflow.sdk import Asset

DEADLINES_SCHEDULED = Asset("ecocomply_deadlines_scheduled")
"""EcoComply's deadlines, schedules and statuses are those of the day (2.1); the alerts follow (2.2)."""
