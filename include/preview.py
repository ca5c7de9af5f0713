"""A run's exact effect, without the run: every step for real in one transaction that is rolled back.

Transaction A runs the steps, with savepoints where a real run commits. Transaction B took A's snapshot before
the first write, and so still sees every row as it was. What A changed it knows by its own row versions
(`xmin`), what was there before B reads from rows that someone has since replaced (`xmax`).

Tables that work as queues are copied first and the copy is changed: a real worker skips rows that are locked,
and would lose a turn because somebody looked. For everything else the preview gives way: the moment another
session waits for it, it ends and tries again later.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, Row, text
from sqlalchemy.exc import DBAPIError

from include import odd_json
from include.effects import SHOWN, Effects
from include.errors import Transient
from include.job import Job, perform
from include.run import Database, EngineDatabase, Run, Transaction, database_errors, lost_transaction
from include.statements import statement

TRIES = 8
LOCK_TIMEOUT_MS = 1_000
STATEMENT_TIMEOUT_MS = 120_000
_VALUE_SHOWN = 300
_DEPTH_SHOWN = 50
# The platform's own database holds no such characters, where a column of type json does.
_UNKEPT = re.compile(r"(?<!\\)(\\\\)*\\u(0000|d[89a-f])", re.IGNORECASE)
_CHUNK = 1_000
_WATCH_SECONDS = 0.05

Fields = dict[str, str | None]
"""A row by its columns, each value as a JSON text: some are more than Python reads, and most are only compared."""


class PreviewDatabase:
    """The database as a previewed step sees it: a commit is a savepoint, and nobody is kept out."""

    def __init__(self, connection: Connection, given_way: threading.Event) -> None:
        self._connection = connection
        self._given_way = given_way
        self.lost: _Lost | None = None
        """What a step may have taken for the fault of a row: no preview that lost anything is one."""

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        if self._given_way.is_set():
            raise _GaveWay
        try:
            with database_errors(), self._connection.begin_nested():
                yield Transaction(self._connection)
        except Transient as error:
            cause = error.__cause__
            if isinstance(cause, DBAPIError) and lost_transaction(cause):
                self.lost = _Lost(str(error))
                raise self.lost from error
            raise

    def alone(self, what: str) -> nullcontext[None]:  # noqa: ARG002 - the protocol's form
        return nullcontext()


class _GaveWay(Transient):
    """Another session waited for the preview, which therefore ended."""

    def __init__(self) -> None:
        super().__init__("preview: others kept needing the rows that it would change; try again")


class _Lost(Transient):
    """A rival won. To try again in the same snapshot would be to lose again: it never sees what the rival wrote."""


@dataclass(slots=True)
class TableChanges:
    """What happens to one table: exact counts, and the first changes as JSON rows before and after."""

    table: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    changes: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self,
        kind: str,
        key: Fields,
        before: Fields | None,
        after: Fields | None,
    ) -> None:
        match kind:
            case "insert":
                self.inserted += 1
            case "update":
                self.updated += 1
            case _:
                self.deleted += 1
        if len(self.changes) < SHOWN:
            self.changes.append(
                {
                    "key": {column: _read(value) for column, value in key.items()},
                    "kind": kind,
                    "before": _shown(before),
                    "after": _shown(after),
                }
            )


def preview(engine: Engine, job: Job, make_run: Callable[[Database], Run], outside: Any) -> dict[str, Any]:
    """Return what a run would change, as a JSON-ready mapping, and change nothing.

    `tables` has per table the counts of rows inserted, updated and deleted and the first 200 changes;
    `messages`, `files` and `calls` what would leave the database; `counts` and `notes` the run's own. Raises
    Transient if other sessions kept needing the same rows.
    """
    for attempt in range(1, TRIES + 1):
        effects = Effects()
        recorded = outside.in_preview(make_run(EngineDatabase(engine)), effects)
        try:
            return _once(engine, job, make_run, recorded, effects)
        except (Transient, DBAPIError) as error:
            if attempt == TRIES or not _worth_another_try(error):
                raise
        time.sleep(random.uniform(0.05, 0.2) * attempt)  # noqa: S311 - spreads rivals, guards nothing
    raise _GaveWay


def _worth_another_try(error: BaseException) -> bool:
    cause = error.__cause__ if isinstance(error, Transient) else error
    return isinstance(error, _GaveWay | _Lost) or (isinstance(cause, DBAPIError) and lost_transaction(cause))


def _once(
    engine: Engine, job: Job, make_run: Callable[[Database], Run], outside: Any, effects: Effects
) -> dict[str, Any]:
    given_way = threading.Event()
    with engine.connect() as after, engine.connect() as before:
        pid = _open_pair(after, before)
        try:
            shadows = {table: _shadow(after, table) for table in job.QUEUES}
            top = after.execute(text("SELECT pg_current_xact_id()::text")).scalar_one()
            database = PreviewDatabase(after, given_way)
            run = make_run(database)
            run.preview = True
            with _giving_way(engine, pid, given_way):
                perform(job, run, outside)
                if database.lost is not None:
                    raise database.lost
                tables = [_shadow_changes(after, table, key) for table, key in shadows.items()]
                tables += _changes(after, before, top, set(shadows))
        except (Transient, DBAPIError) as error:
            if given_way.is_set():
                raise _GaveWay from error
            raise
        finally:
            for connection in (after, before):
                _roll_back(connection)
    return {
        "tables": [
            {
                "table": changed.table,
                "inserted": changed.inserted,
                "updated": changed.updated,
                "deleted": changed.deleted,
                "changes": changed.changes,
            }
            for changed in sorted(tables, key=lambda changed: changed.table)
            if changed.inserted or changed.updated or changed.deleted
        ],
        "messages": {"count": effects.message_count, "shown": effects.messages},
        "files": {"count": effects.file_count, "shown": effects.files},
        "calls": {"count": effects.call_count, "shown": effects.calls},
        "counts": dict(run.counts),
        "notes": list(run.notes),
        "state": run.state,
    }


def _open_pair(after: Connection, before: Connection) -> int:
    """Begin both transactions on one snapshot and return the process id of A's session."""
    after.execution_options(isolation_level="REPEATABLE READ")
    before.execution_options(isolation_level="REPEATABLE READ")
    limits = text(
        "SELECT set_config('lock_timeout', :lock, true), set_config('statement_timeout', :statement, true)"
    )
    after.execute(limits, {"lock": f"{LOCK_TIMEOUT_MS}ms", "statement": f"{STATEMENT_TIMEOUT_MS}ms"})
    snapshot = after.execute(text("SELECT pg_export_snapshot()")).scalar_one()
    # The server made this name and takes it as a literal only.
    before.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
    return after.execute(text("SELECT pg_backend_pid()")).scalar_one()


def _roll_back(connection: Connection) -> None:
    try:
        connection.rollback()
    except DBAPIError:
        # The session that gave way is gone, and its transaction with it.
        connection.invalidate()


@contextmanager
def _giving_way(engine: Engine, pid: int, given_way: threading.Event) -> Generator[None]:
    """End session `pid` as soon as another one waits for a lock that it holds."""
    done = threading.Event()

    def watch() -> None:
        waiting = statement("include", "sessions_waiting_for").clause
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            while not done.wait(_WATCH_SECONDS):
                if connection.execute(waiting, {"pid": pid}).scalar():
                    given_way.set()
                    connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
                    return

    watcher = threading.Thread(target=watch, name="preview gives way", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _shadow(connection: Connection, table: str) -> list[str]:
    """Lay a copy of a table over it for this transaction and return the names of its key's columns."""
    quoted = _quoted(connection, table)
    key = _key_columns(connection, table)
    connection.exec_driver_sql(
        f"CREATE TEMPORARY TABLE {quoted} (LIKE public.{quoted} INCLUDING ALL) ON COMMIT DROP"
    )
    given = ", ".join(
        _quoted(connection, column.attname)
        for column in _columns(connection, table)
        if not column.is_computed
    )
    connection.exec_driver_sql(
        f"INSERT INTO pg_temp.{quoted} ({given}) OVERRIDING SYSTEM VALUE SELECT {given} FROM public.{quoted}"
    )
    for column in connection.execute(
        statement("include", "identity_columns").clause, {"table": table}
    ).scalars():
        connection.exec_driver_sql(
            f"SELECT setval(pg_get_serial_sequence('pg_temp.{quoted}', '{column}'), "
            f"coalesce((SELECT max({_quoted(connection, column)}) FROM public.{quoted}), 0) + 1, false)"
        )
    connection.exec_driver_sql(f"ANALYZE pg_temp.{quoted}")
    # A step may take another role of the database; nobody but this session sees the copy.
    connection.exec_driver_sql(f"GRANT ALL ON pg_temp.{quoted} TO PUBLIC")
    # Last, so that filling the copy sets none of them off.
    found = connection.execute(statement("include", "triggers_for_copy").clause, {"table": table})
    for definition in found.scalars().all():
        connection.execute(text(definition.replace(":", r"\:")))
    return key


def _shadow_changes(connection: Connection, table: str, key: Sequence[str]) -> TableChanges:
    quoted = _quoted(connection, table)
    join = " AND ".join(f"o.{_quoted(connection, c)} = n.{_quoted(connection, c)}" for c in key)
    order = ", ".join(f"coalesce(n.{_quoted(connection, c)}, o.{_quoted(connection, c)})" for c in key)
    columns = [column.attname for column in _columns(connection, table)]
    changed = TableChanges(table)
    # By the values as they are stored: not every type knows what is equal. The rows as `o.*`: `o` may be a column.
    rows = connection.execution_options(yield_per=_CHUNK).exec_driver_sql(
        f"SELECT {_fields(connection, 'o', columns)}, {_fields(connection, 'n', columns)} "
        f"FROM public.{quoted} o FULL JOIN pg_temp.{quoted} n ON {join} "
        f"WHERE (o.* *= n.*) IS NOT TRUE ORDER BY {order}"
    )
    for before, after in rows:
        _compare(changed, key, _named(columns, before), _named(columns, after))
    return changed


def _changes(after: Connection, before: Connection, top: str, skip: set[str]) -> list[TableChanges]:
    touched = after.execute(statement("include", "tables_touched").clause).scalars().all()
    return [_table_changes(after, before, table, top) for table in touched if table not in skip]


def _table_changes(after: Connection, before: Connection, table: str, top: str) -> TableChanges:
    quoted = f"public.{_quoted(after, table)}"
    key = _key_columns(after, table)
    types = {column.attname: column.format_type for column in _columns(after, table)}
    columns = list(types)
    fields = _fields(after, "t", columns)
    key_types = ", ".join(f"{_quoted(after, column)} {types[column]}" for column in key)
    key_row = ", ".join(f"t.{_quoted(after, column)}" for column in key)
    # Row versions of this transaction and its savepoints are no older than its own id.
    mine = "age(t.xmin) <= age((CAST(%(top)s AS bigint) & 4294967295)::text::xid)"
    changed = TableChanges(table)
    seen: set[tuple[str | None, ...]] = set()

    replaced = before.execution_options(yield_per=_CHUNK).exec_driver_sql(
        f"SELECT {fields} FROM {quoted} t WHERE t.xmax::text <> '0' ORDER BY {key_row}"
    )
    for chunk in replaced.scalars().partitions(_CHUNK):
        rows_before = _by_key(key, columns, chunk)
        found = after.exec_driver_sql(
            f"SELECT {fields} FROM {quoted} t JOIN jsonb_to_recordset(CAST(%(keys)s AS jsonb)) "
            f"AS k({key_types}) USING ({', '.join(_quoted(after, c) for c in key)})",
            {"keys": _as_json([{c: row[c] for c in key} for row in rows_before.values()])},
        )
        rows_after = _by_key(key, columns, found.scalars())
        for row_key, row_before in rows_before.items():
            seen.add(row_key)
            _compare(changed, key, row_before, rows_after.get(row_key))

    fresh = after.execution_options(yield_per=_CHUNK).exec_driver_sql(
        f"SELECT {fields} FROM {quoted} t WHERE {mine} ORDER BY {key_row}", {"top": top}
    )
    for chunk in fresh.scalars().partitions(_CHUNK):
        for row_key, row in _by_key(key, columns, chunk).items():
            if row_key not in seen:
                _compare(changed, key, None, row)
    return changed


def _compare(changed: TableChanges, key: Sequence[str], before: Fields | None, after: Fields | None) -> None:
    row = after if after is not None else before
    if row is None or _same(before, after):
        return
    kind = "insert" if before is None else "delete" if after is None else "update"
    changed.add(kind, {column: row[column] for column in key}, before, after)


def _same(before: Fields | None, after: Fields | None) -> bool:
    """Return whether two rows say the same: 1.0 is 1.00, and the spaces of a JSON text are nothing."""
    if before is None or after is None:
        return before is after
    return all(
        value == after[column] or _read(value) == _read(after[column]) for column, value in before.items()
    )


def _columns(connection: Connection, table: str) -> Sequence[Row[Any]]:
    return connection.execute(statement("include", "column_types").clause, {"table": table}).all()


def _fields(connection: Connection, row: str, columns: Sequence[str]) -> str:
    """Return what selects a row's values as a list of JSON texts; null where an outer join found no row."""
    values = ", ".join(f"to_json({row}.{_quoted(connection, column)})::text" for column in columns)
    return f"CASE WHEN {row}.tableoid IS NOT NULL THEN to_json(ARRAY[{values}]) END"


def _named(columns: Sequence[str], values: Sequence[str | None] | None) -> Fields | None:
    return None if values is None else dict(zip(columns, values, strict=True))


def _by_key(
    key: Sequence[str], columns: Sequence[str], found: Iterable[Sequence[str | None]]
) -> dict[tuple[str | None, ...], Fields]:
    rows = (dict(zip(columns, values, strict=True)) for values in found)
    return {tuple(row[column] for column in key): row for row in rows}


def _key_columns(connection: Connection, table: str) -> list[str]:
    key = connection.execute(statement("include", "key_columns").clause, {"table": table}).scalars().all()
    if not key:
        raise Transient(f"preview: table {table} has no primary key to tell its rows apart by")
    return list(key)


def _as_json(rows: Iterable[Fields]) -> str:
    # The values as they came: a number loses no digit.
    pairs = ([f"{json.dumps(column)}: {value or 'null'}" for column, value in row.items()] for row in rows)
    return f"[{', '.join('{' + ', '.join(each) + '}' for each in pairs)}]"


def _quoted(connection: Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote(name)


def _shown(row: Fields | None) -> dict[str, Any] | None:
    """Shorten long values: a preview says what changes, it is no copy of the table."""
    if row is None:
        return None
    values = {column: _read(value) for column, value in row.items()}
    return {
        column: f"{value[:_VALUE_SHOWN]}… ({len(value)} characters)"
        if isinstance(value, str) and len(value) > _VALUE_SHOWN
        else value
        for column, value in values.items()
    }


def _read(value: str | None) -> Any:
    """Return what a JSON text says, or the text where that could not be kept or would nest too deep to be shown."""
    if value is None or _UNKEPT.search(value):
        return value
    said = odd_json.read(value)
    return value if _is_deep(said) else said


def _is_deep(said: Any) -> bool:
    level = [said]
    for _ in range(_DEPTH_SHOWN):
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True
