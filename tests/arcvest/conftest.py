"""What ArcVest's tests work on: a database of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from include.run import EngineDatabase
from tests.arcvest.rows import Rows


@pytest.fixture
def arcvest(database_of: Callable[..., EngineDatabase]) -> EngineDatabase:
    """Make a database with ArcVest's tables, empty."""
    return database_of("arcvest")


@pytest.fixture
def rows(arcvest: EngineDatabase) -> Rows:
    """Return what inserts rows into an empty ArcVest and reads them again."""
    return Rows(arcvest)
