"""Jobs that work, are slow, hang, ran out of time, or are another worker's."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, update

from include.ecocomply.job_records.dag_runs import RunStanding
from include.ecocomply.tables.jobs import BACKGROUND_JOBS
from tests.dags.states import EVERYTHING
from tests.ecocomply.jobs_world import (
    LIVE,
    OVER,
    TIMED_OUT,
    DagRun,
    WorldWithRuns,
    outside_with_runs,
    world_with_runs,
)
from tests.ecocomply.world import COMPANY, OTHER, add, name, people

BOOKKEEPING = {"queue_audit": {"id", EVERYTHING}}

outside = outside_with_runs

_DAG = "ecocomply_risk_score_calculation"
# How the run stands, how long the job has been silent (minutes), its attempts, and whose it is.
_JOBS: tuple[tuple[RunStanding | None, int, int, Any], ...] = (
    (LIVE, 0, 1, COMPANY),
    (LIVE, 9, 1, COMPANY),
    (OVER, 9, 1, COMPANY),
    (OVER, 9, 3, COMPANY),
    (TIMED_OUT, 1, 2, COMPANY),
    # A worker of the application's own: no run, and nobody's company.
    (None, 9, 3, None),
    (OVER, 9, 2, OTHER),
)


def _run(number: int) -> DagRun:
    return DagRun(_DAG, f"scheduled__{number}")


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows, and one that waits."""
    people(connection)
    add(connection, "background_jobs", {"id": name("job", 99), "job_type": "RISK_SCORE_CALCULATION"})
    for number, (stands, silent, attempts, company) in enumerate(_JOBS, start=1):
        job_id, run = name("job", number), _run(number)
        add(
            connection,
            "background_jobs",
            {"id": job_id, "job_type": "RISK_SCORE_CALCULATION", "company_id": company},
        )
        heard = now - timedelta(minutes=silent)
        connection.execute(
            update(BACKGROUND_JOBS)
            .where(BACKGROUND_JOBS.c.id == job_id)
            .values(
                status="RUNNING",
                attempts=attempts,
                started_at=now - timedelta(minutes=30),
                heartbeat_at=heard,
                claimed_by=f"{run.key} calculate {attempts}" if stands else "worker-7",
                dag_run_id=run.key if stands else None,
            )
        )


def world(now: datetime) -> WorldWithRuns:
    """Return the world outside."""
    return world_with_runs({_run(n): stands for n, (stands, *_) in enumerate(_JOBS, 1) if stands})
