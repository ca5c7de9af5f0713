"""Rows of ArcVest that a test names by what matters to it, and runs of jobs over them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Table, insert, select, text

from include.arcvest import ZONE, tables
from include.job import perform
from include.run import EngineDatabase, Run

AS_OF = datetime(2026, 11, 25, 12, 30, tzinfo=UTC)
"""06:30 in Chicago, in winter."""


@dataclass
class Rows:
    """An ArcVest database, empty at first."""

    db: EngineDatabase

    def add(self, table: Table, **values: Any) -> uuid.UUID:
        """Insert a row and return its id."""
        with self.db.engine.begin() as connection:
            # The guard lets in none but pending jobs; a test's rows have come some way.
            connection.execute(text("ALTER TABLE job_queue DISABLE TRIGGER queue_guard_inserts"))
            made = connection.execute(insert(table).values(**values).returning(table.c.id)).scalar_one()
            connection.execute(text("ALTER TABLE job_queue ENABLE TRIGGER queue_guard_inserts"))
            return made

    def job(self, job_type: str, **values: Any) -> uuid.UUID:
        """Insert a job and return its id."""
        return self.add(tables.JOB_QUEUE, job_type=job_type, **values)

    def idea(self, title: str = "An idea", **values: Any) -> uuid.UUID:
        """Insert an idea and return its id; its URL is its own unless it is given."""
        given = {"source": "news", "url": f"https://news.test/{uuid.uuid4()}"} | values
        return self.add(tables.IDEA_QUEUE, title=title, **given)

    def all(self, table: Table, *order: Any) -> Sequence[Any]:
        """Return every row of a table."""
        with self.db.engine.begin() as connection:
            return connection.execute(select(table).order_by(*order)).all()

    def one(self, table: Table, key: uuid.UUID) -> Any:
        """Return the row of an id."""
        with self.db.engine.begin() as connection:
            return connection.execute(select(table).where(table.c.id == key)).one()

    def run(
        self,
        job: Any,
        as_of: datetime = AS_OF,
        settings: Mapping[str, str | None] | None = None,
        **params: Any,
    ) -> Run:
        """Return a run of a job, not begun."""
        return Run(
            job=job.NAME,
            run_id="run 1",
            as_of=as_of,
            zone=ZONE,
            db=self.db,
            params=params,
            settings={**job.SETTINGS, **(settings or {})},
        )

    def perform(self, job: Any, outside: Any, as_of: datetime = AS_OF, **params: Any) -> Run:
        """Run a job's steps and return the run."""
        run = self.run(job, as_of, **params)
        perform(job, run, outside)
        return run
