"""The bell that a worker waits for: it rings for every notification, and its loss costs time, not jobs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

from hooks.bell import PostgresBell
from include.errors import BadInput
from stack.postgres import Cluster


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[Cluster]:
    """Make a database to listen to."""
    cluster.create_database("belfry")
    yield cluster
    cluster.drop_database("belfry")


@pytest.fixture
def execute(server: Cluster, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that executes a statement; the database is the Airflow connection `belfry_db`."""
    url = make_url(server.url("belfry", over_tcp=False))
    said: dict[str, object] = {
        "conn_type": "postgres",
        "login": url.username,
        "schema": url.database,
        "password": "p/s@s:%#1",
    }
    said |= {"host": url.query["host"], "port": int(str(url.query["port"]))}
    monkeypatch.setenv("AIRFLOW_CONN_BELFRY_DB", json.dumps(said))
    address = server.url("belfry", over_tcp=False).replace("+psycopg", "")

    def executed(statement: str) -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(statement.encode())

    return executed


def test_it_rings_when_it_is_notified(execute: Any) -> None:
    """A job that is enqueued while the worker waits starts at once; what was rung before the wait counts too."""
    bell = PostgresBell("belfry_db", "jobs")
    with bell.listening():
        execute("NOTIFY jobs")
        assert bell.wait(5)
        assert not bell.wait(0.1)
        threading.Timer(0.2, execute, ["NOTIFY jobs"]).start()
        began = time.monotonic()
        assert bell.wait(10)
        assert time.monotonic() - began < 5
        execute("NOTIFY others")
        assert not bell.wait(0.2)


def test_a_bell_that_was_cut_off_is_silent_and_hangs_again(execute: Any) -> None:
    """A database that restarts must not end the worker, which looks at the queue by itself meanwhile."""
    bell = PostgresBell("belfry_db", "jobs")
    with bell.listening():
        execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bell jobs'")
        assert not bell.wait(1)
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            execute("NOTIFY jobs")
            if bell.wait(1):
                return
    pytest.fail("the bell never rang again")


def test_a_bell_without_a_database_only_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody to listen to is no error: the wait is a wait."""
    said = {"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "login": "x", "schema": "x"}
    monkeypatch.setenv("AIRFLOW_CONN_NOWHERE_DB", json.dumps(said))
    bell = PostgresBell("nowhere_db", "jobs")
    with bell.listening():
        began = time.monotonic()
        assert not bell.wait(0.3)
        assert 0.25 < time.monotonic() - began < 3


@pytest.mark.parametrize("channel", ["Jobs", "jobs; DROP TABLE x", "", "1"])
def test_a_channel_is_a_plain_name(channel: str) -> None:
    """It stands in a statement that takes no bound values."""
    with pytest.raises(BadInput):
        PostgresBell("belfry_db", channel)
