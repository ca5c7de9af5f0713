"""What NIFYA's tests work on: a database of its own, people, subscriptions and jobs in it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Row, insert, select, text, update

from include.nifya import ZONE, job_runs, job_series, tables
from include.run import EngineDatabase, Run
from tests.fakes.world import FakeAlerts
from tests.nifya.rows import Rows

SUBSCRIPTION = uuid.uuid5(uuid.NAMESPACE_URL, "subscription")
DAILY = {"type": "daily", "hourOfDay": 9, "minuteOfHour": 0, "timezone": "Europe/Madrid"}
FOR_IT = {"subscriptionId": str(SUBSCRIPTION)}
PROCESS, DIGEST = "process-subscription", "send-digest-emails"


@dataclass
class Jobs:
    """A database with one user and one active subscription, and what tests do with its jobs."""

    database: EngineDatabase
    alerts: FakeAlerts = field(default_factory=FakeAlerts)

    def __post_init__(self) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(insert(tables.USERS).values(id="ana", email="ana@example.test"))
            connection.execute(
                insert(tables.SUBSCRIPTIONS).values(
                    id=SUBSCRIPTION, user_id="ana", type_id="boe", prompts=["beca"]
                )
            )

    def run(self, **values: Any) -> Run:
        now = datetime.now(UTC)
        return Run(job="scheduledJobs", run_id="run 1", as_of=now, zone=ZONE, db=self.database, **values)

    def add(self, type_: str = PROCESS, *, ago: timedelta = timedelta(minutes=1), **values: Any) -> uuid.UUID:
        """Insert a job that is due since a while; return its id."""
        data = FOR_IT if type_ == PROCESS else {}
        row = {"type": type_, "data": data, "next_run_at": datetime.now(UTC) - ago} | values
        with self.database.engine.begin() as connection:
            return connection.execute(
                insert(tables.SCHEDULED_JOBS).values(row).returning(tables.SCHEDULED_JOBS.c.id)
            ).scalar_one()

    def row(self, job: uuid.UUID) -> Row[Any]:
        table = tables.SCHEDULED_JOBS
        with self.database.engine.connect() as connection:
            return connection.execute(select(table).where(table.c.id == job)).one()

    def after(self, job: uuid.UUID) -> Sequence[Row[Any]]:
        """Return the jobs that came after the first of a series, in the order of their times."""
        table = tables.SCHEDULED_JOBS
        with self.database.engine.connect() as connection:
            wanted = select(table).where(table.c.series_id == job).order_by(table.c.next_run_at)
            return connection.execute(wanted).all()

    def set(self, job: uuid.UUID, **values: Any) -> None:
        table = tables.SCHEDULED_JOBS
        with self.database.engine.begin() as connection:
            connection.execute(update(table).where(table.c.id == job).values(values))

    def execute(self, statement: str, **values: Any) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(text(statement), values)

    def perform(self, handlers: Mapping[str, Any], **values: Any) -> Run:
        """Take back, run what is due, tell of what keeps failing."""
        run = self.run(**values)
        job_runs.take_back(run)
        job_runs.run_due(run, None, handlers)
        job_series.tell_failing(run, self.alerts)
        return run


SILENT = """
SELECT count(*)
FROM scheduled_jobs AS j
WHERE j.status IN ('completed', 'failed')
  AND jsonb_typeof(j.schedule) <> 'null'
  AND NOT EXISTS (
      SELECT
      FROM scheduled_jobs AS o
      WHERE coalesce(o.series_id, o.id) = coalesce(j.series_id, j.id)
        AND (o.status IN ('pending', 'processing') OR o.recurrence_ended IS NOT NULL)
  )
"""


@pytest.fixture
def jobs(database_of: Callable[..., EngineDatabase]) -> Iterator[Jobs]:
    """Give jobs in a database of the test's own; whatever became of them, each series goes on or says why not."""
    made = Jobs(database_of("nifya"))
    yield made
    with made.database.engine.connect() as connection:
        assert connection.execute(text(SILENT)).scalar_one() == 0


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Return what inserts rows into an empty NIFYA and reads them again."""
    return Rows(database_of("nifya"))
