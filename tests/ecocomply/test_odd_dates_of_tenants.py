"""One odd date in one tenant's row stops no job for the others: each date of each table that a job's world seeds."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Date, DateTime, bindparam, text
from sqlalchemy.exc import DBAPIError

from tests.dags import generated, states
from tests.dags.every import DagFile, dag_files
from tests.dags.generated import multiply
from tests.dags.test_promises import Scene, scene  # noqa: F401 - a fixture

ODD = ("infinity", "-infinity", "0044-03-15 BC", "20261-11-25")
"""What Postgres takes for a date and Python does not."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _oddities(dag: DagFile, seeded: states.Rows) -> Iterator[tuple[str, str, str, str]]:
    """Yield a table, a column, its type and an odd date, for every column of a date in a table with rows."""
    for table in dag.tables.METADATA.sorted_tables:
        for column in table.columns:
            if seeded.get(table.name) and "id" in table.columns and isinstance(column.type, Date | DateTime):
                kind = "date" if isinstance(column.type, Date) else "timestamptz"
                for value in ODD:
                    yield table.name, column.name, kind, value


def _make_odd(connection: Connection, table: str, column: str, kind: str, value: str, ids: list[str]) -> None:
    """Write a date into rows, one by one as a check or a unique key may refuse it in some."""
    change = text(
        f'UPDATE "{table}" SET "{column}" = CAST(:value AS {kind}) WHERE id::text IN :ids'
    ).bindparams(bindparam("ids", expanding=True))
    for some in [ids] if len(ids) == 1 else [ids, *([one] for one in ids)]:
        try:
            with connection.begin_nested():
                connection.execute(change, {"value": value, "ids": some})
        except DBAPIError:
            continue
        if some is ids:
            return


def _of_others(made: Scene, odd: set[str]) -> Any:
    """Return the rows that name no row of a company with an odd date, as two runs share them."""
    found = {
        table: {key: row for key, row in rows.items() if odd.isdisjoint(_UUID.findall(str(row)))}
        for table, rows in states.rows(made.database.engine).items()
    }
    return states.normalised(found, made.known, made.now, made.dag.world.BOOKKEEPING)


@pytest.mark.parametrize("dag", [dag for dag in dag_files() if dag.system == "ecocomply"], ids=str)
def test_an_odd_date_stays_with_its_company(
    dag: DagFile,
    scene: Callable[..., Scene],  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ruling 6: whatever dates tenants have written, the job ends, and does for the others what it does without.

    Each date has copies of all companies of its own, beside the ones that are as usual.
    """
    monkeypatch.setattr(generated, "FARTHEST_DAYS", 0)
    made = scene(dag)
    if "batch_size" in made.params:
        # The world's own is for a few rows, and here are hundreds of companies.
        made.params["batch_size"] = 100
    oddities = list(_oddities(dag, made.seeded))
    ids_of = [
        {str(uuid.uuid5(uuid.UUID(one), str(number))) for one in made.known}
        for number in range(1, len(oddities) + 1)
    ]
    made.perform()
    usual = _of_others(made, set())
    made.set_anew()
    with made.database.engine.begin() as connection:
        multiply(connection, dag.tables.METADATA, dag.world.NAMES, copies=len(oddities), seed=1)
        rows_of = {
            table: {str(one) for one in connection.scalars(text(f'SELECT id FROM "{table}"'))}
            for table in sorted({table for table, *_ in oddities})
        }
        for (table, *what), ids in zip(oddities, ids_of, strict=True):
            of_table = sorted(ids & rows_of[table])
            if of_table:
                _make_odd(connection, table, *what, of_table)
    dag.world.grow(made.around, len(oddities))
    made.perform()
    # A queue's rows share batches, so that what one company sends has a place among the others'.
    if not dag.job.QUEUES:
        assert _of_others(made, set().union(*ids_of)) == usual
