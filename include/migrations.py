"""The history of every system's database: `include/<system>/migrations`, one file a revision, forward only.

A system has a history if that folder exists; its version table is named after it. To bring a database up to
date: `python -m include.migrations <system> <SQLAlchemy URL>`. A password may stand in the URL; in PGPASSWORD
nobody sees it in the list of processes.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.script.revision import RevisionError
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, MetaData, func, make_url, select, text
from sqlalchemy.exc import ArgumentError

from include.engines import make_engine
from include.errors import AlmanacError, BadInput
from include.run import database_errors

_HERE = Path(__file__).parent
_LOCK_TIMEOUT = text(
    "SELECT set_config('lock_timeout', CAST(CAST(:seconds AS float) * 1000 AS int)::text, false)"
)
_HOLD = text("SELECT pg_advisory_lock(hashtextextended(:what, 0))")
_RELEASE = text("SELECT pg_advisory_unlock(hashtextextended(:what, 0))")


def systems() -> tuple[str, ...]:
    """Return the systems that have a history, by name."""
    return tuple(sorted(folder.parent.name for folder in _HERE.glob("*/migrations") if folder.is_dir()))


def revisions(system: str) -> tuple[str, ...]:
    """Return the ids of a system's revisions, oldest first. Raises BadInput for an unknown system."""
    script = _script(system)
    return tuple(reversed([found.revision for found in script.walk_revisions()]))


def tables(system: str) -> MetaData:
    """Return the tables as the newest revision leaves them."""
    _folder(system)
    found: MetaData = importlib.import_module(f"include.{system}.tables").METADATA
    return found


def current(system: str, engine: Engine) -> str | None:
    """Return the revision that a database stands at, or None if no migration has run there."""
    _folder(system)
    with database_errors(), engine.connect() as connection:
        options = {"version_table": version_table(system)}
        return MigrationContext.configure(connection, opts=options).get_current_revision()


def upgrade(system: str, engine: Engine, revision: str = "head", *, lock_seconds: float = 10.0) -> None:
    """Bring a database up to `revision`, each revision in a transaction of its own.

    Two processes that do so at once go one after the other. Raises BadInput for an unknown system or
    revision, or for a table of an application that can't be adopted, and Transient if an application holds a
    table for `lock_seconds`, since its own queries queue behind the migration; then nothing of that revision
    is done.
    """
    script = _script(system)
    with database_errors(), engine.connect() as connection, _alone(connection, system, lock_seconds):

        def steps(at: Any, _: MigrationContext) -> Any:
            return script._upgrade_revs(revision, at)  # noqa: SLF001 - what alembic's own command calls

        with EnvironmentContext(Config(), script, fn=steps, destination_rev=revision) as environment:
            environment.configure(
                connection=connection,
                target_metadata=tables(system),
                version_table=version_table(system),
                transaction_per_migration=True,
            )
            with _named(system), environment.begin_transaction():
                environment.run_migrations()


def version_table(system: str) -> str:
    """Return the name of the table that holds the revision a database stands at."""
    return f"alembic_version_{system}"


@contextmanager
def _alone(connection: Connection, system: str, lock_seconds: float) -> Generator[None]:
    what = {"what": f"migrations of {system}"}
    connection.execute(_HOLD, what)
    connection.execute(_LOCK_TIMEOUT, {"seconds": lock_seconds})
    connection.commit()
    try:
        yield
    finally:
        # The session's lock goes with the session, also where a broken connection can't say so any more.
        if not connection.invalidated:
            connection.rollback()
            connection.execute(_RELEASE, what)
            connection.execute(text("RESET lock_timeout"))
            connection.commit()


@contextmanager
def _named(system: str) -> Generator[None]:
    try:
        yield
    except (CommandError, RevisionError) as error:
        raise BadInput(f"{system}: {error}") from error


def _script(system: str) -> ScriptDirectory:
    folder = str(_folder(system))
    return ScriptDirectory(folder, version_locations=[folder])


def _folder(system: str) -> Path:
    if system not in systems():
        raise BadInput(f"migrations: {system!r} is not a system with a history: {', '.join(systems())}")
    return _HERE / system / "migrations"


def main(arguments: Sequence[str] | None = None) -> int:
    """Bring one database up to date, say where it stands, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m include.migrations", description=__doc__)
    parser.add_argument("system", choices=systems())
    parser.add_argument("url", help="postgresql://user@host:5432/database")
    asked = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        engine = _engine(asked.url)
        upgrade(asked.system, engine)
        at, findings = current(asked.system, engine), _findings(asked.system, engine)
        engine.dispose()
    except AlmanacError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write(f"{asked.system}: at revision {at}; adoption_findings has {findings} rows\n")
    return 0


def _engine(given: str) -> Engine:
    # What was given may hold a password, so no message repeats it.
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        raise BadInput("URL: can't be read; as in postgresql://user@host:5432/database") from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise BadInput(f"URL: {url.get_backend_name()!r} is not postgresql")
    return make_engine(url.set(drivername="postgresql+psycopg"))


def _findings(system: str, engine: Engine) -> int:
    found = tables(system).tables["adoption_findings"]
    with database_errors(), engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(found)).scalar_one()


if __name__ == "__main__":
    sys.exit(main())
