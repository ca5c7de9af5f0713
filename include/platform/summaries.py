"""What every run leaves behind: its steps, its summary, its preview. In the database `almanac`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from include.run import EngineDatabase
from include.statements import statement

PACKAGE = "include.platform"


@dataclass(frozen=True, slots=True)
class RunKey:
    """Which run of which DAG."""

    dag_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Summary:
    """A finished run; `duration` is in seconds, `counts` has the specification's names."""

    dag_id: str
    run_id: str
    as_of: datetime
    state: str
    duration: float
    counts: Mapping[str, int]
    notes: Sequence[str]


def begin_run(
    almanac: EngineDatabase,
    key: RunKey,
    as_of: datetime,
    *,
    preview: bool,
    params: Mapping[str, Any] | None = None,
) -> None:
    """Open a run's summary; a run that is done over starts with empty counts.

    `params` are the DAG's own, as the run has them.
    """
    given = None if params is None else json.dumps(dict(params), default=str)
    with almanac.transaction() as tx:
        tx.execute(statement(PACKAGE, "begin_run"), **_of(key), as_of=as_of, preview=preview, params=given)


def record_step(  # noqa: PLR0913 - each is a column of the row
    almanac: EngineDatabase,
    key: RunKey,
    task_id: str,
    try_number: int,
    *,
    started_at: datetime,
    state: str,
    counts: Mapping[str, int],
    notes: Sequence[str],
    error: str | None = None,
) -> None:
    """Keep what one attempt of one task did, failed or not."""
    with almanac.transaction() as tx:
        tx.execute(
            statement(PACKAGE, "record_step"),
            **_of(key),
            task_id=task_id,
            try_number=try_number,
            started_at=started_at,
            state=state,
            counts=json.dumps(dict(counts)),
            notes=json.dumps(list(notes)),
            error=error,
        )


def end_run(almanac: EngineDatabase, key: RunKey, state: str | None = None) -> Summary | None:
    """Close a run's summary with the sum of its steps and return it; None if the run never began.

    `state` overrides what the steps say, for a run that did not end by itself.
    """
    with almanac.transaction() as tx:
        row = tx.row(statement(PACKAGE, "end_run"), **_of(key), state=state)
    if row is None:
        return None
    return Summary(
        dag_id=key.dag_id,
        run_id=key.run_id,
        as_of=row.as_of,
        state=row.state,
        duration=float(row.duration),
        counts=row.counts,
        notes=row.notes,
    )


def close_failed_run(almanac: EngineDatabase, key: RunKey, as_of: datetime) -> None:
    """Close the summary of a run that failed and could not do so itself; one that never began gets one."""
    with almanac.transaction() as tx:
        tx.execute(statement(PACKAGE, "begin_failed_run"), **_of(key), as_of=as_of)
        if tx.value(statement(PACKAGE, "failed_run_is_open"), **_of(key)):
            tx.execute(statement(PACKAGE, "end_run"), **_of(key), state="failed")


def keep_preview(almanac: EngineDatabase, key: RunKey, as_of: datetime, result: Mapping[str, Any]) -> None:
    """Keep what a preview found, for the console."""
    with almanac.transaction() as tx:
        tx.execute(
            statement(PACKAGE, "keep_preview"),
            **_of(key),
            as_of=as_of,
            result=json.dumps(result, default=str),
        )


def _of(key: RunKey) -> dict[str, str]:
    return {"dag_id": key.dag_id, "run_id": key.run_id}
