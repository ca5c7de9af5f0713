"""What every table of EcoComply is made of: who owns a row, what it belongs to, and the indexes for both."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    Uuid,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from include.columns import identity, metadata

METADATA = metadata()

FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "ANNUAL", "ONE_TIME")
REPEATING = FREQUENCIES[:-1]


def tenant(name: str, *items: Any, owned: bool = True, info: dict[str, Any] | None = None) -> Table:
    """Return a table whose rows each belong to one company, with an id and an index for every reference.

    A row may belong to none if it is not `owned`: such rows are the service's alone.
    """
    owner = belongs("company_id", "companies", required=owned, on_delete="CASCADE" if owned else "SET NULL")
    return indexed(Table(name, METADATA, identity(), owner, *items, info=info))


def indexed(table: Table) -> Table:
    """Give a table an index for every reference that has none yet, but for those that only name a user.

    Users are deactivated, not deleted, so nothing looks a row up by who made it.
    """
    keys = [key for key in table.constraints if isinstance(key, UniqueConstraint | PrimaryKeyConstraint)]
    whole = [index for index in table.indexes if index.dialect_options["postgresql"]["where"] is None]
    begun = {columns[0].name for ordered in (*keys, *whole) if (columns := list(ordered.columns))}
    for column in list(table.columns):
        names = [key.target_fullname for key in column.foreign_keys]
        mere_name = names == ["users.id"] and all(key.ondelete == "SET NULL" for key in column.foreign_keys)
        if names and not mere_name and column.name not in begun:
            Index(f"ix_{table.name}_{column.name.removesuffix('_id')}", column)
    return table


def belongs(name: str, table: str, *, required: bool = False, on_delete: str = "CASCADE") -> Column[Any]:
    """Return a column that names a row of another table, and goes with it unless `on_delete` says otherwise."""
    return Column(name, Uuid, ForeignKey(f"{table}.id", ondelete=on_delete), nullable=not required)


def by_user(name: str) -> Column[Any]:
    """Return a column that names a user, who may be of another company, as consultants are."""
    return belongs(name, "users", on_delete="SET NULL")


def json(name: str, empty: str | None = "{}") -> Column[Any]:
    """Return a JSONB column, with `empty` where an insert leaves it out; None makes it null."""
    if empty is None:
        return Column(name, JSONB)
    return Column(name, JSONB, nullable=False, server_default=text(f"'{empty}'::jsonb"))


def listed(name: str, of: Any, default: str | None = None) -> Column[Any]:
    """Return an array column; an application may have it as JSON."""
    if default is None:
        return Column(name, ARRAY(of), info={"any_type": True})
    return Column(
        name, ARRAY(of), nullable=False, server_default=text(f"'{default}'"), info={"any_type": True}
    )


def holds(name: str, condition: str) -> CheckConstraint:
    """Return the check of that name; in an adopted database the rows that break it are found by the same words."""
    return CheckConstraint(literal_column(condition), name=name)
