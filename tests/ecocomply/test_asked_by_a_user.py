"""Every job that has a row, asked for by a user: it does what the clock's does, for the user's company alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from include.ecocomply.access import as_asked
from include.ecocomply.job_types import DAGS
from include.job import perform
from include.run import EngineDatabase
from tests.dags import states
from tests.dags.every import DagFile, dag_files
from tests.dags.test_promises import Scene
from tests.ecocomply.world import COMPANY, OTHER, OWNER, STRANGER

NOW = datetime(2026, 11, 25, 9, 0, tzinfo=UTC)
FILES = [dag for dag in dag_files() if dag.dag_id in DAGS]

CONSULTANTS_OWN = "ecocomply_consultant_client_sync"
"""A consultant's, who is of another company than the clients; tests/ecocomply/test_consultant_client_sync.py has it."""


def of(company: Any, state: states.Rows) -> states.Rows:
    """Return the rows of one company."""
    return {
        table: {
            key: row
            for key, row in found.items()
            if str(company) == row.get("id" if table == "companies" else "company_id")
        }
        for table, found in state.items()
    }


def asked(scene: Scene, by: Any) -> None:
    """Let a user ask for the job, or the clock if it is None, on the seed."""
    scene.set_anew()
    run = as_asked(scene.make_run(scene.database), DAGS[scene.dag.dag_id], by)
    perform(scene.dag.job, run, scene.dag.world.outside(scene.dag.job, scene.around))


@pytest.mark.parametrize("dag", FILES, ids=str)
def test_a_users_job_does_what_the_clocks_does_for_that_company(
    database_of: Callable[..., EngineDatabase], dag: DagFile, caplog: pytest.LogCaptureFixture
) -> None:
    """Ruling 14: created_by decides whose rows are seen; nothing is refused on the way, and nobody else is touched."""
    started = datetime.now(UTC)
    scene = Scene(dag, database_of("ecocomply"), NOW)
    asked(scene, None)
    by_the_clock = states.rows(scene.database.engine)
    for user, own, others in ((OWNER, COMPANY, OTHER), (STRANGER, OTHER, COMPANY)):
        if user == STRANGER and (dag.dag_id == CONSULTANTS_OWN or dag.world.PARAMS.get("company_id")):
            # He has had a client in that world; and what names COMPANY is none of his.
            continue
        asked(scene, user)
        # A row that is refused would be one that failed, and no end of the run.
        assert "permission denied" not in caplog.text
        assert "row-level security" not in caplog.text
        now = states.rows(scene.database.engine)
        if dag.dag_id == CONSULTANTS_OWN:
            assert states.changes(scene.seeded, now) == {}
            continue
        if not DAGS[dag.dag_id].service_only:
            assert of(others, now) == of(others, scene.seeded)
        books = dag.world.BOOKKEEPING
        assert states.normalised(of(own, now), scene.known, started, books) == states.normalised(
            of(own, by_the_clock), scene.known, started, books
        )
