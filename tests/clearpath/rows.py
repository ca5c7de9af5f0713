"""Rows of ClearPath's tables as a case needs them, a look at what became of them, and a job run over them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import Row, Table, event, insert, select, text, update

from include.clearpath import ZONE, tables
from include.job import perform
from include.run import EngineDatabase, Run
from tests.clearpath.world import PARAMS, SETTINGS
from tests.fakes.world import FakeAlerts, FakeLab, FakeMail, FakeStorage, World

AS_OF = datetime(2027, 3, 10, 9, tzinfo=UTC)
"""Three in the morning of Wednesday 10 March 2027 in Edmonton."""


def noon(day: date | str) -> datetime:
    """Return the instant at which it is noon in Edmonton on a day."""
    found = date.fromisoformat(day) if isinstance(day, str) else day
    return datetime(found.year, found.month, found.day, 12, tzinfo=ZONE).astimezone(UTC)


class Rows:
    """One ClearPath database; everything that is inserted is as an application would have it."""

    def __init__(self, database: EngineDatabase) -> None:
        self.database = database
        self.changed_tables = False

    def insert(self, table: Table, **values: Any) -> Any:
        with self.database.transaction() as tx:
            return tx.value(insert(table).values(**values).returning(table.c.id))

    def insert_many(self, table: Table, values: Sequence[Mapping[str, Any]]) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(insert(table), list(values))

    def user(self, email: str | None = "ana@example.test", full_name: str | None = "Ana Ñ") -> uuid.UUID:
        return self.insert(tables.USERS, email=email, full_name=full_name)

    def session(self, status: str = "active", **values: Any) -> uuid.UUID:
        """Insert a session of a user of its own, half-way through a test of 91 days, unless told otherwise."""
        ends = values.get("expected_completion_date") or datetime.now(ZONE).date() + timedelta(days=46)
        ordinary = {
            "status": status,
            "address": "1 Rue Ñ",
            "activated_at": noon(ends - timedelta(days=91)),
            "expected_completion_date": ends,
        }
        values = ordinary | values
        if "user_id" not in values:
            values["user_id"] = self.user()
        return self.insert(tables.TEST_SESSIONS, **values)

    def mail(
        self, session: uuid.UUID | None, email_type: str = "day_30", *, late: float = 30, **values: Any
    ) -> uuid.UUID:
        """Insert a mail of a session's user that is `late` minutes late."""
        if "user_id" not in values:
            values["user_id"] = (
                self.user() if session is None else self.one(tables.TEST_SESSIONS, session).user_id
            )
        values.setdefault("scheduled_at", datetime.now(UTC) - timedelta(minutes=late))
        return self.insert(tables.EMAIL_LOG, test_session_id=session, email_type=email_type, **values)

    def result(self, session: uuid.UUID, value: float = 148) -> uuid.UUID:
        return self.insert(tables.RESULTS, test_session_id=session, value_bq_m3=value, source="user")

    def certificate(self, session: uuid.UUID | None = None, **values: Any) -> uuid.UUID:
        """Insert a valid certificate, of a complete session with a result unless one is given."""
        if session is None:
            session = self.session("complete")
            self.result(session)
        ordinary = {
            "certificate_number": f"CP-{uuid.uuid4().hex[:8]}",
            "issued_on": date(2026, 3, 10),
            "valid_until": date(2028, 3, 10),
        }
        return self.insert(tables.CERTIFICATES, test_session_id=session, **ordinary | values)

    def contractor(self, expiry: date | str | None, status: str = "active", **values: Any) -> uuid.UUID:
        day = date.fromisoformat(expiry) if isinstance(expiry, str) else expiry
        ordinary = {"name": f"Radon Ñ {uuid.uuid4().hex[:6]}", "cnrpp_id": "CRT-1"}
        return self.insert(tables.CONTRACTORS, cnrpp_expiry_date=day, status=status, **ordinary | values)

    def change(self, table: Table, row_id: Any, **values: Any) -> None:
        with self.database.transaction() as tx:
            tx.execute(update(table).where(table.c.id == row_id).values(**values))

    def one(self, table: Table, row_id: Any) -> Row[Any]:
        with self.database.transaction() as tx:
            found = tx.row(select(table).where(table.c.id == row_id))
        assert found is not None
        return found

    def all(self, table: Table) -> list[Row[Any]]:
        with self.database.transaction() as tx:
            return list(tx.rows(select(table)))

    def status(self, table: Table, row_id: Any) -> str:
        return self.one(table, row_id).status

    def mail_status(self, row_id: Any) -> str:
        return self.status(tables.EMAIL_LOG, row_id)

    def state(self, job_name: str) -> Row[Any] | None:
        """Return the row of jobs_state for a job."""
        with self.database.transaction() as tx:
            return tx.row(select(tables.JOBS_STATE).where(tables.JOBS_STATE.c.job_name == job_name))

    def unpause(self) -> None:
        """Let the provider's wait be over."""
        with self.database.transaction() as tx:
            tx.execute(
                update(tables.JOBS_STATE).values(paused_until=datetime.now(UTC) - timedelta(seconds=1))
            )

    def refuse(self, table: Table, *row_ids: Any) -> None:
        """Let the database refuse every change of some rows."""
        self.changed_tables = True
        wanted = ", ".join(f"'{row_id}'" for row_id in row_ids)
        with self.database.engine.begin() as connection:
            connection.execute(
                text(
                    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ "
                    "BEGIN RAISE EXCEPTION 'this row is bad' USING ERRCODE = '23514'; END $$"
                )
            )
            connection.exec_driver_sql(
                f"CREATE TRIGGER refuse BEFORE UPDATE ON {table.name} FOR EACH ROW "
                f"WHEN (OLD.id::text IN ({wanted})) EXECUTE FUNCTION refuse()"
            )

    @contextmanager
    def meanwhile(self, after: str, happens: Callable[[], Any]) -> Generator[None]:
        """Let something happen once, right after a job's statement whose file begins with these words."""
        waiting = [happens]

        def look(conn: Any, cursor: Any, sql: str, *rest: Any) -> None:
            if waiting and sql.startswith(f"-- {after}"):
                waiting.pop()()

        event.listen(self.database.engine, "after_cursor_execute", look)
        try:
            yield
        finally:
            event.remove(self.database.engine, "after_cursor_execute", look)
        assert not waiting, f"no statement begins with {after!r}"

    def run(self, job: Any, as_of: datetime = AS_OF, *, given: bool = False, **changed: Any) -> Run:
        """Return a run of a job; what else is given are its params and settings by name."""
        settings = {name: SETTINGS.get(name) or value for name, value in job.SETTINGS.items()}
        return Run(
            job=job.NAME,
            run_id=f"run {uuid.uuid4()}",
            as_of=as_of,
            zone=ZONE,
            db=self.database,
            params=dict(PARAMS) | {k: v for k, v in changed.items() if k not in settings},
            settings=settings | {k: v for k, v in changed.items() if k in settings},
            as_of_given=given,
        )

    def perform(
        self, job: Any, outside: Any, as_of: datetime = AS_OF, *, given: bool = False, **changed: Any
    ) -> Run:
        """Run a job's steps in a row and return the run."""
        run = self.run(job, as_of, given=given, **changed)
        perform(job, run, outside)
        return run


def quiet_world(**parts: Any) -> World:
    """Return a world in which nothing is wrong and the lab has nothing to tell, but for what is given."""
    ordinary: dict[str, Any] = {
        "mail": FakeMail(),
        "alerts": FakeAlerts(),
        "lab": FakeLab([]),
        "storage": FakeStorage(),
    }
    return World(**ordinary | parts)
