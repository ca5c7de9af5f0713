"""An application may have an enum type wherever this platform has words: its database is taken as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    DefaultClause,
    Enum,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    inspect,
    text,
)

from include import migrations
from include.ecocomply.migrations.r0001_tables import METADATA
from include.run import EngineDatabase
from tests.conftest import Databases
from tests.dags.every import ROOT, DagFile, dag_files
from tests.dags.test_promises import Scene

OURS = tuple(dag for dag in dag_files() if dag.system == "ecocomply")
STATEMENTS = [
    path
    for path in sorted((ROOT / "include" / "ecocomply").glob("**/sql/*.sql"))
    # The demo's data are made for our own tables; what has braces is completed in code.
    if "generator" not in path.parts and "{" not in re.sub(r"'[^']*'", "", path.read_text(encoding="utf-8"))
]
PLATFORMS = {"baseline", "adoption_findings", "queue_audit"}
"""What no application has."""


def word_lists() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return the columns that hold words, by table and name, each with its list."""
    return {
        (table.name, constraint.info["column"]): constraint.info["words"]
        for table in METADATA.sorted_tables
        for constraint in table.constraints
        if isinstance(constraint, CheckConstraint) and "words" in constraint.info
    }


def _default(column: Column[Any]) -> Any:
    return column.server_default.arg if isinstance(column.server_default, DefaultClause) else None


def as_an_application_has_it() -> MetaData:
    """Return every table with its columns alone, and with an enum type of its own for each column of words."""
    theirs, words = MetaData(), word_lists()
    for table in METADATA.sorted_tables:
        if table.name in PLATFORMS:
            continue
        columns = [
            Column(
                column.name,
                Enum(*words[place], name=f"{table.name}_{column.name}")
                if (place := (table.name, column.name)) in words
                else column.type,
                nullable=column.nullable,
                server_default=_default(column),
            )
            for column in table.columns
        ]
        Table(table.name, theirs, *columns, PrimaryKeyConstraint(*table.primary_key.columns.keys()))
    return theirs


@pytest.fixture(scope="session")
def enum_template(databases: Databases) -> str:
    """Make a database of enum types, and bring it up to date, once."""
    name, engine = databases.make(None)
    as_an_application_has_it().create_all(engine)
    migrations.upgrade("ecocomply", engine)
    # Nobody may be connected to a template while it is copied.
    engine.dispose()
    return name


@pytest.fixture
def enums(databases: Databases, enum_template: str) -> Iterator[EngineDatabase]:
    """Make a database of enum types, empty."""
    name, engine = databases.make(None, template=enum_template)
    yield EngineDatabase(engine)
    databases.drop(name, engine)


@pytest.fixture(scope="module")
def asked(databases: Databases, enum_template: str) -> Iterator[Connection]:
    """Open a database of enum types that nothing is changed in."""
    name, engine = databases.make(None, template=enum_template)
    with engine.connect() as connection:
        yield connection
    databases.drop(name, engine)


def test_every_list_of_words_is_an_enum(enums: EngineDatabase) -> None:
    """Else the jobs would be tried on less than they may meet."""
    columns = inspect(enums.engine)
    kept = {
        (table, column["name"])
        for table in METADATA.tables
        for column in columns.get_columns(table)
        if isinstance(column["type"], Enum)
    }
    assert kept == {place for place in word_lists() if place[0] not in PLATFORMS}


@pytest.mark.parametrize("dag", OURS, ids=str)
def test_a_job_ends_as_on_text(
    dag: DagFile, enums: EngineDatabase, database_of: Callable[..., EngineDatabase]
) -> None:
    """Ruling 15: text or enum statuses; an enum is never equal to a text, and a job would fail on it."""
    now = datetime.now(UTC)
    ends = []
    for database in (database_of("ecocomply"), enums):
        scene = Scene(dag, database, now)
        run = scene.perform()
        ends.append((run.counts, run.state, scene.state()))
    on_text, on_enums = ends
    assert on_enums[:2] == on_text[:2]
    assert on_enums[2] == on_text[2]


@pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: path.stem)
def test_every_statement_takes_an_enum(path: Path, asked: Connection) -> None:
    """Also those of the console, the records and the queue, and the branches that no seed reaches."""
    statement = text(f"EXPLAIN {path.read_text(encoding='utf-8')}")
    asked.execute(statement, dict.fromkeys(statement.compile().params))
    asked.rollback()
