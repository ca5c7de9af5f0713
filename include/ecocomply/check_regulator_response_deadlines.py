"""A regulator that has not answered in time: the permit's owner is told daily, and after a week all ADMINs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import NAMED_AND_ADMINS, NAMED_ELSE_ADMINS
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "checkRegulatorResponseDeadlines"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

PATIENCE_DAYS = 7
"""So many days overdue it is the owner's alone."""


def alert_overdue_responses(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Tell of each response that is overdue, once a day, and note in the workflow that it was told."""
    note = f"[{run.today.isoformat()}] Regulator response overdue - alert sent"

    def alert(tx: Transaction, ids: Sequence[UUID]) -> None:
        noted = tx.rows(statement(PACKAGE, "note_responses_overdue"), ids=ids, today=run.today, note=note)
        # The world moved: what was answered in between is left out.
        run.count("skipped", len(ids) - len(noted))
        run.count("alerts", len(noted))
        run.count("escalated_to_admins", sum(row.days_overdue > PATIENCE_DAYS for row in noted))
        tell(run, tx, [_notice(run, row) for row in noted])

    look = statement(PACKAGE, "regulator_responses_overdue")
    for page in pages(run, look, today=run.today, note=note, company_id=run.params["company_id"]):
        run.count("processed", len(page))
        untold = [row.id for row in page if not row.noted]
        run.count("skipped", len(page) - len(untold))
        each_chunk(run, untold, alert)


def _notice(run: Run, row: Row[Any]) -> Notice:
    urgent = row.days_overdue > PATIENCE_DAYS
    return Notice(
        kind="regulator_response_overdue",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        recipients=NAMED_AND_ADMINS if urgent else NAMED_ELSE_ADMINS,
        named=[row.assigned_to],
        counts_toward=row.deadline,
        threshold=run.today.isoformat(),
        priority="URGENT" if urgent else "HIGH",
        values={
            "document_id": row.document_id,
            "document": row.title,
            "workflow_type": row.workflow_type.lower(),
            "deadline": row.deadline,
            "days_overdue": row.days_overdue,
        },
        metadata={
            "document_id": row.document_id,
            "submitted_date": row.submitted_date,
            "days_overdue": row.days_overdue,
        },
    )


STEPS = (alert_overdue_responses,)
