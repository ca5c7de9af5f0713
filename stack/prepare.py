"""Bring the databases up to date, load airflow_settings.yaml, set the logins: `python -m stack.prepare`.

Runs in the stack's environment, before Airflow's processes start; the embedded stack and docker-compose.yaml
both use it. Safe to run again, and by several at once: Airflow and the migrations lock.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql
from sqlalchemy import URL, create_engine

from include.as_of import check_zone_data
from include.errors import AlmanacError
from stack.environment import LOOPBACK, write_logins
from stack.errors import StackError
from stack.home import Home, here, write_private
from stack.settings_file import ConnectionSetting, Settings, VariableSetting, load
from stack.terminal import progress, say

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

PLATFORM_DATABASE = "almanac"
"""The platform's own database; every other one belongs to the system of its name."""

LOADED = "airflow_settings_loaded"
"""The variable that remembers what this file last gave, so that a change made in the UI is kept."""

_MISSING_DATABASE = "3D000"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it all, in order; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m stack.prepare", description=__doc__)
    parser.add_argument(
        "--demo-data",
        action="store_true",
        help="also fill the business databases, and end and pause what runs",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="first throw away the databases that --demo-data fills, mail and files",
    )
    asked = parser.parse_args(arguments)
    try:
        check_zone_data()
        home = here()
        home.make()
        write_logins(home, os.environ)
        settings = load(home.settings, os.environ)
        if asked.fresh:
            throw_away(settings, home)
        make_databases(settings)
        migrate_airflow()
        migrate_systems(settings)
        load_settings(settings)
        if asked.demo_data:
            clear_the_stage()
            fill(settings, home)
    except (StackError, AlmanacError) as error:
        say(f"error: {error}")
        return 1
    return 0


def throw_away(settings: Settings, home: Home) -> None:
    """Drop the databases that demo data goes into, and empty the folders of mail and files.

    Raises StackError, before anything is gone, if such a database is not on the stack's own Postgres.
    """
    doomed = {
        name: connection for name, connection in settings.databases().items() if _demo_of(name) is not None
    }
    own = (os.environ.get("POSTGRES_HOST"), os.environ.get("POSTGRES_PORT"))
    for name, connection in doomed.items():
        if (connection.host, str(connection.port)) != own or own[0] != LOOPBACK:
            raise StackError(
                f"connection {connection.conn_id}: the database {name} on {connection.host}:{connection.port} is "
                "not the embedded stack's own, and is not thrown away"
            )
    for name, connection in doomed.items():
        with _connect(connection, _airflow_database()) as dropper:
            dropper.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        progress(f"the database {name} is thrown away")
    for folder in (home.outbox, home.storage):
        shutil.rmtree(folder)
    home.make()


def make_databases(settings: Settings) -> None:
    """Make the databases that are missing, where the connection's login may."""
    for name, connection in settings.databases().items():
        try:
            _connect(connection, name).close()
        except psycopg.OperationalError as error:
            if error.sqlstate not in (_MISSING_DATABASE, None):
                raise StackError(f"connection {connection.conn_id}: {error}") from None
            _make_database(connection, name)


def migrate_airflow() -> None:
    """Make or bring up to date Airflow's own tables."""
    from airflow.utils import db  # noqa: PLC0415 - Airflow reads its configuration when it is imported

    try:
        db.check_migrations(0)
    except TimeoutError:
        progress("Airflow's tables are made or brought up to date")
        db.upgradedb()


def migrate_systems(settings: Settings) -> None:
    """Bring every business database, and the platform's own, to its newest migration."""
    migrations = importlib.import_module("include.migrations")
    for name, connection in settings.databases().items():
        system = "platform" if name == PLATFORM_DATABASE else name
        engine = create_engine(_url(connection))
        try:
            migrations.upgrade(system, engine)
        finally:
            engine.dispose()


def load_settings(settings: Settings) -> None:
    """Load connections, pools and variables into Airflow.

    A connection is replaced. A pool or a variable that a person changed in the UI stays until the file says
    something else than it did when it was last loaded.
    """
    from airflow.models.connection import Connection  # noqa: PLC0415 - as above
    from airflow.models.pool import Pool  # noqa: PLC0415 - as above
    from airflow.models.variable import Variable  # noqa: PLC0415 - as above
    from airflow.utils.session import create_session  # noqa: PLC0415 - as above
    from sqlalchemy import delete, select  # noqa: PLC0415 - beside its only use

    with create_session() as session:
        for entry in settings.connections:
            session.execute(delete(Connection).where(Connection.conn_id == entry.conn_id))
            session.add(
                Connection(
                    conn_id=entry.conn_id,
                    conn_type=entry.conn_type,
                    description=entry.description,
                    host=entry.host,
                    port=entry.port,
                    schema=entry.schema,
                    login=entry.login,
                    password=entry.password,
                    extra=json.dumps(dict(entry.extra)) if entry.extra else None,
                )
            )
        loaded = session.scalar(select(Variable).where(Variable.key == LOADED))
        before = json.loads(loaded.get_val() or "{}") if loaded else {}
        now: dict[str, str] = {}
        for pool in settings.pools:
            found = session.scalar(select(Pool).where(Pool.pool == pool.name))
            key = f"pool {pool.name}"
            now[key] = _digest(str(pool.slots))
            if found is None or before.get(key) != now[key]:
                Pool.create_or_update_pool(
                    name=pool.name,
                    slots=pool.slots,
                    description=pool.description,
                    include_deferred=False,
                    session=session,
                )
        for variable in settings.variables:
            key = f"variable {variable.name}"
            now[key] = _digest(variable.value)
            found = session.scalar(select(Variable).where(Variable.key == variable.name))
            if found is None or before.get(key) != now[key]:
                _set(session, variable)
        _set(
            session,
            VariableSetting(LOADED, json.dumps(now), "What airflow_settings.yaml last gave, as digests"),
        )


def clear_the_stage() -> None:
    """Pause every DAG and end every run of an earlier start: both would take the demo's work away."""
    from airflow.models.dag import DagModel  # noqa: PLC0415 - as above
    from airflow.models.dagrun import DagRun  # noqa: PLC0415 - as above
    from airflow.models.taskinstance import TaskInstance  # noqa: PLC0415 - as above
    from airflow.utils.session import create_session  # noqa: PLC0415 - as above
    from airflow.utils.state import DagRunState, State, TaskInstanceState  # noqa: PLC0415 - as above
    from sqlalchemy import or_, select, tuple_, update  # noqa: PLC0415 - beside its only use

    unfinished = (DagRunState.QUEUED, DagRunState.RUNNING)
    # A task that was never scheduled has no state.
    waiting = or_(TaskInstance.state.is_(None), TaskInstance.state.in_(State.unfinished - {None}))
    with create_session() as session:
        session.execute(update(DagModel).values(is_paused=True))
        runs = select(DagRun.dag_id, DagRun.run_id).where(DagRun.state.in_(unfinished))
        session.execute(
            update(TaskInstance)
            .where(waiting, tuple_(TaskInstance.dag_id, TaskInstance.run_id).in_(runs))
            .values(state=TaskInstanceState.FAILED)
            .execution_options(synchronize_session=False)
        )
        session.execute(update(DagRun).where(DagRun.state.in_(unfinished)).values(state=DagRunState.FAILED))


def fill(settings: Settings, home: Home) -> None:
    """Put demo data into every business database whose system has some, and into the servers on loopback."""
    now = datetime.now(UTC)
    for name, connection in settings.databases().items():
        demo = _demo_of(name)
        if demo is None:
            continue
        engine = create_engine(_url(connection))
        try:
            with engine.begin() as open_connection:
                demo.seed(open_connection, now)
        finally:
            engine.dispose()
        if hasattr(demo, "lab_records"):
            write_private(home.lab, json.dumps(demo.lab_records(now), default=str) + "\n")
        if hasattr(demo, "feeds"):
            write_private(home.feeds, json.dumps(demo.feeds(now)) + "\n")
        if hasattr(demo, "gazettes"):
            write_private(home.gazettes, json.dumps(demo.gazettes(now)) + "\n")
        if hasattr(demo, "letters"):
            write_private(home.letters, json.dumps(demo.letters(now)) + "\n")
        progress(f"demo data is in the database {name}")


def _demo_of(database: str) -> Any:
    """Return the module with the demo data of the system that a database belongs to, or None."""
    if database == PLATFORM_DATABASE or importlib.util.find_spec(f"include.{database}.demo") is None:
        return None
    return importlib.import_module(f"include.{database}.demo")


def _set(session: Session, variable: VariableSetting) -> None:
    from airflow.models.variable import Variable  # noqa: PLC0415 - as above

    Variable.set(variable.name, variable.value, description=variable.description, session=session)


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:16]


def _url(connection: ConnectionSetting) -> URL:
    return URL.create(
        "postgresql+psycopg",
        connection.login,
        connection.password,
        connection.host,
        connection.port,
        connection.schema,
    )


def _connect(connection: ConnectionSetting, database: str) -> psycopg.Connection:
    return psycopg.connect(
        host=connection.host,
        port=connection.port,
        user=connection.login,
        password=connection.password,
        dbname=database,
        connect_timeout=10,
        autocommit=True,
    )


def _airflow_database() -> str:
    return urlsplit(os.environ.get("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "")).path.lstrip("/") or "postgres"


def _make_database(connection: ConnectionSetting, name: str) -> None:
    try:
        with _connect(connection, _airflow_database()) as maker:
            maker.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except psycopg.Error as error:
        first = (str(error).splitlines() or ["no answer"])[0]
        raise StackError(f"connection {connection.conn_id}: database {name}: {first}") from None


if __name__ == "__main__":
    sys.exit(main())
