"""An asset event for every NOTIFY of a database, and one for every new connection to it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from include.errors import AlmanacError, BadInput

_CHANNEL = re.compile(r"[a-z_][a-z0-9_]{0,62}")
# Notifications that come within this time of the first are one event: the run drains all that waits.
_TOGETHER_SECONDS = 0.2
_RECONNECT_SECONDS = (1, 2, 5, 10, 30)


class Notified(BaseEventTrigger):
    """Fires when Postgres notifies `channel` on the Airflow connection `conn_id`.

    A notification is a hint: it says that something waits, not what. Each new connection fires once as well,
    since what was notified while there was none is lost.
    """

    def __init__(self, conn_id: str, channel: str) -> None:
        super().__init__()
        # It stands in a statement that takes no bound values.
        if not _CHANNEL.fullmatch(channel):
            raise BadInput(f"channel: {channel!r} is not a plain lower-case name")
        self.conn_id = conn_id
        self.channel = channel

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "almanac.triggers.Notified", {"conn_id": self.conn_id, "channel": self.channel}

    async def run(self) -> AsyncGenerator[TriggerEvent]:
        import psycopg  # noqa: PLC0415 - only the triggerer needs it

        failures = 0
        while True:
            try:
                async with await self._connect() as connection:
                    await connection.execute(f"LISTEN {self.channel}")
                    failures = 0
                    yield TriggerEvent({"channel": self.channel, "why": "listening anew"})
                    while True:
                        # One after the other: each holds the connection until it ends.
                        async for _ in connection.notifies(stop_after=1):
                            pass
                        async for _ in connection.notifies(timeout=_TOGETHER_SECONDS):
                            pass
                        yield TriggerEvent({"channel": self.channel, "why": "notified"})
            except (psycopg.Error, AlmanacError, OSError) as error:
                seconds = _RECONNECT_SECONDS[min(failures, len(_RECONNECT_SECONDS) - 1)]
                failures += 1
                self.log.warning(
                    "%s: not listening: %s; again in %d s", self.conn_id, type(error).__name__, seconds
                )
                await asyncio.sleep(seconds)

    async def _connect(self) -> Any:
        import psycopg  # noqa: PLC0415 - only the triggerer needs it
        from asgiref.sync import sync_to_async  # noqa: PLC0415 - as above
        from psycopg.conninfo import make_conninfo  # noqa: PLC0415 - as above

        from hooks.connections import access  # noqa: PLC0415 - as above

        found = await sync_to_async(access)(self.conn_id)
        options = {k: str(v) for k, v in found.extra.items() if k.startswith(("ssl", "keepalives"))}
        where = make_conninfo(
            host=found.host,
            port=found.port,
            user=found.login,
            password=found.password,
            dbname=found.schema,
            connect_timeout=10,
            **options,
        )
        return await psycopg.AsyncConnection.connect(where, autocommit=True)
