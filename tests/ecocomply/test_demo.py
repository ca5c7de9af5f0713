"""The demo's data: something for every job, and a second demo changes nothing of the first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from include.ecocomply import demo
from include.run import EngineDatabase
from tests.dags import states

NOW = datetime(2026, 11, 27, 15, 0, tzinfo=UTC)


def test_it_goes_in_twice_as_once(database_of: Callable[..., EngineDatabase]) -> None:
    """A second `make demo`, today or later, leaves what the first one and its runs have made."""
    engine = database_of("ecocomply").engine
    with engine.begin() as connection:
        demo.seed(connection, NOW)
    once = states.rows(engine)
    assert once["companies"]
    for later in (NOW, NOW + timedelta(days=30)):
        with engine.begin() as connection:
            demo.seed(connection, later)
    assert states.rows(engine) == once
