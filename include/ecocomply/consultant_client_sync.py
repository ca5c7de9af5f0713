"""What consultants see of their clients, counted anew: which they still have, how each stands, and a summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.access import UserDatabase, as_service
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import NAMED_ALONE
from include.errors import BadInput
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "consultantClientSync"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

ASSIGNMENTS, DASHBOARD, FULL = "ASSIGNMENTS", "DASHBOARD", "FULL"
SYNC_TYPES = (ASSIGNMENTS, DASHBOARD, FULL)

CONSULTANTS = 100
"""The consultants of a chunk; each of them may have many clients."""


def sync_assignments(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """End the assignments whose client was deleted, or whose consultant has lost the role."""
    if run.params["sync_type"] not in (ASSIGNMENTS, FULL):
        return
    run, which = _theirs(run)

    def end(tx: Transaction, ids: Sequence[UUID]) -> None:
        ended = tx.execute(statement(PACKAGE, "end_assignments"), ids=ids, as_of=run.as_of)
        run.count("assignments_ended", ended)
        run.count("skipped", len(ids) - ended)

    with run.transaction() as tx:
        checked = tx.value(statement(PACKAGE, "assignments_active"), **which)
    run.count("assignments_checked", checked)
    if run.params["sync_type"] == ASSIGNMENTS:
        run.count("processed", checked)
    for page in pages(run, statement(PACKAGE, "assignments_ended"), as_of=run.as_of, **which):
        each_chunk(run, [row.id for row in page], end)


def sync_dashboard(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Count anew how each consultant's clients stand; a consultant who can't be synced stands alone."""
    if run.params["sync_type"] not in (DASHBOARD, FULL):
        return

    run, which = _theirs(run)

    def sync(tx: Transaction, some: Sequence[Row[Any]]) -> None:
        # What somebody saw who is no consultant any more is removed as well.
        ids = [row.id for row in some]
        cleared = tx.execute(statement(PACKAGE, "clear_consultant_dashboard"), ids=ids, as_of=run.as_of)
        run.count("clients_removed", cleared)
        days: dict[str, Any] = {"today": run.today, "as_of": run.as_of}
        run.count(
            "clients_synced", tx.execute(statement(PACKAGE, "sync_consultant_dashboard"), ids=ids, **days)
        )
        run.count("processed", sum(row.found for row in some))

    looked_at = 0
    for page in pages(run, statement(PACKAGE, "consultants_to_sync"), CONSULTANTS, **which):
        looked_at += len(page)
        for row in page:
            if not row.found:
                run.count("skipped")
                run.row_skipped(row.id, "no active user with the role CONSULTANT")
        each_chunk(run, page, sync, CONSULTANTS)
    if not looked_at and which["consultant_id"] is not None:
        run.count("skipped")
        run.note(f"consultant {which['consultant_id']} was not found, or never had a client")


def send_summaries(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Tell each consultant whose clients were all synced how they stand, once a day."""
    if run.params["sync_type"] != FULL:
        return
    run, which = _theirs(run)

    def send(tx: Transaction, synced: Sequence[Row[Any]]) -> None:
        run.count("summaries_sent", tell(run, tx, [_notice(run, row) for row in synced]))

    for page in pages(run, statement(PACKAGE, "consultants_synced"), as_of=run.as_of, **which):
        each_chunk(run, page, send)


def _theirs(run: Run) -> tuple[Run, dict[str, Any]]:
    """Return the run that keeps the books, the service's, and whose; one that a user asked for is of that user alone.

    Raises BadInput if a user asks for another consultant's.
    """
    wanted = run.params["consultant_id"]
    if not isinstance(run.db, UserDatabase):
        return run, {"consultant_id": wanted}
    asker = run.db.user_id
    if wanted is not None and UUID(str(wanted)) != asker:
        raise BadInput(f"EcoComply: user {asker} may not sync consultant {wanted}")
    return as_service(run), {"consultant_id": str(asker)}


def _notice(run: Run, row: Row[Any]) -> Notice:
    return Notice(
        kind="consultant_sync",
        company_id=row.company_id,
        entity_id=row.id,
        recipients=NAMED_ALONE,
        named=[row.id],
        counts_toward=run.today,
        values={
            "client_count": row.client_count,
            "overdue_count": row.overdue_count,
            "due_soon_count": row.due_soon_count,
        },
    )


STEPS = (sync_assignments, sync_dashboard, send_summaries)
