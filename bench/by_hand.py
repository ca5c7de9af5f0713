"""A job's work by hand: each of its statements once, for all rows, in one transaction.

What the job asked of its database is noted down while it runs on a copy. By hand there are no pages, no chunks, no
words to be made and nothing to come back: people are told by one INSERT of rows that lie ready.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, Executable, func, literal_column, select, table, text
from sqlalchemy.engine import CursorResult

from include.ecocomply.access import act_as_service
from include.errors import Permanent
from include.job import Job
from include.run import EngineDatabase, Run, Transaction, database_errors
from include.statements import Statement, statement

READY = "ready_notifications"
"""Where the rows lie that people are told by."""

_TELL = "create_notifications"
_ROLE = "act_as"
_PAGE = frozenset({"after", "limit"})
# Its rows stay on the server: who works by hand does not fetch what he has no use for.
_UNFETCHED = "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, SUMMARY OFF)\n"
_AMONG_IDS = re.compile(r"[\w.]+ = ANY \(CAST\(:ids AS uuid\[\]\)\)")
_OR_AMONG_IDS = re.compile(r"CAST\(:ids AS uuid\[\]\) IS NULL OR ")
_WRITES = re.compile(r"\b(INSERT INTO|UPDATE \w+|DELETE FROM|REFRESH|SELECT refresh_)", re.IGNORECASE)
_TABLES = """
    SELECT c.relname FROM pg_class AS c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'm') ORDER BY 1
"""


@dataclass(slots=True)
class Asked:
    """A statement with what all its calls bound, in the step that called it."""

    step: int
    statement: Statement
    binds: dict[str, Any]

    @property
    def writes(self) -> bool:
        return bool(_WRITES.search(self.statement.clause.text))

    @property
    def arrays(self) -> set[str]:
        return {name for name, value in self.binds.items() if isinstance(value, list)}


@dataclass(slots=True)
class Asking:
    """A database that notes what is asked of it."""

    engine: Engine
    step: int = 0
    found: dict[Any, Asked] = field(default_factory=dict)

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        with database_errors(), self.engine.begin() as connection:
            tx = _Noting(connection, self)
            act_as_service(tx)
            yield tx

    def alone(self, what: str) -> AbstractContextManager[None]:
        return EngineDatabase(self.engine).alone(what)

    def note(self, asked: Statement, binds: Mapping[str, Any]) -> None:
        if asked.name == _TELL:
            self.found.setdefault((self.step, _TELL), Asked(self.step, asked, {}))
            return
        whole = {name: None if name in _PAGE else value for name, value in binds.items()}
        alike = {name: str(value) for name, value in whole.items() if not _is_rows(name, value)}
        before = self.found.setdefault(
            (self.step, asked.name, *sorted(alike.items())), Asked(self.step, asked, {})
        )
        for name, value in whole.items():
            if isinstance(value, list | tuple) and _is_rows(name, value):
                before.binds.setdefault(name, [])
                if before.binds[name] is not None:
                    before.binds[name].extend(value)
            else:
                before.binds[name] = value


class _Noting(Transaction):
    def __init__(self, connection: Connection, asking: Asking) -> None:
        super().__init__(connection)
        self._asking = asking

    def _run(self, statement: Statement | Executable, binds: Mapping[str, Any]) -> CursorResult[Any]:
        if isinstance(statement, Statement) and statement.name != _ROLE:
            self._asking.note(statement, binds)
        return super()._run(statement, binds)


def _is_rows(name: str, value: Any) -> bool:
    """Say whether a bind names rows or goes with those, as against the job's params."""
    return name == "ids" or (name != "reminder_days" and isinstance(value, list | tuple))


def asked_by(job: Job, run: Run, engine: Engine, outside: Any) -> list[Asked]:
    """Run a job and return what it asked, each once, in the order of its first call."""
    asking = Asking(engine)
    run.db = asking
    for asking.step, step in enumerate(job.STEPS):
        handed = step(run, outside)
        if handed is False:
            break
        if isinstance(handed, Mapping):
            run.handed.update(handed)
    return _needed(list(asking.found.values()))


def _needed(asked: list[Asked]) -> list[Asked]:
    """Leave out what a job looks up only to change it in pages, or looks at once more."""
    needed: list[Asked] = []
    for one in asked:
        changes = [
            other
            for other in asked
            if other.step == one.step and other.writes and other.statement.name != _TELL
        ]
        looked = any(
            other.statement.name == one.statement.name and other.step == one.step for other in needed
        )
        if not one.writes and one.binds.keys() >= _PAGE and looked and one.binds.get("ids") is not None:
            continue
        if not one.writes and one.binds.keys() >= _PAGE and any(other.arrays == {"ids"} for other in changes):
            continue
        needed.append(one)
    return needed


def work(engine: Engine, asked: list[Asked], by_ids: Collection[str] = ()) -> None:
    """Do what was asked, in one transaction; statements of `by_ids` need to be told which rows."""
    told = False
    with database_errors(), engine.begin() as connection:
        act_as_service(Transaction(connection))
        for one in asked:
            if one.statement.name != _TELL:
                clause, binds = _for_all(one, by_ids)
                connection.execute(text(_UNFETCHED + clause), binds)
            elif not told:
                connection.execute(statement("bench", "tell_ecocomply_ready").clause)
                told = True


def _for_all(asked: Asked, by_ids: Collection[str]) -> tuple[str, dict[str, Any]]:
    """Return a statement that takes the rows by its other conditions, unless it is given more than their ids."""
    clause, binds = asked.statement.clause.text, dict(asked.binds)
    if asked.statement.name not in by_ids and asked.arrays <= {"ids"} and "ids" in binds:
        clause = _AMONG_IDS.sub("true", _OR_AMONG_IDS.sub("", clause))
        if ":ids" not in clause:
            del binds["ids"]
    return clause, binds


def make_ready(source: Engine, target: Engine, mark: int) -> None:
    """Copy the notifications that were written in `source` since `mark` to where they lie ready in `target`."""
    rows = f"SELECT * FROM notifications WHERE xmin::text::bigint > {mark:d}"  # noqa: S608 - a number of ours
    with source.connect() as one, target.begin() as other:
        other.execute(text(f"CREATE TABLE {READY} (LIKE notifications)"))
        other.execute(text(f"GRANT SELECT ON {READY} TO PUBLIC"))
        reading, writing = one.connection.cursor(), other.connection.cursor()
        with (
            reading.copy(f"COPY ({rows}) TO STDOUT (FORMAT binary)") as out,
            writing.copy(f"COPY {READY} FROM STDIN (FORMAT binary)") as into,
        ):
            for block in out:
                into.write(block)


def mark_of(engine: Engine) -> int:
    """Return a number that every row written from here on is beyond."""
    with engine.begin() as connection:
        return int(connection.scalar(text("SELECT pg_current_xact_id()::text")) or 0)


def written_since(engine: Engine, mark: int) -> dict[str, int]:
    """Return of each table how many of its rows were written since `mark`, if any were."""
    xmin = literal_column("CAST(CAST(xmin AS text) AS bigint)")
    with engine.connect() as connection:
        found = {
            name: connection.scalar(select(func.count()).select_from(table(name)).where(xmin > mark)) or 0
            for name in connection.scalars(text(_TABLES))
            if name != READY
        }
    return {name: written for name, written in found.items() if written}


def rows_of(engine: Engine, name: str) -> int:
    """Return how many rows a table has."""
    with engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(table(name))) or 0


def must_be(what: str, found: object, wanted: object) -> None:
    """Raise Permanent if two things that a benchmark needs to be alike are not."""
    if found != wanted:
        raise Permanent(f"bench: {what}: {found}, not {wanted}")
