"""The demo's data: something for every job, and a second demo changes nothing of the first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from include.ecocomply import DATABASE, ZONE, demo
from include.job import perform
from include.run import EngineDatabase, Run
from tests.dags import states
from tests.dags.every import DagFile, dag_files
from tests.dags.test_declarations import CATALOGUE
from tests.ecocomply import world

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


@pytest.mark.parametrize("dag", [file for file in dag_files() if file.system == "ecocomply"], ids=str)
def test_every_job_has_work(database_of: Callable[..., EngineDatabase], dag: DagFile) -> None:
    """The demo shows a run of each that does something."""
    database = database_of("ecocomply")
    with database.engine.begin() as connection:
        demo.seed(connection, NOW)
    params = CATALOGUE[dag.dag_id]["params"] | demo.PARAMS.get(dag.dag_id, {})
    job = dag.job
    run = Run(
        job=job.NAME,
        run_id="demo",
        as_of=NOW,
        zone=ZONE,
        db=DATABASE(database),
        params=params,
        settings=dict(world.SETTINGS) | {name: dag.world.SETTINGS.get(name) for name in job.SETTINGS},
    )
    perform(job, run, dag.world.outside(job, dag.world.world(NOW)))
    assert run.counts["processed"] > 0
