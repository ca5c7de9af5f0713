"""A corrective action whose items are all done goes on to its resolution, and its owner hears of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import NAMED_ALONE
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "autoTransitionCorrectiveActions"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside


def transition_actions(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Move each action that is done to RESOLUTION, and tell who made it in the same transaction."""

    def move(tx: Transaction, ids: Sequence[UUID]) -> None:
        moved = tx.rows(statement(PACKAGE, "move_to_resolution"), ids=ids, as_of=run.as_of)
        run.count("processed", len(moved))
        run.count("transitioned", len(moved))
        # The world moved: an item was opened again, or a person was quicker.
        run.count("skipped", len(ids) - len(moved))
        run.count("owners_notified", tell(run, tx, [_notice(row) for row in moved]))

    which: dict[str, Any] = {"as_of": run.as_of, "company_id": run.params["company_id"]}
    for page in pages(run, statement(PACKAGE, "corrective_actions_done"), **which):
        each_chunk(run, [row.id for row in page], move)


def _notice(row: Row[Any]) -> Notice:
    return Notice(
        kind="corrective_action_ready",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        recipients=NAMED_ALONE,
        named=[row.created_by],
        # One that is opened again and done again is told of again.
        counts_toward=row.done_at,
        values={"corrective_action": row.corrective_action_name},
    )


STEPS = (transition_actions,)
