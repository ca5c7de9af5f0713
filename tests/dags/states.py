"""The whole of a database as rows that two runs share if they did the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, text

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SLACK = timedelta(seconds=5)

EVERYTHING = "*"
"""Among a table's bookkeeping: it is a log of tries, and even the number of its rows differs after a repeat."""

Rows = dict[str, dict[str, dict[str, Any]]]
"""Table → primary key as text → row as JSON."""


def materialised_views(engine: Engine) -> list[str]:
    """Return the names of the database's materialised views: what a job refreshes, it changes."""
    with engine.connect() as connection:
        names = connection.execute(
            text("SELECT matviewname FROM pg_matviews WHERE schemaname = 'public' ORDER BY matviewname")
        )
        return list(names.scalars())


_KEYS = """
SELECT c.relname, array_agg(a.attname::text ORDER BY k.place) AS key
FROM pg_class AS c
JOIN pg_index AS i ON i.indrelid = c.oid AND (i.indisprimary OR (i.indisunique AND c.relkind = 'm'))
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'm') AND c.relname NOT LIKE 'alembic%'
GROUP BY c.relname, i.indexrelid
ORDER BY c.relname
"""
_OTHERS = """
SELECT relname FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'm') AND relname NOT LIKE 'alembic%'
"""


def rows(engine: Engine) -> Rows:
    """Return every row of every table and materialised view; these have a unique index in place of a key.

    The migrations' own table is left out. By one statement: tests over all DAGs ask often, and there are many tables.
    """
    with engine.connect() as connection:
        keys = {row.relname: row.key for row in connection.execute(text(_KEYS))}
        missing = set(connection.execute(text(_OTHERS)).scalars()) - set(keys)
        assert not missing, f"without a primary key: {missing}"
        every = " UNION ALL ".join(f"SELECT '{table}', to_jsonb(t) FROM \"{table}\" AS t" for table in keys)
        found: Rows = {table: {} for table in keys}
        for table, row in connection.exec_driver_sql(every):
            found[table]["|".join(str(row[column]) for column in keys[table])] = row
    return found


def empty(connection: Connection, tables: Sequence[str]) -> None:
    """Delete all rows, of children first, if the tables come so: for few rows far quicker than TRUNCATE."""
    connection.exec_driver_sql("; ".join(f'DELETE FROM "{table}"' for table in tables))


@dataclass(frozen=True)
class Kept:
    """Rows to be put back: of each table its own columns, and the rows as COPY has them."""

    tables: Mapping[str, tuple[str, bytes]]
    views: Sequence[str]


_COLUMNS = """
SELECT c.oid::regclass::text AS name, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS columns
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname = ANY (CAST(:tables AS text[]))
GROUP BY c.oid
"""


def kept(engine: Engine, state: Rows) -> Kept | None:
    """Return all rows, for `put_back`; None if a materialised view has some, which take no row by themselves."""
    views = materialised_views(engine)
    if any(state[view] for view in views):
        return None
    copied: dict[str, tuple[str, bytes]] = {}
    with engine.connect() as connection, _cursor(connection) as cursor:
        tables = [table for table, found in state.items() if found]
        for row in connection.execute(text(_COLUMNS), {"tables": tables}):
            with cursor.copy(f"COPY {row.name} ({row.columns}) TO STDOUT") as copy:
                copied[row.name] = (row.columns, b"".join(copy))
    return Kept(copied, views)


def put_back(connection: Connection, rows_kept: Kept, tables: Sequence[str]) -> None:
    """Make these rows the only ones of all tables, past every trigger: a seed takes several times as long."""
    connection.exec_driver_sql("SET LOCAL ROLE postgres")
    connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
    empty(connection, tables)
    for view in rows_kept.views:
        connection.exec_driver_sql(f'REFRESH MATERIALIZED VIEW "{view}"')
    with _cursor(connection) as cursor:
        for name, (columns, copied) in rows_kept.tables.items():
            with cursor.copy(f"COPY {name} ({columns}) FROM STDIN") as copy:
                copy.write(copied)


def _cursor(connection: Connection) -> Any:
    driver = connection.connection.driver_connection
    assert driver is not None
    return driver.cursor()


def known_uuids(state: Rows) -> set[str]:
    """Return every uuid that stands in a state."""
    return {u for table in state.values() for row in table.values() for u in _UUID.findall(str(row))}


def normalised(
    state: Rows, known: set[str], started: datetime, bookkeeping: Mapping[str, set[str]]
) -> dict[str, list[str]]:
    """Return the rows with what no two runs share made equal: ids made since, stamps of the real time.

    `known` are the uuids that were there before.
    """
    return {
        table: sorted(
            str(
                {
                    column: _plain(value, known, started)
                    for column, value in sorted(row.items())
                    if column not in bookkeeping.get(table, set())
                }
            )
            for row in found.values()
        )
        for table, found in state.items()
        if EVERYTHING not in bookkeeping.get(table, set())
    }


def changes(before: Rows, after: Rows) -> dict[str, dict[str, int]]:
    """Return per table how many rows were inserted, updated and deleted; tables without any are left out."""
    counted = {}
    for table in after:
        old, new = before.get(table, {}), after[table]
        counts = {
            "inserted": len(new.keys() - old.keys()),
            "updated": sum(old[key] != new[key] for key in old.keys() & new.keys()),
            "deleted": len(old.keys() - new.keys()),
        }
        if any(counts.values()):
            counted[table] = counts
    return counted


def plain_row(row: Mapping[str, Any] | None, known: set[str], started: datetime, ignored: set[str]) -> Any:
    """Return one row as `normalised` would show it."""
    if row is None:
        return None
    return {c: _plain(v, known, started) for c, v in row.items() if c not in ignored}


def _plain(value: Any, known: set[str], started: datetime) -> Any:
    if isinstance(value, str):
        if _is_real_time(value, started):
            return "<now>"
        return _UUID.sub(lambda found: found[0] if found[0] in known else "<new id>", value)
    if isinstance(value, Mapping):
        return {k: _plain(v, known, started) for k, v in value.items()}
    return value


def _is_real_time(value: str, started: datetime) -> bool:
    """Say whether a text is an instant between the test's start and a little after now, or a delay from that."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return False
    if moment.tzinfo is None:
        return False
    now = datetime.now(UTC)
    return any(
        started - _SLACK <= moment - delay <= now + _SLACK
        for delay in (timedelta(0), timedelta(seconds=30), timedelta(seconds=60), timedelta(minutes=15))
    )
