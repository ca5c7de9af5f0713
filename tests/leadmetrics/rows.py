"""Rows of LeadMetrics that a test names by what matters to it, and runs of its job over them."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Table, insert, select, text, update

from include.job import perform
from include.leadmetrics import ZONE, scheduled_tasks, tables
from include.leadmetrics.mail_templates import SLUGS
from include.run import EngineDatabase, Run
from tests.fakes.world import FakeAlerts, FakeMail
from tests.leadmetrics.world import SETTINGS

EARLY, LATE, ALERT = "signup.reminder.early", "signup.reminder.late", "signup.alert.internal"
MINUTE = timedelta(minutes=1)
_numbers = itertools.count(1)


@dataclass
class Rows:
    """A LeadMetrics database, empty at first, and the world around it."""

    db: EngineDatabase
    mail: FakeMail = field(default_factory=lambda: FakeMail(default_sender="LeadMetrics <a@b.test>"))
    alerts: FakeAlerts = field(default_factory=FakeAlerts)
    queue: Any = None

    def session(self, stage: str = "step_2", **values: Any) -> str:
        """Insert a registration and return its id."""
        given = {"id": f"s{next(_numbers)}"} | values
        given = {"email": f"{given['id']}@example.test", "currentStage": stage} | given
        with self.db.engine.begin() as connection:
            connection.execute(insert(tables.REGISTRATION_SESSION).values(**given))
        return str(given["id"])

    def task(
        self, kind: str = EARLY, session: str | None = None, moves: Sequence[str] = (), **values: Any
    ) -> str:
        """Insert a task that is due since a minute, move it through statuses, and return its id."""
        table = tables.SCHEDULED_TASK
        payload = {"sessionId": session or self.session()}
        if kind == ALERT:
            payload["email"] = f"{payload['sessionId']}@example.test"
        given = {"payload": payload, "scheduledAt": datetime.now(UTC) - MINUTE} | values
        early = {name: given.pop(name) for name in ("heartbeat_at", "claimed_by") if name in given}
        with self.db.engine.begin() as connection:
            key = connection.execute(
                insert(table).values(taskType=kind, **given).returning(table.c.id)
            ).scalar_one()
            for status in moves:
                connection.execute(update(table).where(table.c.id == key).values(status=status, **early))
        return str(key)

    def notification(self, slug: str = SLUGS[0], session: str | None = None, **values: Any) -> uuid.UUID:
        """Insert a notification that waits, and return its id."""
        session = session or self.session()
        given = {
            "dedupe_key": f"{slug}__{session}",
            "tenant_id": session,
            "template_slug": slug,
            "recipient": f"{session}@example.test",
            "data": {"resumeUrl": "https://app.leadmetrics.test/signup?session=1", "email": "a@b.test"},
        } | values
        table = tables.NOTIFICATION_OUTBOX
        with self.db.engine.begin() as connection:
            return connection.execute(insert(table).values(**given).returning(table.c.id)).scalar_one()

    def all(self, table: Table, *order: Any) -> Sequence[Any]:
        """Return every row of a table."""
        with self.db.engine.begin() as connection:
            return connection.execute(select(table).order_by(*order)).all()

    def one(self, key: str) -> Any:
        """Return the task of an id."""
        table = tables.SCHEDULED_TASK
        with self.db.engine.begin() as connection:
            return connection.execute(select(table).where(table.c.id == key)).one()

    def outbox(self) -> list[Any]:
        """Return the notifications, by their keys."""
        return list(self.all(tables.NOTIFICATION_OUTBOX, tables.NOTIFICATION_OUTBOX.c.dedupe_key))

    def execute(self, statement: str, **binds: Any) -> None:
        """Do anything else to the database."""
        with self.db.engine.begin() as connection:
            connection.execute(text(statement), binds)

    def run(
        self,
        as_of: datetime | None = None,
        settings: Mapping[str, str | None] | None = None,
        max_tasks: int = 50,
    ) -> Run:
        """Return a run of the job, not begun; a given `as_of` is one that a person named."""
        return Run(
            job=scheduled_tasks.NAME,
            run_id="run 1",
            as_of=as_of or datetime.now(UTC),
            as_of_given=as_of is not None,
            zone=ZONE,
            db=self.db,
            params={"max_tasks": max_tasks},
            settings={**scheduled_tasks.SETTINGS, **SETTINGS, **(settings or {})},
        )

    def perform(self, **given: Any) -> Run:
        """Run the job's steps and return the run."""
        run = self.run(**given)
        perform(scheduled_tasks, run, self.outside())
        return run

    def outside(self) -> scheduled_tasks.Outside:
        """Return the collaborators: the queue where there is one, else the mail."""
        return scheduled_tasks.Outside(self.queue, None if self.queue else self.mail, self.alerts)
