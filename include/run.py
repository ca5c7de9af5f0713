"""One run of one job: its as-of, its params, its database and its counts.

Everything that a step decides by, it finds here: a step reads no clock, no environment and no Airflow.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Engine, Executable, Row
from sqlalchemy.engine import CursorResult
from sqlalchemy.exc import DataError, DBAPIError, OperationalError

from include.as_of import local_date
from include.errors import Busy, Outage, Transient
from include.statements import Statement

# SQLSTATE classes and codes after which the same statement may succeed.
_TRANSIENT_STATES = ("08", "40", "53", "57", "55P03", "25P03", "25P04")
# Of these, the ones that say nothing of the connection: the transaction alone is gone.
_TRANSACTION_STATES = ("40001", "40P01", "55P03")
_LOOK_AGAIN_SECONDS = 0.1


def sqlstate(error: DBAPIError) -> str | None:
    """Return the five-letter SQLSTATE of a database error, or None if the server gave none."""
    return getattr(error.orig, "sqlstate", None)


def is_row_fault(error: DBAPIError) -> bool:
    """Say whether the data made a statement fail, rather than the connection or another transaction."""
    state = sqlstate(error)
    if state is None:
        # The driver itself refuses some values, such as a text with a null character that stands in no list.
        return isinstance(error, DataError)
    return not state.startswith(_TRANSIENT_STATES) and not error.connection_invalidated


def lost_transaction(error: DBAPIError) -> bool:
    """Say whether the transaction was chosen as a victim: deadlock, serialization failure, lock timeout."""
    return sqlstate(error) in _TRANSACTION_STATES


class Transaction:
    """An open transaction. Values go in by name, never into the text."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, statement: Statement | Executable, /, **binds: Any) -> int:
        """Run a statement and return the number of rows that it touched."""
        return self._run(statement, binds).rowcount

    def rows(self, statement: Statement | Executable, /, **binds: Any) -> Sequence[Row[Any]]:
        return self._run(statement, binds).all()

    def row(self, statement: Statement | Executable, /, **binds: Any) -> Row[Any] | None:
        """Return the only row, or None. Raises MultipleResultsFound if there are more."""
        return self._run(statement, binds).one_or_none()

    def value(self, statement: Statement | Executable, /, **binds: Any) -> Any:
        """Return the first column of the first row, or None."""
        return self._run(statement, binds).scalar()

    def savepoint(self) -> AbstractContextManager[Any]:
        """Open a savepoint that is released at the end, or rolled back by an exception."""
        return self._connection.begin_nested()

    def _run(self, statement: Statement | Executable, binds: Mapping[str, Any]) -> CursorResult[Any]:
        executable = statement.clause if isinstance(statement, Statement) else statement
        return self._connection.execute(executable, dict(binds))


class Progress(Protocol):
    """Who is told how far a run has come."""

    def __call__(
        self,
        current: int,
        total: int,
        said: str | None = None,
        *,
        ids: Sequence[Any] = (),
        counts: Mapping[str, int] | None = None,
    ) -> None:
        """Say that `current` of `total` is done; `ids` and `counts` help who looks into a failure."""
        ...


def untold(
    current: int,
    total: int,
    said: str | None = None,
    *,
    ids: Sequence[Any] = (),
    counts: Mapping[str, int] | None = None,
) -> None:
    """Tell nobody: for a run that no record is kept of."""


class Database(Protocol):
    """Where a job's tables are."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Open a transaction that commits at the end, or rolls back by an exception."""
        ...

    def alone(self, what: str) -> AbstractContextManager[None]:
        """Hold `what` against every other run until the end, without an open transaction.

        Raises Busy if another run holds it. The hold ends with the process, however that ends.
        """
        ...


class EngineDatabase:
    """A database behind an SQLAlchemy engine (`postgresql+psycopg`).

    `patience` is how many seconds `alone` waits for another run: a backfill starts many at a time.
    """

    def __init__(self, engine: Engine, *, patience: float = 0) -> None:
        self.engine = engine
        self._patience = patience

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        with database_errors(), self.engine.begin() as connection:
            yield Transaction(connection)

    @contextmanager
    def alone(self, what: str) -> Generator[None]:
        # Autocommit: the lock belongs to the session, so no transaction stays open over network calls.
        with (
            database_errors(),
            self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        ):
            key = {"what": what}
            take = "SELECT pg_try_advisory_lock(hashtextextended(%(what)s, 0))"
            deadline = time.monotonic() + self._patience
            while not connection.exec_driver_sql(take, key).scalar():
                if time.monotonic() >= deadline:
                    raise Busy(f"{what}: another run is at it")
                time.sleep(_LOOK_AGAIN_SECONDS)
            try:
                yield
            finally:
                connection.exec_driver_sql("SELECT pg_advisory_unlock(hashtextextended(%(what)s, 0))", key)


@contextmanager
def database_errors() -> Generator[None]:
    """Turn the database's own transient errors into ours; what the data caused passes as it is."""
    try:
        yield
    except DBAPIError as error:
        if is_row_fault(error):
            raise
        if isinstance(error, OperationalError) and sqlstate(error) is None:
            raise Outage(f"database: {_first_line(error)}") from error
        if not lost_transaction(error) and (sqlstate(error) or "").startswith(("08", "57")):
            raise Outage(f"database: {_first_line(error)}") from error
        raise Transient(f"database: {_first_line(error)}") from error


def _first_line(error: DBAPIError) -> str:
    # The driver's message alone: SQLAlchemy's holds the bound values, which may be a message's body.
    return (str(error.orig).splitlines() or [type(error.orig).__name__])[0]


@dataclass(slots=True)
class Run:
    """One run of a job.

    `as_of` is aware, in UTC; `as_of_given` says that a person named it, rather than the schedule. `zone` is
    the system's time zone, `params` and `settings` hold what the job declared, checked. `handed` is what
    earlier steps handed on: ids, counts and instants, never payloads. `counts` is what this attempt of this
    task did, under the specification's names.
    """

    job: str
    run_id: str
    as_of: datetime
    zone: ZoneInfo
    db: Database
    params: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, str | None] = field(default_factory=dict)
    handed: dict[str, Any] = field(default_factory=dict)
    as_of_given: bool = False
    preview: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    state: str = "success"
    progress: Progress = untold
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("almanac"))

    @property
    def today(self) -> date:
        """The local day of `as_of`."""
        return local_date(self.as_of, self.zone)

    @property
    def due_limit(self) -> datetime | None:
        """What narrows a queue's due rows: the as-of that a person gave, else nothing."""
        return self.as_of if self.as_of_given else None

    def transaction(self) -> AbstractContextManager[Transaction]:
        return self.db.transaction()

    def alone(self, what: str) -> AbstractContextManager[None]:
        return self.db.alone(what)

    def count(self, name: str, number: int = 1) -> None:
        self.counts[name] += number

    def note(self, sentence: str) -> None:
        """Add a sentence that a person reads beside the counts."""
        self.notes.append(sentence)
        self.log.info(sentence, extra={"job": self.job})

    def row_failed(self, record_id: Any, error: BaseException | str) -> None:
        """Count a row that could not be worked on, and say why; the others go on."""
        self.count("failed")
        self.log.warning(
            "row failed: job=%s recordId=%s err=%s",
            self.job,
            record_id,
            row_error(error),
            extra={"job": self.job, "recordId": str(record_id), "err": row_error(error)},
        )

    def row_skipped(self, record_id: Any, reason: str) -> None:
        """Say that a row needs nothing any more; counting it is up to the job."""
        self.log.debug(
            "row skipped: job=%s recordId=%s reason=%s",
            self.job,
            record_id,
            reason,
            extra={"job": self.job, "recordId": str(record_id), "reason": reason},
        )


def row_error(error: BaseException | str) -> str:
    """Return one line that says what went wrong, without the values bound to a statement."""
    if isinstance(error, DBAPIError):
        return _first_line(error)
    return (str(error).splitlines() or [type(error).__name__])[0]
