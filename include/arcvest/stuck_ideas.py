"""Ideas that stay in processing though nobody works on them go back to selected, by the queue's own rule."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from include.arcvest.jobs import PACKAGE, STUCK_AFTER
from include.isolation import each_chunk
from include.run import Run, Transaction
from include.statements import statement


def release_stuck_ideas(run: Run) -> None:
    """Release ideas without a live claim for as long as a claim may be silent; count them as `released`."""
    seconds = STUCK_AFTER.total_seconds()
    with run.transaction() as tx:
        ids = [row.id for row in tx.rows(statement(PACKAGE, "ideas_stuck"), stuck_after=seconds)]

    def release(tx: Transaction, chunk: Sequence[uuid.UUID]) -> None:
        released = tx.execute(statement(PACKAGE, "release_ideas"), ids=chunk, stuck_after=seconds)
        run.count("released", released)

    each_chunk(run, ids, release)
