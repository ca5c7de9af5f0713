"""docs/ecocomply-specification.md names what is there, and every DAG of EcoComply's."""

from __future__ import annotations

import pytest

from include.ecocomply.job_types import DAGS
from stack.home import PROJECT
from stack.specification_page import GROUND, JOBS, page
from tests.dags.every import dag_files


@pytest.mark.parametrize("row", GROUND, ids=lambda row: f"{row[0]} {row[1]}")
def test_a_place_that_it_names_is_there(row: tuple[str, str, str, str]) -> None:
    """A module or test that is gone must not stay in the table."""
    for place in row[2:]:
        if place.startswith(("include/", "tests/", "docs/")):
            assert (PROJECT / place).exists(), place


def test_it_has_every_job() -> None:
    """A job of the registry, or a DAG of the folder, that no row names would be unmapped."""
    named = {f"ecocomply_{stem}" for _, _, stem in JOBS}
    assert len(named) == len(JOBS)
    assert named >= set(DAGS)
    assert named >= {file.dag_id for file in dag_files() if file.system == "ecocomply"}


def test_a_job_names_its_tables() -> None:
    """The tables come from the statements that the job's module, or one that it imports, runs."""
    (row,) = (line for line in page().splitlines() if line.startswith("| compliance_clocks_universal |"))
    assert "update_compliance_clocks" in row
