"""Generated data is the same for the same seed, keeps every check, and takes seconds in plenty."""

from __future__ import annotations

import time
from typing import Any

import pytest
from sqlalchemy import Connection, text

from include.ecocomply.generator import generate
from include.ecocomply.generator.order import ROWS
from include.ecocomply.tables import METADATA
from include.errors import BadInput
from tests.ecocomply.conftest import TODAY
from tests.ecocomply.test_row_level_security import one

# What says when a row was written, whatever the data is of.
_STAMPS = ("created_at", "updated_at", "claimed_at", "moved_at", "linked_at", "assigned_at", "activated_at",
           "last_attempted_at", "extraction_timestamp", "scheduled_for")  # fmt: skip


def digests(database: Any, **sizes: Any) -> dict[str, str]:
    """Generate into a fresh database and return a hash of every table's rows."""
    unstamped = " ".join(f"- '{name}'" for name in _STAMPS)
    row = f"md5((to_jsonb(t) {unstamped})::text)"
    with database.engine.begin() as connection:
        generate(connection, today=TODAY, **sizes)
        connection.execute(text("SET LOCAL timezone = 'UTC'"))
        return {
            name: one(
                connection, f"SELECT md5(coalesce(string_agg({row}, '' ORDER BY {row}), '')) FROM {name} AS t"
            )
            for name in METADATA.tables
            if name != "queue_audit"
        }


def test_the_same_seed_gives_the_same_rows(database_of: Any) -> None:
    """Also in another zone: a benchmark or a demo of tomorrow must be of the same data."""
    sizes = {"companies": 3, "obligations": 60}
    first = digests(database_of("ecocomply"), **sizes)
    assert digests(database_of("ecocomply", "America/Edmonton"), **sizes) == first
    other = digests(database_of("ecocomply"), **sizes, seed="another")
    same = {name for name, found in other.items() if found == first[name]}
    assert same == {"adoption_findings", "baseline", "delivery_pauses"}


def test_every_table_of_companies_has_rows_of_each(connection: Connection) -> None:
    """A table without rows is one that no job's demo, benchmark or policy is seen to work on."""
    for table in METADATA.sorted_tables:
        if "company_id" in table.columns:
            companies = one(connection, f"SELECT count(DISTINCT company_id) FROM {table.name}")
            expected = 2 if table.name.startswith("consultant_") else 3
            assert companies == expected, table.name


def test_the_rows_are_of_every_kind(connection: Connection) -> None:
    """What is due, overdue, done, expiring and missing: each job finds something to do."""
    found = {
        row[0]
        for row in connection.execute(
            text("SELECT status FROM deadlines UNION SELECT 'obligation ' || status FROM obligations")
        )
    }
    assert {"PENDING", "DUE_SOON", "OVERDUE", "COMPLETED"} <= found
    assert {
        "obligation OVERDUE",
        "obligation DUE_SOON",
        "obligation PENDING",
        "obligation COMPLETED",
    } <= found
    for what in (
        "deadlines WHERE sla_breached_at IS NOT NULL",
        "documents WHERE expiry_date BETWEEN :today AND CAST(:today AS date) + 90",
        "evidence_items WHERE expiry_date BETWEEN :today AND CAST(:today AS date) + 30",
        "runtime_monitoring WHERE validation_status = 'PENDING' AND data_source = 'MANUAL'",
        "consignment_notes WHERE pre_validation_status = 'NOT_VALIDATED'",
        "corrective_action_items WHERE assigned_to IS NULL",
        "module_activations JOIN modules AS m ON m.id = module_id WHERE status = 'INACTIVE' AND module_code LIKE '%3'",
        "users WHERE NOT is_active",
        "users WHERE phone IS NULL",
        "generators WHERE annual_run_hour_limit IS NULL OR anniversary_date IS NULL",
        "background_jobs WHERE status = 'PENDING'",
        "background_jobs WHERE status = 'RUNNING'",
        "dead_letter_queue WHERE resolved_at < CAST(:today AS date) - 30",
    ):
        assert one(
            connection, f"SELECT count(*) FROM {what}", **({"today": TODAY} if ":today" in what else {})
        ), what


def test_due_dates_are_base_date_plus_whole_periods(connection: Connection) -> None:
    """T5: the data keeps to the rule that the jobs keep to, or they would rewrite all of it."""
    wrong = """
        SELECT count(*) FROM deadlines AS d JOIN obligations AS o ON o.id = d.obligation_id
        WHERE o.frequency = 'MONTHLY' AND NOT EXISTS (
            SELECT FROM generate_series(1, 40) AS k WHERE (o.base_date + k * interval '1 month')::date = d.due_date
        )
    """
    assert one(connection, wrong) == 0
    assert one(connection, "SELECT count(*) FROM deadlines WHERE due_date < compliance_period_start") == 0


def test_one_company_without_an_obligation_will_do(database_of: Any) -> None:
    """The smallest data there is; without a second company nobody is a consultant."""
    with database_of("ecocomply").engine.begin() as connection:
        made = generate(connection, today=TODAY, companies=1, obligations=0)
        assert made["companies_rows"] == 1
        assert made["obligations_rows"] == made["consultant_client_assignments_rows"] == 0
        with pytest.raises(BadInput, match="0 companies"):
            generate(connection, today=TODAY, companies=0)


def test_ten_thousand_obligations_take_seconds(database_of: Any) -> None:
    """A statement a table, never one a row."""
    with database_of("ecocomply").engine.begin() as connection:
        began = time.monotonic()
        made = generate(connection, today=TODAY, companies=40, obligations=10_000)
        assert time.monotonic() - began < 60
    assert made["obligations_rows"] == 10_000
    assert made["deadlines_rows"] > 25_000
    assert len(made) == len(ROWS)
