"""Letters and jobs on both sides of their days."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, update

from include.ecocomply.tables.jobs import BACKGROUND_JOBS
from tests.dags.states import EVERYTHING
from tests.ecocomply.world import COMPANY, OTHER, add, name, people

PARAMS = {"retention_days": 30}
BOOKKEEPING = {"queue_audit": {EVERYTHING}}

# The days since the job's end, and since its letter was resolved: None is an open one, 0 none at all.
_JOBS = ((91, 0), (89, 0), (200, 31), (200, 29), (200, None), (40, 31), (95, 0))


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows, and one that waits; the last is another company's."""
    people(connection)
    add(connection, "background_jobs", {"id": name("job", 99), "job_type": "RISK_SCORE_CALCULATION"})
    for number, (ended, resolved) in enumerate(_JOBS, start=1):
        job_id, company = name("job", number), OTHER if number == len(_JOBS) else COMPANY
        job = {"id": job_id, "job_type": "RISK_SCORE_CALCULATION", "company_id": company}
        add(connection, "background_jobs", job)
        one = update(BACKGROUND_JOBS).where(BACKGROUND_JOBS.c.id == job_id)
        connection.execute(one.values(status="RUNNING", attempts=1))
        end = now - timedelta(days=ended)
        connection.execute(one.values(status="FAILED" if resolved != 0 else "COMPLETED", completed_at=end))
        if resolved != 0:
            decided = {} if resolved is None else {"resolved_at": now - timedelta(days=resolved)}
            letter = {"id": name("letter", number), "job_id": job_id, "company_id": company}
            add(
                connection,
                "dead_letter_queue",
                letter
                | {"error_message": "disk is full", "last_attempted_at": end, "created_at": end}
                | decided,
            )
