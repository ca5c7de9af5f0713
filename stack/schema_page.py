"""docs/ecocomply-schema.md, drawn from EcoComply's tables: one picture an area of the business."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any

from stack.home import PROJECT

PAGE = PROJECT / "docs" / "ecocomply-schema.md"

_HEAD = """\
# EcoComply's schema

Written by `make docs` from `include/ecocomply/tables`; `make check` fails when it is stale. Every table of companies
has a `company_id` besides, and most have `created_at` and `updated_at`. A line's label is the column that names the
other table; columns that only say which user did something have no line. What the tables promise, and who sees which
rows: [EcoComply's database](ecocomply.md).

"""
_EVERYWHERE = {"id", "company_id", "created_at", "updated_at"}
_SHORT = {
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "SMALLINT": "smallint",
    "BOOLEAN": "bool",
}


def page() -> str:
    """Return the page."""
    areas = importlib.import_module("include.ecocomply.tables").AREAS
    return _HEAD + "\n".join(_area(area) for area in areas if tables_of(area))


def tables_of(area: Any) -> list[Any]:
    """Return the tables that a module names, in its order."""
    from sqlalchemy import Table  # noqa: PLC0415 - not where nobody asks for the page

    return [value for name, value in vars(area).items() if name.isupper() and isinstance(value, Table)]


def _area(area: Any) -> str:
    tables = tables_of(area)
    lines = ["```mermaid", "erDiagram", *_lines(tables)]
    for table in tables:
        lines += [f"    {table.name} {{", *(f"        {row}" for row in _columns(table)), "    }"]
    said = " ".join((area.__doc__ or "").split())
    title = area.__name__.rpartition(".")[2].replace("_", " ").capitalize()
    return "\n".join([f"## {title}", "", said, "", *lines, "```", *_keys(tables), ""])


def _lines(tables: Iterable[Any]) -> Iterator[str]:
    for table in tables:
        for column in table.columns:
            for key in column.foreign_keys:
                parent = key.column.table.name
                if column.name == "company_id" or (parent == "users" and key.ondelete == "SET NULL"):
                    continue
                yield f'    {parent} {"|o" if column.nullable else "||"}--o{{ {table.name} : "{column.name}"'


def _columns(table: Any) -> Iterator[str]:
    words = {
        check.info["column"]: check.info["words"] for check in table.constraints if "words" in check.info
    }
    for column in table.columns:
        if column.name in _EVERYWHERE - {"id"}:
            continue
        said = f' "{", ".join(words[column.name])}"' if column.name in words else ""
        yield f"{_type(column)} {column.name}{said}"


def _type(column: Any) -> str:
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415 - as above

    name = column.type.compile(dialect=postgresql.dialect()).partition("(")[0]
    inner = name.removesuffix("[]")
    short = _SHORT.get(inner, inner.lower())
    return f"{short}_list" if name.endswith("[]") else short


def _keys(tables: Iterable[Any]) -> list[str]:
    """Return a table of what there is once."""
    from sqlalchemy import UniqueConstraint  # noqa: PLC0415 - as above
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415 - as above

    rows = []
    for table in tables:
        keys = [
            ", ".join(f"`{column.name}`" for column in key.columns)
            for key in sorted(table.constraints, key=lambda key: str(key.name))
            if isinstance(key, UniqueConstraint)
        ]
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            if index.unique:
                where = index.dialect_options["postgresql"]["where"]
                said = "" if where is None else f" where `{where.compile(dialect=postgresql.dialect())}`"
                keys.append(", ".join(f"`{column.name}`" for column in index.columns) + said)
        rows += [f"| `{table.name}` | {key} |" for key in keys]
    return ["", "| table | one row for each |", "|---|---|", *rows] if rows else []
