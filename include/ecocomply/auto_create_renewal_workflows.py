"""A permit that is about to expire gets one renewal workflow for its expiry date, and its owner is told to begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import NAMED_ELSE_ADMINS
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "autoCreateRenewalWorkflows"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside


def create_renewals(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Make a renewal for each permit that expires within the notice and has had none for that date."""
    within: dict[str, Any] = {"today": run.today, "notice_days": int(run.params["advance_notice_days"])}

    def create(tx: Transaction, ids: Sequence[UUID]) -> None:
        made = tx.rows(statement(PACKAGE, "create_renewals"), ids=ids, **within)
        run.count("skipped", len(ids) - len(made))
        run.count("renewal_workflows_created", len(made))
        tell(run, tx, [_notice(row) for row in made])

    look = statement(PACKAGE, "permits_expiring")
    for page in pages(run, look, company_id=run.params["company_id"], **within):
        run.count("processed", len(page))
        run.count("permits_expiring", len(page))
        waiting = [row.id for row in page if not row.renewed]
        run.count("skipped", len(page) - len(waiting))
        each_chunk(run, waiting, create)


def _notice(row: Row[Any]) -> Notice:
    return Notice(
        kind="renewal_required",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        recipients=NAMED_ELSE_ADMINS,
        named=[row.assigned_to],
        counts_toward=row.expiry_date,
        values={
            "document_id": row.document_id,
            "document": row.title,
            "document_type": row.document_type.lower(),
            "expiry_date": row.expiry_date,
        },
        metadata={"document_id": row.document_id, "expiry_date": row.expiry_date},
    )


STEPS = (create_renewals,)
