"""Rows of NIFYA that a test names by what matters to it, and runs of jobs over them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row, Table, event, insert, select, text, update

from include.job import perform
from include.nifya import ZONE, tables
from include.run import EngineDatabase, Run
from tests.nifya.world import SETTINGS

AS_OF = datetime(2026, 11, 25, 11, 30, tzinfo=UTC)
"""12:30 in Madrid on a Wednesday."""


@dataclass
class Rows:
    """A NIFYA database, empty at first."""

    db: EngineDatabase

    def add(self, table: Table, **values: Any) -> Any:
        """Insert a row and return its id."""
        with self.db.engine.begin() as connection:
            return connection.execute(insert(table).values(**values).returning(table.c.id)).scalar_one()

    def user(self, user: str = "ana", **values: Any) -> str:
        """Insert a user of long ago, whose digest was due at 9 in Madrid last week too."""
        old = {"email": f"{user}@nifya.test", "name": user.title(), "created_at": AS_OF - timedelta(days=30)}
        return self.add(tables.USERS, id=user, **(old | values))

    def subscription(self, user: str = "ana", **values: Any) -> uuid.UUID:
        """Insert a subscription to becas in the BOE that was made three days ago."""
        old = {"type_id": "boe", "prompts": ["becas"], "created_at": AS_OF - timedelta(days=3)}
        return self.add(tables.SUBSCRIPTIONS, user_id=user, **(old | values))

    def notification(self, subscription: uuid.UUID, user: str = "ana", **values: Any) -> uuid.UUID:
        """Insert a notification of an hour ago; its address is its own unless it is given."""
        said = {
            "title": "Becas", "source_url": f"https://www.boe.es/{uuid.uuid4()}",
            "created_at": AS_OF - timedelta(hours=1),
        }  # fmt: skip
        return self.add(tables.NOTIFICATIONS, user_id=user, subscription_id=subscription, **(said | values))

    def all(self, table: Table, *order: Any) -> Sequence[Row[Any]]:
        with self.db.engine.begin() as connection:
            return connection.execute(select(table).order_by(*order)).all()

    def one(self, table: Table, key: Any) -> Row[Any]:
        with self.db.engine.begin() as connection:
            return connection.execute(select(table).where(table.c.id == key)).one()

    def status(self, subscription: uuid.UUID) -> Row[Any]:
        """Return the processing status of a subscription."""
        table = tables.SUBSCRIPTION_PROCESSING
        with self.db.engine.begin() as connection:
            return connection.execute(select(table).where(table.c.subscription_id == subscription)).one()

    def change(self, table: Table, key: Any, **values: Any) -> None:
        with self.db.engine.begin() as connection:
            connection.execute(update(table).where(table.c.id == key).values(**values))

    def execute(self, statement: str) -> None:
        with self.db.engine.begin() as connection:
            connection.execute(text(statement))

    @contextmanager
    def meanwhile(self, after: str, happens: Callable[[], Any]) -> Generator[None]:
        """Let something happen once, right after a job's statement whose file begins with these words."""
        waiting = [happens]

        def look(conn: Any, cursor: Any, sql: str, *rest: Any) -> None:
            if waiting and sql.startswith(f"-- {after}"):
                waiting.pop()()

        event.listen(self.db.engine, "after_cursor_execute", look)
        try:
            yield
        finally:
            event.remove(self.db.engine, "after_cursor_execute", look)
        assert not waiting, f"no statement begins with {after!r}"

    def run(self, job: Any, as_of: datetime = AS_OF, **params: Any) -> Run:
        """Return a run of a job, not begun."""
        return Run(
            job=job.NAME,
            run_id="run 1",
            as_of=as_of,
            zone=ZONE,
            db=self.db,
            params=params,
            settings={name: SETTINGS.get(name) or value for name, value in job.SETTINGS.items()},
        )

    def perform(self, job: Any, outside: Any, as_of: datetime = AS_OF, **params: Any) -> Run:
        """Run a job's steps and return the run."""
        run = self.run(job, as_of, **params)
        perform(job, run, outside)
        return run
