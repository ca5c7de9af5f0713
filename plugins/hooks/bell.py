"""A bell that rings when a database notifies a channel, for a worker that waits for jobs."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hooks.connections import access
from hooks.postgres import url_of
from include.errors import AlmanacError, BadInput

if TYPE_CHECKING:
    import psycopg

_CHANNEL = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_RECONNECT_SECONDS = 5.0
_LOG = logging.getLogger("almanac")


class PostgresBell:
    """Listens to `channel` on the Airflow connection `conn_id`, over a connection of its own.

    A bell that can't be opened is silent: whoever waits for it looks for himself now and then.
    """

    live = True

    def __init__(self, conn_id: str, channel: str) -> None:
        # It stands in a statement that takes no bound values.
        if not _CHANNEL.fullmatch(channel):
            raise BadInput(f"channel: {channel!r} is not a plain lower-case name")
        self._conn_id = conn_id
        self._channel = channel
        self._connection: psycopg.Connection[Any] | None = None
        self._next_try = 0.0

    @contextmanager
    def listening(self) -> Generator[None]:
        """Listen until the end."""
        self._open()
        try:
            yield
        finally:
            self._close()

    def wait(self, seconds: float) -> bool:
        """Wait for a notification, at most `seconds`; say whether one came."""
        import psycopg  # noqa: PLC0415 - heavy, and no DAG file needs it to be parsed

        if self._connection is None:
            self._open()
        if self._connection is None:
            time.sleep(seconds)
            return False
        try:
            return any(True for _ in self._connection.notifies(timeout=seconds, stop_after=1))
        except (psycopg.Error, OSError) as error:
            _LOG.warning("bell %s: %s", self._channel, type(error).__name__)
            self._close()
            return False

    def _open(self) -> None:
        import psycopg  # noqa: PLC0415 - heavy, and no DAG file needs it to be parsed

        if time.monotonic() < self._next_try:
            return
        self._next_try = time.monotonic() + _RECONNECT_SECONDS
        try:
            url = url_of(access(self._conn_id)).set(drivername="postgresql")
            self._connection = psycopg.connect(
                url.render_as_string(hide_password=False),
                autocommit=True,
                application_name=f"bell {self._channel}",
            )
            self._connection.execute(f"LISTEN {self._channel}".encode())
        except (psycopg.Error, OSError, AlmanacError) as error:
            # Its text can hold the connection's parameters.
            _LOG.warning("bell %s: can't listen: %s", self._channel, type(error).__name__)
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.close()
            self._connection = None
