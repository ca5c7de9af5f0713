"""EcoComply's database as its pages read and change it: in the service's role, since row-level security is forced."""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager

from fastapi import Request

from hooks.connections import UnknownConnection
from include.ecocomply.access import ServiceDatabase, act_as_service
from include.errors import Transient
from include.platform.console import known_runs
from include.run import Database, Transaction

CONNECTION = "ecocomply_db"
ALMANAC = "almanac_db"


@contextmanager
def reading(request: Request) -> Generator[Transaction]:
    """Open a transaction that can only read."""
    with request.app.state.databases.read(CONNECTION) as tx:
        act_as_service(tx)
        yield tx


def writable(request: Request) -> Database:
    """Return the database for what a person changes."""
    return ServiceDatabase(request.app.state.databases.writable(CONNECTION))


def summaries(request: Request, dag_id: str, run_ids: Collection[str]) -> set[str]:
    """Return which of these runs have a page; a platform's database that is down costs the links alone."""
    try:
        with request.app.state.databases.read(ALMANAC) as tx:
            return known_runs(tx, dag_id, run_ids)
    except (Transient, UnknownConnection):
        return set()
