"""What EcoComply's tests work on: one database that is filled once, and a transaction of it for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

import pytest
from sqlalchemy import Connection, Engine

from include.ecocomply.generator import generate
from include.run import EngineDatabase
from tests.conftest import Databases
from tests.ecocomply.jobs_world import Records

TODAY = date(2026, 11, 27)


@pytest.fixture(scope="package")
def filled(databases: Databases) -> Iterator[Engine]:
    """Make a database with three companies: a consultancy, and two that are its clients."""
    name, engine = databases.make("ecocomply")
    with engine.begin() as connection:
        generate(connection, today=TODAY, companies=3, obligations=90)
    yield engine
    databases.drop(name, engine)


@pytest.fixture
def connection(filled: Engine) -> Iterator[Connection]:
    """Open a transaction of the filled database; nothing of it stays."""
    with filled.connect() as opened, opened.begin() as transaction:
        yield opened
        transaction.rollback()


@pytest.fixture
def records(database_of: Callable[..., EngineDatabase]) -> Records:
    """Make a database with two companies and no job."""
    made = Records(database_of("ecocomply"))
    made.fill()
    return made
