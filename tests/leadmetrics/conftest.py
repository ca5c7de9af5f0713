"""What LeadMetrics' tests work on: a database of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from include.run import EngineDatabase
from tests.leadmetrics.rows import Rows


@pytest.fixture
def leadmetrics(database_of: Callable[..., EngineDatabase]) -> EngineDatabase:
    """Make a database with LeadMetrics' tables, empty."""
    return database_of("leadmetrics")


@pytest.fixture
def rows(leadmetrics: EngineDatabase) -> Rows:
    """Return what inserts rows into an empty LeadMetrics and reads them again."""
    return Rows(leadmetrics)
