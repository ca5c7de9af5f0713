"""Permits that are about to expire: people are reminded once as each mark is crossed, more of them as it comes near."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import RENEWAL_7, RENEWAL_30, RENEWAL_90, Rule
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "permitRenewalReminder"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

_EVERYBODY_DAYS, _STAFF_DAYS = 7, 30


def send_reminders(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Remind of each document that has crossed a mark; of several marks the most urgent, once for an expiry date."""
    marks = [int(mark) for mark in run.params["reminder_days"]]
    which: dict[str, Any] = {
        "today": run.today,
        "reminder_days": marks,
        "farthest": max(marks),
        "company_id": run.params["company_id"],
        "site_id": run.params["site_id"],
    }
    look = statement(PACKAGE, "renewals_to_remind_of")

    def remind(tx: Transaction, ids: Sequence[UUID]) -> None:
        # The world moved: what was renewed or reminded of in between is left out.
        due = tx.rows(look, ids=ids, after=None, limit=len(ids), **which)
        run.count("skipped", len(ids) - len(due))
        run.count("reminders", len(due))
        tell(run, tx, [_notice(row) for row in due])

    for page in pages(run, look, ids=None, **which):
        run.count("processed", len(page))
        each_chunk(run, [row.id for row in page], remind)


def _notice(row: Row[Any]) -> Notice:
    recipients, priority = _of_mark(row.mark)
    return Notice(
        kind="permit_renewal_reminder",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        recipients=recipients,
        counts_toward=row.expiry_date,
        threshold=row.mark,
        priority=priority,
        values={
            "document": row.title,
            "document_type": row.document_type.lower(),
            "permit_number": row.permit_number,
            "expiry_date": row.expiry_date,
            "days_until": row.days_until,
            "site_name": row.site_name,
            "company_name": row.company_name,
        },
        metadata={
            "reminder_type": "PERMIT_RENEWAL",
            "reminder_days": row.mark,
            "expiry_date": row.expiry_date,
        },
    )


def _of_mark(mark: int) -> tuple[Rule, str]:
    """Return who is reminded at a mark, and how urgent that is; the nearer, the more of both."""
    if mark <= _EVERYBODY_DAYS:
        return RENEWAL_7, "URGENT"
    if mark <= _STAFF_DAYS:
        return RENEWAL_30, "HIGH"
    return RENEWAL_90, "NORMAL"


STEPS = (send_reminders,)
