"""The trigger that hears a database: every notification becomes an event, however they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from airflow.triggers.base import TriggerEvent
from sqlalchemy import make_url

from almanac.triggers import Notified
from include.errors import BadInput
from stack.postgres import Cluster

CHANNEL = "probe_channel"
PATIENCE = 20


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[Cluster]:
    """Make a database to listen to, on the server that all tests of this process share."""
    cluster.create_database("listened_to")
    yield cluster
    cluster.drop_database("listened_to")


@pytest.fixture
def notify(server: Cluster, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that executes a statement; the database is the Airflow connection `probe_db`."""
    url = make_url(server.url("listened_to", over_tcp=False))
    said: dict[str, object] = {"conn_type": "postgres", "login": url.username, "schema": url.database}
    # A socket's folder is a host, as for libpq.
    said |= {"host": url.query["host"], "port": int(str(url.query["port"])), "password": "unused"}
    monkeypatch.setenv("AIRFLOW_CONN_PROBE_DB", json.dumps(said))

    def execute(statement: str) -> None:
        with psycopg.connect(
            server.url("listened_to", over_tcp=False).replace("+psycopg", ""), autocommit=True
        ) as c:
            c.execute(statement.encode())

    return execute


@asynccontextmanager
async def listening() -> AsyncGenerator[Callable[[], Awaitable[str]]]:
    """Run the trigger; give a function that awaits its next event and returns why it fired."""
    events = Notified("probe_db", CHANNEL).run()

    async def why() -> str:
        event = await asyncio.wait_for(anext(events), PATIENCE)
        assert isinstance(event, TriggerEvent)
        return event.payload["why"]

    try:
        assert await why() == "listening anew"
        yield why
    finally:
        await events.aclose()


def test_one_after_the_other(notify: Callable[..., None]) -> None:
    """Each notification is heard, not the first alone; several at a time are one event."""

    async def hear() -> list[str]:
        async with listening() as why:
            heard = []
            for _ in range(3):
                await asyncio.to_thread(notify, f"NOTIFY {CHANNEL}, '1'")
                await asyncio.to_thread(notify, f"NOTIFY {CHANNEL}, '2'")
                heard.append(await why())
            return heard

    assert asyncio.run(hear()) == ["notified"] * 3


def test_a_lost_connection(notify: Callable[..., None]) -> None:
    """What was notified while nobody listened is lost, so that a new connection is an event too."""

    async def hear() -> list[str]:
        async with listening() as why:
            await asyncio.to_thread(
                notify,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = 'listened_to' AND pid <> pg_backend_pid()",
            )
            again = await why()
            await asyncio.to_thread(notify, f"NOTIFY {CHANNEL}")
            return [again, await why()]

    assert asyncio.run(hear()) == ["listening anew", "notified"]


@pytest.mark.parametrize("channel", ["", "a b", 'x"; DROP TABLE alert; --', "Upper", "1st", "x" * 64])
def test_a_channel_is_a_plain_name(channel: str) -> None:
    """The name stands in a statement that takes no bound values."""
    with pytest.raises(BadInput, match="channel"):
        Notified("probe_db", channel)
