"""The small seed many times over, each copy moved by some days: what nobody thought of comes about by itself."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from sqlalchemy import Connection, Index, MetaData, Table, UniqueConstraint, insert, select, text

FARTHEST_DAYS = 20


def multiply(connection: Connection, metadata: MetaData, names: set[str], *, copies: int, seed: int) -> None:
    """Add copies of every row. Each copy has ids of its own and its references within the copy.

    `names` are text columns by which rows are known outside; they, unique texts and keys that are texts end in
    `-1`, `-2` and so on. Rows of tables whose key is a plain word that no other table refers to stay single.
    """
    chance = random.Random(seed)  # noqa: S311 - test data, the same for the same seed
    moves = [timedelta(days=chance.randint(-FARTHEST_DAYS, FARTHEST_DAYS)) for _ in range(copies)]
    filled = _filled(connection, metadata)
    seeded = {
        table: [dict(row) for row in connection.execute(select(table)).mappings()]
        for table in metadata.sorted_tables
        if table.name in filled and _copied(table)
    }
    # A queue lets no row begin as anything but waiting; these have been on their way already.
    guarded = connection.scalars(
        text("SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'queue_guard_inserts'")
    ).all()
    for name in guarded:
        connection.exec_driver_sql(f"ALTER TABLE {name} DISABLE TRIGGER queue_guard_inserts")
    for table, rows in seeded.items():
        texts = names | _unique_texts(table) | _text_keys(table)
        every = [_copy(row, number, moved, texts) for number, moved in enumerate(moves, 1) for row in rows]
        connection.execute(insert(table), every)
    for name in guarded:
        connection.exec_driver_sql(f"ALTER TABLE {name} ENABLE TRIGGER queue_guard_inserts")


def _filled(connection: Connection, metadata: MetaData) -> set[str]:
    asked = (f"SELECT '{name}' WHERE EXISTS (SELECT FROM \"{name}\")" for name in metadata.tables)
    return set(connection.exec_driver_sql(" UNION ALL ".join(asked)).scalars())


def _copied(table: Table) -> bool:
    referred_to = any(
        key.column.table is table for one in table.metadata.sorted_tables for key in one.foreign_keys
    )
    return referred_to or any(column.type.python_type is uuid.UUID for column in table.primary_key)


def _text_keys(table: Table) -> set[str]:
    keys = [*table.primary_key, *(key.parent for key in table.foreign_keys)]
    return {column.name for column in keys if column.type.python_type is str}


def _unique_texts(table: Table) -> set[str]:
    unique: list[UniqueConstraint | Index] = [c for c in table.constraints if isinstance(c, UniqueConstraint)]
    unique += [index for index in table.indexes if index.unique]
    return {column.name for one in unique for column in one.columns if column.type.python_type is str}


def _copy(row: Mapping[str, Any], number: int, moved: timedelta, texts: set[str]) -> dict[str, Any]:
    def changed(name: str, value: Any) -> Any:
        if isinstance(value, uuid.UUID):
            return uuid.uuid5(value, str(number))
        if isinstance(value, str) and name in texts:
            return f"{value}-{number}"
        # A datetime is a date too.
        return value + moved if isinstance(value, date) else value

    return {name: changed(name, value) for name, value in row.items()}
