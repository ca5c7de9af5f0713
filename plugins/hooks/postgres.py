"""The databases behind Airflow's connections."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from hooks.connections import Access, access
from include.engines import make_engine
from include.run import EngineDatabase

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

_CONNECT_SECONDS = 10
# A task waits this long for another run of its job, rather than use up an attempt.
_PATIENCE_SECONDS = 60
# What the connection itself says, under names of its own.
_NOT_EXTRA = ("host", "hostaddr", "port", "user", "password", "dbname", "application_name")
_engines: list[Engine] = []


@cache
def database(conn_id: str) -> EngineDatabase:
    """Return the database of an Airflow connection; its extra holds libpq's parameters (sslmode, …).

    Nothing is opened until the first transaction. Raises UnknownConnection if there is no such connection.
    """
    connect = {"application_name": conn_id}
    engine = make_engine(
        url_of(access(conn_id)), connect=connect, pool_size=3, max_overflow=2, pool_timeout=30
    )
    _engines.append(engine)
    return EngineDatabase(engine, patience=_PATIENCE_SECONDS)


def url_of(found: Access) -> URL:
    """Return the SQLAlchemy URL that an Airflow connection of type postgres stands for.

    Of its extra it has what libpq knows; everything else there is meant for other readers.
    """
    from psycopg.pq import Conninfo  # noqa: PLC0415 - needed once a process
    from sqlalchemy import URL  # noqa: PLC0415 - as above

    if not found.schema:
        raise found.bad("schema", "is missing: it names the database")
    known = {option.keyword.decode() for option in Conninfo.get_defaults()} - set(_NOT_EXTRA)
    query = {"connect_timeout": str(_CONNECT_SECONDS)}
    for name in sorted(known & found.extra.keys()):
        value = found.extra[name]
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise found.bad(f"extra {name!r}", f"must be text or a whole number, not {type(value).__name__}")
        query[name] = str(value)
    host, port = found.host, found.port
    if host and host.startswith("/"):
        # A socket's folder is no host name of a URL.
        query |= {"host": host} | ({"port": str(port)} if port else {})
        host = port = None
    return URL.create("postgresql+psycopg", found.login, found.password, host, port, found.schema, query)


def _leave_to_parent() -> None:
    """Let a forked process open connections of its own: two that speak over one connection break it."""
    for engine in _engines:
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_leave_to_parent)
