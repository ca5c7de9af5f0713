"""A Postgres of the benchmarks' own, durable as production is."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from psycopg import sql
from sqlalchemy import Connection, Engine, text

from include import migrations
from include.engines import make_engine
from stack.postgres import Cluster

_SETTINGS = {
    # Room for a million rows, and no checkpoint that falls into one taking and not into the other.
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
}


class _Server(Cluster):
    def checkpoint(self) -> None:
        """Write out what is dirty, so that no taking pays for what came before it."""
        self._execute(sql.SQL("CHECKPOINT").format())


@dataclass(slots=True)
class Databases:
    """ClearPath databases on one server, each a copy of a template that was filled once."""

    server: _Server
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def template(self, fill: Callable[[Connection], None], system: str | None = "clearpath") -> str:
        """Make a database with a system's tables, or none, filled by `fill`, and return its name."""
        name = f"template_{next(self._numbers)}"
        self.server.create_database(name)
        engine = make_engine(self.server.url(name))
        if system:
            migrations.upgrade(system, engine)
        with engine.begin() as connection:
            fill(connection)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM (FREEZE, ANALYZE)"))
        # Nobody may be connected to a template while it is copied.
        engine.dispose()
        return name

    def template_of(self, template: str, change: Callable[[Engine], None]) -> str:
        """Make a template like another one, changed by `change`, and return its name."""
        name = f"template_{next(self._numbers)}"
        self.server.create_database(name, template)
        engine = make_engine(self.server.url(name))
        change(engine)
        engine.dispose()
        return name

    @contextmanager
    def copy(self, template: str) -> Generator[Engine]:
        """Make a copy with nothing left to be written, and drop it at the end."""
        name = f"copy_{next(self._numbers)}"
        self.server.create_database(name, template)
        engine = make_engine(self.server.url(name))
        try:
            # The first connection fills caches that the work should not be timed with.
            with engine.connect() as connection:
                connection.execute(text("SELECT 1"))
            self.server.checkpoint()
            yield engine
        finally:
            engine.dispose()
            self.server.drop_database(name)

    def drop(self, template: str) -> None:
        self.server.drop_database(template)

    @property
    def version(self) -> str:
        engine = make_engine(self.server.url("postgres"))
        try:
            with engine.connect() as connection:
                return str(connection.scalar(text("SHOW server_version")))
        finally:
            engine.dispose()


@contextmanager
def open_databases(within: Path | None = None) -> Generator[Databases]:
    """Start a server in a folder of its own, `within` another or the system's, and remove both at the end."""
    with tempfile.TemporaryDirectory(prefix="almanac-bench-", dir=within) as folder:
        # Postgres may run as another user than this one, who must get through.
        Path(folder).chmod(0o711)
        with _Server(Path(folder) / "data", settings=_SETTINGS) as server:
            yield Databases(server)
