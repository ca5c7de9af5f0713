"""Rows that start, wait, are refused or at work already, of two companies and of none."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from tests.dags.states import EVERYTHING
from tests.ecocomply.jobs_world import IDLE, OVER, DagRun, WorldWithRuns, outside_with_runs, world_with_runs
from tests.ecocomply.world import COMPANY, OTHER, OWNER, STRANGER, add, name, people

PARAMS = {"job_id": None}
BOOKKEEPING = {"queue_audit": {"id", EVERYTHING}}

outside = outside_with_runs

RISK, CLOCKS = "ecocomply_risk_score_calculation", "ecocomply_update_compliance_clocks"
LIVE_RUN = DagRun(RISK, f"job__{name('job', 6)}")
ENDED_RUN = DagRun(RISK, f"job__{name('job', 7)}")


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; the sixth has a live run, the seventh one that has failed."""
    people(connection)
    own = {"payload": {"company_id": str(COMPANY)}, "company_id": COMPANY}
    jobs: tuple[dict[str, Any], ...] = (
        {"job_type": "RISK_SCORE_CALCULATION", "created_by": OWNER, **own},
        {"job_type": "UPDATE_COMPLIANCE_CLOCKS", "priority": 9, **own},
        {"job_type": "DEADLINE_ALERT", "payload": {"company_id": str(OTHER)}, "company_id": OTHER},
        {"job_type": "NO_SUCH_JOB"},
        # Another company's.
        {"job_type": "RISK_SCORE_CALCULATION", **own, "created_by": STRANGER, "company_id": OTHER},
        {"job_type": "RISK_SCORE_CALCULATION", "dag_run_id": LIVE_RUN.key},
        {"job_type": "RISK_SCORE_CALCULATION", "dag_run_id": ENDED_RUN.key, "as_of": now - timedelta(days=1)},
        {"job_type": "RISK_SCORE_CALCULATION", "scheduled_for": now + timedelta(days=90)},
        {"job_type": "digest-delivery-job", "payload": {"frequency": "WEEKLY"}},
    )
    due = {"scheduled_for": now - timedelta(minutes=1), "created_at": now - timedelta(minutes=1)}
    add(connection, "background_jobs", *(due | {"id": name("job", n)} | job for n, job in enumerate(jobs, 1)))


def world(now: datetime) -> WorldWithRuns:
    """Return the world outside."""
    return world_with_runs({LIVE_RUN: IDLE, ENDED_RUN: OVER})
