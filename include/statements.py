"""SQL statements live in files beside the job that uses them, one a file, with named binds."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import NamedTuple

from sqlalchemy import TextClause, text


class Statement(NamedTuple):
    """A statement with the name of its file, so that a log or a test can say which one it was."""

    name: str
    clause: TextClause


@cache
def statement(package: str, name: str) -> Statement:
    """Return the statement in `<package>/sql/<name>.sql`; binds are written `:name`.

    Raises FileNotFoundError if there is no such file.
    """
    source = resources.files(package).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    return Statement(name, text(source))
