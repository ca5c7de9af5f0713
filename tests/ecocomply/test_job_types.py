"""The catalogue in the code says what the catalogue of all systems says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import Connection, text

from include.ecocomply.job_types import (
    DAGS,
    FAILURES,
    JOB_DAGS,
    FailureRule,
    Told,
    attempts_of,
    dags_of,
    failure_rule,
)

CATALOGUE: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "catalogue.yaml").read_text())


def test_every_dag_is_in_the_catalogue() -> None:
    """36 jobs are specified, and two of them are two DAGs each."""
    assert list(DAGS) == list(CATALOGUE["dags"])
    assert len(JOB_DAGS) == len(DAGS) == 38
    assert len({dag.job_type for dag in JOB_DAGS}) == 36


@pytest.mark.parametrize("dag_id", CATALOGUE["dags"])
def test_a_dag_is_as_the_catalogue_has_it(dag_id: str) -> None:
    """Type, pool, priority, timeout, attempts and delays: the DAG and its row in the table go by the same values."""
    said, dag = CATALOGUE["dags"][dag_id], DAGS[dag_id]
    longest = max(said["timeout"]) if isinstance(said["timeout"], list) else said["timeout"]
    attempts = said.get("attempts", CATALOGUE["attempts"])
    assert (dag.job_type, dag.pool, dag.priority, dag.timeout, dag.attempts) == (
        said["job_type"], said["pool"], said["priority"], longest, attempts,
    )  # fmt: skip
    assert list(dag.delays) == CATALOGUE["delays"][: attempts - 1]
    assert attempts_of(dag.job_type) == attempts


def test_hearts_beat_every_minute() -> None:
    """3.1, 3.2: every half minute for large documents and for imports."""
    assert {dag.job_type for dag in JOB_DAGS if dag.heartbeat == 30} == {
        "DOCUMENT_PROCESSING", "EXCEL_IMPORT_PROCESSING"
    }  # fmt: skip
    assert {dag.heartbeat for dag in JOB_DAGS} == {30, 60}


def test_the_database_ranks_the_types_as_the_catalogue_does(connection: Connection) -> None:
    """A row's priority of 0 means its type's own, which the database looks up by itself."""
    ranks = {"HIGH": 3, "NORMAL": 2, "LOW": 1}
    for dag in JOB_DAGS:
        added = connection.execute(
            text("INSERT INTO background_jobs (job_type) VALUES (:type) RETURNING urgency"),
            {"type": dag.job_type},
        )
        assert added.scalar_one() == ranks[dag.priority], dag.job_type


@pytest.mark.parametrize(
    ("job_type", "severity", "told"),
    [
        ("DOCUMENT_PROCESSING", "WARNING", Told.REQUESTER),
        ("MONITORING_SCHEDULE", "ERROR", Told.ADMINS),
        ("DEADLINE_ALERT", "CRITICAL", Told.ADMINS),
        ("EVIDENCE_REMINDER", "WARNING", Told.ADMINS),
        ("SAMPLING_SCHEDULE", "ERROR", Told.ADMINS),
        ("RUN_HOUR_MONITORING", "ERROR", Told.ADMINS),
        ("AER_GENERATION", "ERROR", Told.REQUESTER),
        ("PERMIT_RENEWAL_REMINDER", "WARNING", Told.ADMINS),
        ("CROSS_SELL_TRIGGER_DETECTION", "INFO", Told.OPERATORS),
        ("AUDIT_PACK_GENERATION", "ERROR", Told.REQUESTER),
        # Not in the table: ERROR, and CRITICAL where the priority is HIGH.
        ("RISK_SCORE_CALCULATION", "ERROR", Told.ADMINS),
        ("evidence-retention-job", "ERROR", Told.ADMINS),
        ("PROCESS_ESCALATIONS", "CRITICAL", Told.ADMINS),
        ("notification-delivery-job", "CRITICAL", Told.ADMINS),
        ("NO_SUCH_JOB", "ERROR", Told.ADMINS),
    ],
)
def test_how_grave_a_failure_is(job_type: str, severity: Any, told: Told) -> None:
    """18.3's table, and what holds for the types that it leaves out."""
    assert failure_rule(job_type) == FailureRule(severity, told)


def test_the_table_names_known_types() -> None:
    """A type that is misspelt there would be judged by the rule for all others."""
    assert all(dags_of(job_type) for job_type in FAILURES)
    assert attempts_of("NO_SUCH_JOB") == 1
