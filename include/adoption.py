"""How a migration takes over a database that an application already uses.

Nothing of the application's is dropped or narrowed. What is missing is made; a constraint that old rows break
is made so that it holds for new rows, and reported.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from sqlalchemy.dialects.postgresql import DOMAIN, ENUM, JSONB, insert
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import ExecutableDDLElement
from sqlalchemy.sql.compiler import DDLCompiler
from sqlalchemy.sql.elements import Grouping

from include.columns import Word, findings_table, metadata
from include.errors import BadInput

_log = logging.getLogger(__name__)

SURPLUS = "adoption_duplicate_of"
"""Column of a table whose old rows break a unique key: on a surplus row, the id of the row kept."""

EXAMPLES = 20
"""How many rows or values a finding names."""

_MOST_FOREIGN_WORDS = 50
_DEPENDENTS_IN_THE_WAY = ("2BP01", "0A000")

_READ_AS_UTC = sa.text("SET LOCAL timezone = 'UTC'")

_FINDINGS = findings_table(metadata())


class _AddEnumValue(ExecutableDDLElement):
    def __init__(self, enum: ENUM, word: str) -> None:
        self.enum, self.word = enum, word


class _Validate(ExecutableDDLElement):
    def __init__(self, table: str, constraint: str) -> None:
        self.table, self.constraint = table, constraint


@compiles(_AddEnumValue)
def _add_enum_value(element: _AddEnumValue, compiler: DDLCompiler, **_: Any) -> str:
    quote = compiler.preparer.quote
    parts = [part for part in (element.enum.schema, element.enum.name) if part]
    name = ".".join(quote(part) for part in parts)
    word = compiler.sql_compiler.render_literal_value(element.word, sa.String())
    return f"ALTER TYPE {name} ADD VALUE IF NOT EXISTS {word}"


@compiles(_Validate)
def _validate(element: _Validate, compiler: DDLCompiler, **_: Any) -> str:
    quote = compiler.preparer.quote
    return f"ALTER TABLE {quote(element.table)} VALIDATE CONSTRAINT {quote(element.constraint)}"


@dataclass(slots=True)
class Adoption:
    """One revision's work on a database: bring it to have at least the tables of `wanted`.

    `wanted` may name, of a table that an earlier revision made, only the columns that are new or that a key
    or an index needs. `had_rows` says afterwards whether any of its tables existed with rows in it.

    A column's `info` may say `any_type`: whatever type it has will do; or `words`: an enum type must know at
    least these. A table's `info` may say `written`: the jobs insert rows, so a foreign NOT NULL column
    without a default is reported.
    """

    context: MigrationContext
    system: str
    revision: str
    wanted: sa.MetaData
    had_rows: bool = False
    op: Operations = field(init=False)
    _found: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.op = Operations(self.context)

    def run(self) -> None:
        """Do it. Raises BadInput, with nothing changed, if a column has a type that can't be adopted."""
        bind = self.op.get_bind()
        # An instant without a zone is UTC by Prisma's and most other habits, so it is read as UTC.
        bind.execute(_READ_AS_UTC)
        inspector = sa.inspect(bind)
        here = set(inspector.get_table_names())
        old = [table for table in self.wanted.sorted_tables if table.name in here]
        new = [table for table in self.wanted.sorted_tables if table.name not in here]
        self._found = {
            table.name: {column["name"]: column for column in inspector.get_columns(table.name)}
            for table in old
        }
        self._check_types(old)
        self._widen_enums(old)
        # Findings come first, so that everything after them can report.
        if _FINDINGS.name not in here:
            self.wanted.tables.get(_FINDINGS.name, _FINDINGS).create(bind)
            new = [table for table in new if table.name != _FINDINGS.name]
        self.had_rows = any(self._is_there(_bare(table)) for table in old)
        for table in old:
            self._complete_columns(table)
            self._ensure_primary_key(table)
        self.wanted.create_all(bind, tables=new, checkfirst=False)
        for table in old:
            self._add_uniques(table)
            self._add_checks(table)
        for table in old:
            self._add_foreign_keys(table)
            self._add_indexes(table)

    # --- columns

    def _check_types(self, tables: Sequence[sa.Table]) -> None:
        wrong = [
            f"{table.name}.{column.name} is {self._said(found['type'])}, which can't serve as "
            f"{self._said(column.type)}"
            for table in tables
            for column in table.columns
            if (found := self._found[table.name].get(column.name)) is not None
            and not column.info.get("any_type")
            and not _fits(column.type, found["type"])
        ]
        wrong += [
            f"{table.name}.{column.name} is {self._said(found['type'])} and holds times of day, so it can't "
            f"become a date"
            for table in tables
            for column in table.columns
            if (found := self._found[table.name].get(column.name)) is not None
            and isinstance(column.type, sa.Date)
            and isinstance(found["type"], sa.DateTime)
            and self._has_times_of_day(table, column)
        ]
        if wrong:
            raise BadInput(f"{self.system}: the database can't be adopted: {'; '.join(wrong)}")

    def _has_times_of_day(self, table: sa.Table, column: sa.Column[Any]) -> bool:
        rows = _bare(table, column.name)
        value = rows.c[column.name]
        return self._is_there(rows, value != sa.func.date_trunc("day", value))

    def _widen_enums(self, tables: Sequence[sa.Table]) -> None:
        missing = [
            (found, word)
            for table in tables
            for name, words in _words(table)
            if isinstance(found := self._type(table, name), sa.Enum)
            for word in words
            if word not in found.enums
        ]
        if not missing:
            return
        # A new word can't be used in the transaction that adds it.
        with self.context.autocommit_block():
            for enum, word in missing:
                self.op.get_bind().execute(_AddEnumValue(enum, word))
        self.op.get_bind().execute(_READ_AS_UTC)

    def _complete_columns(self, table: sa.Table) -> None:
        for column in table.columns:
            found = self._found[table.name].get(column.name)
            default = _default(column)
            if found is None:
                optional = column.nullable or default is None
                self.op.add_column(
                    table.name, sa.Column(column.name, column.type, nullable=optional, server_default=default)
                )
                continue
            if isinstance(found["type"], sa.DateTime) and not _same_time_type(column.type, found["type"]):
                self._convert_time(table, column, found["type"])
            if default is not None and found["default"] is None and not found.get("identity"):
                self._give_default(table, column, found, default)
        if table.info.get("written"):
            self._report_foreign_columns(table)

    def _convert_time(self, table: sa.Table, column: sa.Column[Any], found: Any) -> None:
        try:
            with self._savepoint():
                self.op.alter_column(table.name, column.name, type_=column.type, existing_type=found)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in _DEPENDENTS_IN_THE_WAY:
                raise
            raise BadInput(
                f"{self.system}: {table.name}.{column.name} is {self._said(found)} and can't become "
                f"{self._said(column.type)}: "
                f"{str(error.orig).splitlines()[0]}"
            ) from error
        self._report(
            table, column.name, f"was {self._said(found)}, read as UTC, and is {self._said(column.type)}"
        )

    def _give_default(
        self, table: sa.Table, column: sa.Column[Any], found: Mapping[str, Any], default: Any
    ) -> None:
        if column.info.get("any_type") and not isinstance(found["type"], sa.Uuid | sa.String):
            self._report(table, column.name, f"is {self._said(found['type'])} without a default")
            return
        self.op.alter_column(table.name, column.name, server_default=default)
        # Numbers and flags alone: a status that nobody set must not become one that a job acts on.
        if not column.nullable and isinstance(column.type, sa.Boolean | sa.Integer):
            value = sa.column(column.name)
            filled = self.op.get_bind().execute(
                sa.update(_bare(table, column.name)).where(value.is_(None)).values({column.name: default})
            )
            if filled.rowcount:
                self._report(table, column.name, "was null and got its default", filled.rowcount)

    def _report_foreign_columns(self, table: sa.Table) -> None:
        for name, found in self._found[table.name].items():
            made = found["default"] is not None or found.get("identity") or found.get("computed")
            if name not in table.columns and not found["nullable"] and not made:
                self._report(table, name, "must not be null and has no default: give it one, the jobs can't")

    # --- keys and checks

    def _ensure_primary_key(self, table: sa.Table) -> None:
        inspector = self._inspector()
        wanted = [column.name for column in table.primary_key.columns]
        if not wanted or set(wanted) in self._unique_column_sets(table.name):
            return
        rows = _bare(table, *wanted)
        count = sa.select(sa.func.count()).select_from(rows)
        duplicates = self._value(count) - self._value(
            sa.select(sa.func.count()).select_from(sa.select(*rows.c).distinct().subquery())
        )
        nulls = self._value(count.where(sa.or_(*(column.is_(None) for column in rows.c))))
        if duplicates or nulls:
            raise BadInput(
                f"{self.system}: the database can't be adopted: {table.name} has {nulls} rows without "
                f"{', '.join(wanted)} and {duplicates} that repeat one"
            )
        name = f"pk_{table.name}"
        if inspector.get_pk_constraint(table.name)["constrained_columns"]:
            self.op.create_unique_constraint(name, table.name, wanted)
        else:
            self.op.create_primary_key(name, table.name, wanted)

    def _add_uniques(self, table: sa.Table) -> None:
        for constraint in _sorted(table, sa.UniqueConstraint):
            columns = [column.name for column in constraint.columns]
            name = self._name(constraint)
            if set(columns) in self._unique_column_sets(table.name) or name in self._index_names(table.name):
                continue
            if self._mark_surplus(table, name, columns, None, nulls_equal=False):
                self.op.create_index(
                    name, table.name, columns, unique=True, postgresql_where=sa.column(SURPLUS).is_(None)
                )
            else:
                self.op.create_unique_constraint(name, table.name, columns)

    def _add_indexes(self, table: sa.Table) -> None:
        present = self._index_names(table.name)
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            if index.name in present:
                continue
            options = index.dialect_options["postgresql"]
            where = options["where"]
            columns = [str(column.name) for column in index.columns]
            equal = bool(options["nulls_not_distinct"])
            if index.unique and self._mark_surplus(table, str(index.name), columns, where, nulls_equal=equal):
                kept = sa.column(SURPLUS).is_(None)
                where = kept if where is None else sa.and_(Grouping(where), kept)
            self.op.create_index(
                index.name,
                table.name,
                columns,
                unique=index.unique,
                postgresql_where=where,
                postgresql_nulls_not_distinct=options["nulls_not_distinct"],
            )

    def _mark_surplus(
        self, table: sa.Table, name: str, columns: Sequence[str], where: Any, *, nulls_equal: bool
    ) -> bool:
        """Mark the rows that a unique key would not let in, the oldest of each key excepted."""
        keys = [sa.column(column) for column in columns]
        rows = _bare(table, "id", "created_at", SURPLUS, *columns)
        order = [rows.c.created_at, rows.c.id] if self._has_column(table.name, "created_at") else [rows.c.id]
        ranked = sa.select(
            rows.c.id,
            sa.func.first_value(rows.c.id).over(partition_by=keys, order_by=order).label("kept"),
            sa.func.row_number().over(partition_by=keys, order_by=order).label("place"),
        )
        marked = self._has_column(table.name, SURPLUS)
        if marked:
            ranked = ranked.where(rows.c[SURPLUS].is_(None))
        if where is not None:
            ranked = ranked.where(Grouping(where))
        if not nulls_equal:
            ranked = ranked.where(*(key.is_not(None) for key in keys))
        found = ranked.subquery()
        surplus = sa.select(found.c.id, found.c.kept).where(found.c.place > 1)
        count = self._value(sa.select(sa.func.count()).select_from(surplus.subquery()))
        if not count:
            return marked
        examples = [str(row.id) for row in self.op.get_bind().execute(surplus.limit(EXAMPLES))]
        if not marked:
            self.op.add_column(table.name, sa.Column(SURPLUS, sa.Text))
        twin = surplus.subquery()
        self.op.get_bind().execute(
            sa.update(rows).where(rows.c.id == twin.c.id).values({SURPLUS: sa.cast(twin.c.kept, sa.Text)})
        )
        self._report(
            table,
            name,
            f"rows repeat {', '.join(columns)}; they stay, with the id of the oldest in {SURPLUS}, "
            f"and the key holds for all others",
            count,
            examples,
        )
        return True

    def _add_checks(self, table: sa.Table) -> None:
        present = {found["name"] for found in self._inspector().get_check_constraints(table.name)}
        for constraint in _sorted(table, sa.CheckConstraint):
            name = self._name(constraint)
            if name in present:
                continue
            words = constraint.info.get("words")
            if words is None:
                self._add_check(table, name, constraint.sqltext)
                continue
            column = constraint.info["column"]
            foreign = self._foreign_words(table, column, words)
            if isinstance(self._type(table, column), sa.Enum) or len(foreign) > _MOST_FOREIGN_WORDS:
                continue
            # An application that uses a word of its own goes on using it.
            self._add_check(table, name, sa.column(column).in_([*words, *foreign]))

    def _foreign_words(self, table: sa.Table, column: str, words: Sequence[str]) -> list[str]:
        rows = _bare(table, column)
        value: sa.ColumnElement[str] = sa.cast(rows.c[column], sa.Text)
        foreign = value.not_in(words)
        found = self.op.get_bind().execute(sa.select(value).where(foreign).distinct().order_by(value))
        others: list[str] = [row[0] for row in found.fetchmany(_MOST_FOREIGN_WORDS + 1)]
        if others:
            self._report(
                table,
                column,
                "holds words that no job knows; the jobs leave these rows alone",
                self._value(sa.select(sa.func.count()).select_from(rows).where(foreign)),
                others[:EXAMPLES],
            )
        return others

    def _add_check(self, table: sa.Table, name: str, condition: Any) -> None:
        self.op.create_check_constraint(self.op.f(name), table.name, condition, postgresql_not_valid=True)
        self._validate(table, name, _bare(table), sa.not_(condition))

    def _add_foreign_keys(self, table: sa.Table) -> None:
        present = {
            (tuple(found["constrained_columns"]), found["referred_table"])
            for found in self._inspector().get_foreign_keys(table.name)
        }
        for constraint in _sorted(table, sa.ForeignKeyConstraint):
            columns = [column.name for column in constraint.columns]
            parent = constraint.referred_table
            if (tuple(columns), parent.name) in present:
                continue
            name = self._name(constraint)
            self.op.create_foreign_key(
                self.op.f(name),
                table.name,
                parent.name,
                columns,
                [element.column.name for element in constraint.elements],
                ondelete=constraint.ondelete,
                postgresql_not_valid=True,
            )
            (element,) = constraint.elements
            rows, others = _bare(table, "id", *columns), _bare(parent, element.column.name)
            child = rows.c[element.parent.name]
            match = sa.select(others).where(others.c[element.column.name] == child)
            self._validate(table, name, rows, sa.and_(child.is_not(None), sa.not_(match.exists())))

    def _validate(self, table: sa.Table, name: str, rows: sa.TableClause, broken: Any) -> None:
        try:
            with self._savepoint():
                self.op.execute(_Validate(table.name, name))
        except IntegrityError:
            examples = self.op.get_bind().execute(sa.select(rows.c.id).where(broken).limit(EXAMPLES))
            self._report(
                table,
                name,
                "old rows break it; it holds for new and changed rows",
                self._value(sa.select(sa.func.count()).select_from(rows).where(broken)),
                [str(row.id) for row in examples],
            )

    # --- reading and reporting

    def _report(
        self,
        table: sa.Table,
        subject: str,
        finding: str,
        row_count: int | None = None,
        examples: Sequence[str] = (),
    ) -> None:
        _log.warning(
            "adoption: %s, revision %s: %s, %s: %s (rows: %s)",
            self.system,
            self.revision,
            table.name,
            subject,
            finding,
            row_count,
        )
        statement = insert(_FINDINGS).values(
            revision=self.revision,
            table_name=table.name,
            subject=subject,
            finding=finding,
            row_count=row_count,
            examples=list(examples),
        )
        self.op.get_bind().execute(statement.on_conflict_do_nothing())

    @contextmanager
    def _savepoint(self) -> Generator[None]:
        with self.op.get_bind().begin_nested():
            yield

    def _is_there(self, rows: sa.TableClause, *conditions: Any) -> bool:
        found = sa.select(sa.literal_column("1")).select_from(rows).where(*conditions)
        return bool(self._value(sa.select(found.exists())))

    def _value(self, statement: Any) -> Any:
        return self.op.get_bind().execute(statement).scalar()

    def _inspector(self) -> sa.Inspector:
        # A new one each time: it remembers what it has seen, and the tables change under it.
        return sa.inspect(self.op.get_bind())

    def _type(self, table: sa.Table, column: str) -> Any:
        found = self._found[table.name].get(column)
        return None if found is None else _base(found["type"])

    def _said(self, type_: Any) -> str:
        return str(type_.compile(dialect=self.op.get_bind().dialect))

    def _has_column(self, table: str, name: str) -> bool:
        return any(column["name"] == name for column in self._inspector().get_columns(table))

    def _index_names(self, table: str) -> set[str | None]:
        return {index["name"] for index in self._inspector().get_indexes(table)}

    def _unique_column_sets(self, table: str) -> list[set[str | None]]:
        """Return the column sets that a constraint or an unconditional index already makes unique."""
        inspector = self._inspector()
        found: list[set[str | None]] = [set(inspector.get_pk_constraint(table)["constrained_columns"])]
        found += [set(unique["column_names"]) for unique in inspector.get_unique_constraints(table)]
        found += [
            set(index["column_names"])
            for index in inspector.get_indexes(table)
            if index["unique"] and not index.get("dialect_options", {}).get("postgresql_where")
        ]
        return found

    def _name(self, constraint: sa.Constraint) -> str:
        return str(self.op.get_bind().dialect.identifier_preparer.format_constraint(constraint))


def _bare(table: sa.Table, *columns: str) -> sa.TableClause:
    """Return a table by name, without types: values go in and come out as the database has them."""
    names = dict.fromkeys(columns or ("id",))
    return sa.table(table.name, *(sa.column(name) for name in names))


def _default(column: sa.Column[Any]) -> Any:
    """Return what the database puts into a column that an insert leaves out, or None."""
    return column.server_default.arg if isinstance(column.server_default, sa.DefaultClause) else None


def _words(table: sa.Table) -> list[tuple[str, tuple[str, ...]]]:
    """Return the columns that hold words from a list, each with its list."""
    checked = [
        (constraint.info["column"], constraint.info["words"])
        for constraint in _sorted(table, sa.CheckConstraint)
        if "words" in constraint.info
    ]
    return checked + [(column.name, column.info["words"]) for column in table.c if "words" in column.info]


def _sorted(table: sa.Table, kind: type[Any]) -> list[Any]:
    found = [constraint for constraint in table.constraints if isinstance(constraint, kind)]
    return sorted(found, key=lambda constraint: str(constraint.name))


def _base(found: Any) -> Any:
    return found.data_type if isinstance(found, DOMAIN) else found


def _fits(wanted: Any, found: Any) -> bool:
    found = _base(found)
    for ours, theirs in (
        (sa.Uuid, sa.Uuid),
        (Word, sa.String),
        (sa.String, sa.String),
        (sa.DateTime, sa.DateTime),
        (sa.Date, sa.Date | sa.DateTime),
        (sa.Boolean, sa.Boolean),
        (sa.Integer, sa.Integer),
        (sa.Numeric, sa.Numeric | sa.Float | sa.Integer),
        (JSONB, JSONB),
    ):
        if isinstance(wanted, ours):
            return isinstance(found, theirs)
    return False


def _same_time_type(wanted: Any, found: Any) -> bool:
    return isinstance(wanted, sa.DateTime) and wanted.timezone == found.timezone
