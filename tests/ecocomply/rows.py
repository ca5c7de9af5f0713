"""Companies, people and notifications for the tests of what EcoComply tells people."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

from sqlalchemy import Row, Table, insert, select, text, update

from include.ecocomply.access import ServiceDatabase
from include.ecocomply.notices import Notice
from include.ecocomply.recipients import ASSIGNEE
from include.ecocomply.tables.base import METADATA
from include.job import Job, perform
from include.run import EngineDatabase, Run

AS_OF = datetime(2026, 11, 25, 9, 0, tzinfo=UTC)
TODAY = AS_OF.date()
SETTINGS = {
    "APP_URL": "https://app.ecocomply.test",
    "PUBLIC_URL": "https://public.ecocomply.test/almanac/ecocomply",
    "ADMIN_ALERT_EMAIL": None,
}


@dataclass
class Rows:
    """A database, and short ways to fill it and to look at it."""

    database: EngineDatabase
    company: UUID = field(default_factory=uuid4)
    site: UUID = field(default_factory=uuid4)

    def __post_init__(self) -> None:
        self.add("companies", id=self.company, name="Acme")
        self.add("sites", id=self.site, company_id=self.company, name="Leeds")

    def add(self, table: str, **values: Any) -> UUID:
        values.setdefault("id", uuid4())
        with self.database.engine.begin() as connection:
            connection.execute(insert(METADATA.tables[table]).values(**values))
        return values["id"]

    def change(self, table: str, key: UUID, **values: Any) -> None:
        made = METADATA.tables[table]
        with self.database.engine.begin() as connection:
            connection.execute(update(made).where(made.c.id == key).values(**values))

    def all(self, table: str, *order: str) -> Sequence[Row[Any]]:
        made: Table = METADATA.tables[table]
        with self.database.engine.begin() as connection:
            return connection.execute(select(made).order_by(*(made.c[name] for name in order))).all()

    def run_sql(self, statement: str, **binds: Any) -> Any:
        with self.database.engine.begin() as connection:
            return connection.execute(text(statement), binds)

    def as_enum(self, table: str, column: str, *words: str) -> None:
        """Make a column of words an enum type, as an application may have it: without the check and partial indexes."""
        for kind, name in self.run_sql(
            "SELECT 'CONSTRAINT', conname FROM pg_constraint "
            "WHERE conrelid = CAST(:name AS regclass) AND contype = 'c' AND pg_get_constraintdef(oid) LIKE :like "
            "UNION ALL SELECT 'INDEX', indexrelid::regclass::text FROM pg_index "
            "WHERE indrelid = CAST(:name AS regclass) AND pg_get_expr(indpred, indrelid) LIKE :like",
            name=table, like=f"%{column}%",
        ).all():  # fmt: skip
            self.run_sql(
                f'ALTER TABLE {table} DROP CONSTRAINT "{name}"'
                if kind == "CONSTRAINT"
                else f"DROP INDEX {name}"
            )
        self.run_sql(f"CREATE TYPE {table}_{column} AS ENUM ({str(words)[1:-1]})")
        self.run_sql(f"ALTER TABLE {table} ALTER {column} DROP DEFAULT")
        self.run_sql(
            f"ALTER TABLE {table} ALTER {column} TYPE {table}_{column} USING {column}::text::{table}_{column}"
        )

    def user(
        self, name: str, *roles: str, company: UUID | None = None, sites: Sequence[UUID] = (), **values: Any
    ) -> UUID:
        """Add a user with roles, assigned to sites."""
        owner = company or self.company
        given = {"email": f"{name}@ecocomply.test", "full_name": name, "company_id": owner} | values
        user = self.add("users", **given)
        for role in roles:
            self.add("user_roles", user_id=user, role=role)
        for site in sites:
            self.add("user_site_assignments", user_id=user, site_id=site)
        return user

    def notification(self, user: UUID, **values: Any) -> UUID:
        """Add a notification as an application does."""
        given = {
            "company_id": self.company, "user_id": user, "recipient_email": "ana@ecocomply.test", "channel": "EMAIL",
            "notification_type": "EVIDENCE_REMINDER", "subject": "Evidence Required", "body_text": "There is none.",
        }  # fmt: skip
        return self.add("notifications", **(given | values))

    def reader(self, name: str, frequency: str, **values: Any) -> UUID:
        """Add somebody who wants mails that remind of evidence by a frequency, a digest or at once."""
        user = self.user(name, **values)
        self.add(
            "notification_preferences", user_id=user, notification_type="EVIDENCE_REMINDER", channel="EMAIL",
            frequency_preference=frequency,
        )  # fmt: skip
        return user

    def notice(self, **values: Any) -> Notice:
        """Return a reminder of evidence for a due date, for an entity of its own."""
        given: dict[str, Any] = {
            "kind": "evidence_reminder", "company_id": self.company, "site_id": self.site, "entity_id": uuid4(),
            "recipients": ASSIGNEE, "counts_toward": date(2026, 11, 27),
            "values": {"obligation": "Stack test", "site": "Leeds", "due_date": date(2026, 11, 27)},
        }  # fmt: skip
        return Notice(**(given | values))

    def run(self, as_of: datetime = AS_OF, job: str = "test", **params: Any) -> Run:
        return Run(
            job=job,
            run_id=f"run {uuid4()}",
            as_of=as_of,
            zone=ZoneInfo("UTC"),
            db=ServiceDatabase(self.database),
            params=params,
            settings=SETTINGS,
            log=logging.getLogger("almanac"),
        )

    def perform(self, job: Job, outside: Any, as_of: datetime = AS_OF, **params: Any) -> Run:
        run = self.run(as_of, job.NAME, **params)
        perform(job, run, outside)
        return run
