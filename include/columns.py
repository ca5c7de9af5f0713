"""Column types, constraints and tables that every system's tables and migrations are made of.

Migrations that have run are made of these too: what one of them returns never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    column,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import UserDefinedType

NAMES = {
    "pk": "pk_%(table_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}
"""How constraints are named; an application's own constraints keep their names."""


class Word(UserDefinedType[str]):
    """One of a list of words, in a text column or in an enum type that an application made.

    Values are bound without a type, so that Postgres takes the column's.
    """

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "TEXT"


def metadata() -> MetaData:
    """Return an empty collection of tables whose constraints follow NAMES."""
    return MetaData(naming_convention=NAMES)


def identity() -> Column[Any]:
    """Return the column `id`: a uuid that the database makes if none is given."""
    return Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()"))


def instant(name: str, *, required: bool = False) -> Column[Any]:
    """Return a column for an instant, null unless `required`."""
    return Column(name, DateTime(timezone=True), nullable=not required)


def stamp(name: str) -> Column[Any]:
    """Return a column for an instant that is the time of the insert if none is given."""
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now())


def one_of(name: str, words: Sequence[str]) -> CheckConstraint:
    """Return the check that a column holds one of `words`."""
    return CheckConstraint(column(name).in_(words), name=name, info={"column": name, "words": tuple(words)})


def baseline_table(metadata: MetaData) -> Table:
    """Return the table `baseline`.

    The row `adoption` says when the platform took an application's database over; a database that the
    platform made has none. What was past by then is history: nobody is told of it again.
    """
    return Table("baseline", metadata, Column("name", Text, primary_key=True), stamp("at"))


def findings_table(metadata: MetaData) -> Table:
    """Return the table `adoption_findings`: what stood in a migration's way, for a person to decide on.

    `subject` is the constraint, index or column in question; `examples` holds ids or values of up to 20 rows.
    """
    return Table(
        "adoption_findings",
        metadata,
        identity(),
        Column("revision", Text, nullable=False),
        Column("table_name", Text, nullable=False),
        Column("subject", Text, nullable=False),
        Column("finding", Text, nullable=False),
        Column("row_count", Integer),
        Column("examples", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
        stamp("found_at"),
        UniqueConstraint("revision", "table_name", "subject"),
    )
