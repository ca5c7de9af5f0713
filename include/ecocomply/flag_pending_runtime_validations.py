"""Runs written down by hand count once they are validated: managers hear daily of those that wait too long."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import MANAGERS_AND_ADMINS
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "flagPendingRuntimeValidations"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside


def notify_managers(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Tell of each generator with runs that wait for their validation, once a day."""

    def flag(tx: Transaction, ids: Sequence[UUID]) -> None:
        # The world moved: somebody may have validated them since.
        waiting = tx.rows(
            statement(PACKAGE, "generators_unvalidated"), ids=ids, after=None, limit=len(ids), **which
        )
        run.count("skipped", len(ids) - len(waiting))
        run.count("generators", len(waiting))
        run.count("pending_entries", sum(row.pending_count for row in waiting))
        tell(run, tx, [_notice(run, row) for row in waiting])

    hours = float(run.params["pending_threshold_hours"])
    which: dict[str, Any] = {
        "before": run.as_of - timedelta(hours=hours),
        "hours": hours,
        "company_id": run.params["company_id"],
    }
    for rows in pages(run, statement(PACKAGE, "generators_unvalidated"), ids=None, **which):
        run.count("processed", sum(row.pending_count for row in rows))
        each_chunk(run, [row.id for row in rows], flag)


def _notice(run: Run, row: Row[Any]) -> Notice:
    return Notice(
        kind="runtime_validation_pending",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        recipients=MANAGERS_AND_ADMINS,
        counts_toward=run.today,
        values={
            "generator": row.generator_identifier,
            "pending_count": row.pending_count,
            "oldest_entry_date": row.oldest_entry_date,
        },
        metadata={
            "pending_count": row.pending_count,
            "oldest_entry_date": row.oldest_entry_date,
            # The oldest hundred; the link leads to all of them.
            "pending_entry_ids": row.pending_entry_ids,
        },
    )


STEPS = (notify_managers,)
