"""The console's way to the databases: one pooled engine per Airflow connection."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from sqlalchemy import URL, Engine

from hooks.connections import access
from hooks.postgres import url_of
from include.engines import make_engine
from include.run import EngineDatabase, Transaction, database_errors

STATEMENT_TIMEOUT_SECONDS = 5
_LOOK_UP_AGAIN_SECONDS = 60
_CONNECT_SECONDS = 5
_POOL_SIZE = 5
_POOL_WAIT_SECONDS = 5


@dataclass(slots=True)
class _Open:
    url: URL
    engine: Engine
    looked_up: float


class Databases:
    """Engines by connection id. A connection that was changed in Airflow is picked up within a minute."""

    def __init__(self, look_up: Callable[[str], URL] = lambda conn_id: url_of(access(conn_id))) -> None:
        self._look_up = look_up
        self._open: dict[str, _Open] = {}
        self._lock = threading.Lock()

    @contextmanager
    def read(self, conn_id: str) -> Generator[Transaction]:
        """Open a transaction that can only read. Raises Outage for a statement that takes too long."""
        reading = self._engine(conn_id).execution_options(postgresql_readonly=True)
        with database_errors(), reading.begin() as connection:
            yield Transaction(connection)

    def writable(self, conn_id: str) -> EngineDatabase:
        """Return the database for the few things that a page changes, under the same limit of time."""
        return EngineDatabase(self._engine(conn_id))

    def close(self) -> None:
        """Close every connection that no request holds."""
        with self._lock:
            for opened in self._open.values():
                opened.engine.dispose()
            self._open.clear()

    def _engine(self, conn_id: str) -> Engine:
        with self._lock:
            opened = self._open.get(conn_id)
            if opened is not None and time.monotonic() - opened.looked_up < _LOOK_UP_AGAIN_SECONDS:
                return opened.engine
        url = self._look_up(conn_id)
        with self._lock:
            opened = self._open.get(conn_id)
            if opened is not None and opened.url == url:
                opened.looked_up = time.monotonic()
                return opened.engine
            if opened is not None:
                opened.engine.dispose()
            self._open[conn_id] = _Open(url, _make(url), time.monotonic())
            return self._open[conn_id].engine


class ReadOnly:
    """A connection's database as something that takes any database sees it; it can only read."""

    def __init__(self, databases: Databases, conn_id: str) -> None:
        self._databases = databases
        self._conn_id = conn_id

    def transaction(self) -> AbstractContextManager[Transaction]:
        return self._databases.read(self._conn_id)

    def alone(self, what: str) -> AbstractContextManager[None]:
        return self._databases.writable(self._conn_id).alone(what)


def _make(url: URL) -> Engine:
    return make_engine(
        url,
        session={"statement_timeout": str(1_000 * STATEMENT_TIMEOUT_SECONDS)},
        connect={
            "application_name": "almanac console",
            "connect_timeout": _CONNECT_SECONDS,
            # A prepared statement gets a plan for no filter in particular, which is slow for every one.
            "prepare_threshold": None,
        },
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_SIZE,
        pool_timeout=_POOL_WAIT_SECONDS,
        pool_pre_ping=True,
    )
