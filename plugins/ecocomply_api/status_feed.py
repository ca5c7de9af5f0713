"""Every change of a job's status, as the database notifies it, for all who listen in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from sqlalchemy import URL
from starlette.concurrency import run_in_threadpool

from include import odd_json
from include.ecocomply.background_jobs import STATUS_CHANNEL
from include.errors import AlmanacError, Outage

_MOST_BEHIND = 1_000
_CONNECT_SECONDS = 10
log = logging.getLogger(__name__)

Changes = asyncio.Queue[str | None]


class StatusFeed:
    """One connection that listens, however many clients there are; none while there are none.

    `look_up` gives the database's address: a direct one, since a pooler of transactions can't listen.
    """

    def __init__(self, look_up: Callable[[], URL]) -> None:
        self._look_up = look_up
        self._clients: set[Changes] = set()
        self._opening = asyncio.Lock()
        self._listener: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def changes(self) -> AsyncGenerator[Changes]:
        """Listen until the end: what comes in are JSON texts, or None where something was missed. Raises Outage."""
        mine: Changes = asyncio.Queue(_MOST_BEHIND)
        async with self._opening:
            if self._listener is None:
                connection = await self._connect()
                self._listener = asyncio.create_task(self._listen(connection))
            self._clients.add(mine)
        try:
            yield mine
        finally:
            self._clients.discard(mine)
            if not self._clients and self._listener is not None:
                self._listener.cancel()
                self._listener = None

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        try:
            url = (await run_in_threadpool(self._look_up)).set(drivername="postgresql")
            connection = await psycopg.AsyncConnection.connect(
                url.render_as_string(hide_password=False),
                autocommit=True,
                connect_timeout=_CONNECT_SECONDS,
                application_name=f"almanac {STATUS_CHANNEL}",
            )
            await connection.execute(f"LISTEN {STATUS_CHANNEL}".encode())
        except (psycopg.Error, OSError, AlmanacError) as error:
            # Its text can hold the connection's parameters.
            raise Outage(f"status feed: can't listen: {type(error).__name__}") from None
        return connection

    async def _listen(self, connection: psycopg.AsyncConnection[Any]) -> None:
        try:
            async with connection:
                async for notified in connection.notifies():
                    self._tell(notified.payload)
        except (psycopg.Error, OSError) as error:
            log.warning("status feed: not listening any more: %s", type(error).__name__)
        finally:
            if self._listener is asyncio.current_task():
                self._listener = None
                for client in list(self._clients):
                    _drop(client)

    def _tell(self, said: str) -> None:
        for client in list(self._clients):
            try:
                client.put_nowait(said)
            except asyncio.QueueFull:
                _drop(client)


def _drop(client: Changes) -> None:
    """Let a client know that it has missed something: what waits for it is worth nothing any more."""
    while not client.empty():
        client.get_nowait()
    client.put_nowait(None)


def job_of(said: str) -> str:
    """Return the id of the job that a change is of."""
    return odd_json.read(said)["job_id"]
