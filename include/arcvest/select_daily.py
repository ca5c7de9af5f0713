"""The best ideas of the day are selected, and a pipeline job is enqueued for each."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from include.arcvest.jobs import PIPELINE
from include.arcvest.sources import Sources
from include.errors import BadInput
from include.isolation import each_chunk
from include.odd_dates import reckonable
from include.queues.engine import Claim
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.arcvest"
JOB_TYPE = "select_daily"
SECONDS = 30
"""The most that one job may take."""

SETTINGS: dict[str, str | None] = {}

MOST = 50
NOT_OLDER_THAN = timedelta(days=14)
"""An idea that was published longer than that before the job was made is not selected any more."""

PIPELINE_PRIORITY = 5
"""Below every job of a batch: what is selected is written up when the batch is through."""


def handle(run: Run, claim: Claim, sources: Sources) -> None:  # noqa: ARG001 - a handler's form
    """Select up to the payload's `count` ideas, by score; what an earlier attempt selected counts.

    An idea and its pipeline job are one transaction, which the job's own row is locked for: two workers that
    hold the same job, one of them given up for dead, never select more than `count` together.
    """
    count = count_of(claim.row.payload)
    not_before = reckonable(claim.row.created_at, "created_at") - NOT_OLDER_THAN
    held = {"job": claim.key, "attempt": claim.attempt, "owner": claim.owner}

    def select(tx: Transaction, chunk: Sequence[uuid.UUID]) -> None:
        done = tx.execute(
            statement(PACKAGE, "select_ideas"),
            **held,
            count=count,
            ids=chunk,
            job_type=PIPELINE,
            priority=PIPELINE_PRIORITY,
        )
        run.count("selected", done)

    seen: list[uuid.UUID] = []
    while True:
        with run.transaction() as tx:
            selected = tx.value(statement(PACKAGE, "selected_by_job"), **held)
            if selected is None or selected >= count:
                return
            # Another selection may have taken what was looked up: then the next best come.
            rows = tx.rows(
                statement(PACKAGE, "best_ideas"), limit=count - selected, not_before=not_before, seen=seen
            )
        if not rows:
            return
        run.count("candidates", len(rows))
        seen += [row.id for row in rows]
        each_chunk(run, [row.id for row in rows], select)


def count_of(payload: Any) -> int:
    """Read the payload's `count`. Raises BadInput if it is no whole number from 1 to MOST."""
    count = payload.get("count") if isinstance(payload, Mapping) else None
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST:
        raise BadInput(f"select_daily: count: {count!r:.100} is not a whole number from 1 to {MOST}")
    return count
