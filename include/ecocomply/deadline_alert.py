"""Deadlines that draw near: people are warned 7, 3 and 1 days before and on the day, and statuses follow the days.

Of what has passed another job tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, notify
from include.ecocomply.recipients import ASSIGNEE
from include.isolation import at_once, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "deadlineAlert"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

MARKS = (0, 1, 3, 7)
"""Days before the due date of which people are warned, the most urgent first."""


def send_alerts(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Warn of each deadline of the most urgent mark that it has crossed, once."""
    for days in range(MARKS[-1] + 1):
        mark = next(one for one in MARKS if days <= one)
        due: dict[str, Any] = {
            "day": run.today + timedelta(days=days), "mark": mark, "marks": list(MARKS), **_which(run)
        }  # fmt: skip
        # A day at a time, which is the order of the index.
        for page in pages(run, statement(PACKAGE, "deadlines_to_alert"), **due):
            run.count("processed", len(page))
            notify(run, [_alert(row, days, mark) for row in page])


def update_deadline_statuses(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Set the status of open deadlines: due soon from 3 days before, overdue from the day after, and back."""
    which = {"today": run.today, **_which(run)}

    def look() -> Sequence[UUID]:
        with run.transaction() as tx:
            return [row.id for row in tx.rows(statement(PACKAGE, "deadlines_of_other_status"), **which)]

    def change(tx: Transaction, ids: Sequence[UUID] | None) -> None:
        moved = tx.row(statement(PACKAGE, "update_deadline_statuses"), ids=ids, **which)
        if moved is not None:
            run.count("due_soon", moved.due_soon)
            run.count("overdue", moved.overdue)
            run.count("pending", moved.pending)

    at_once(run, look, change)


def _which(run: Run) -> dict[str, Any]:
    # `trigger_source` says who asked, and changes nothing of what is done.
    return {name: run.params[name] for name in ("company_id", "site_id")}


def _alert(row: Row[Any], days: int, mark: int) -> Notice:
    return Notice(
        kind=f"deadline_{mark}",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        obligation_id=row.obligation_id,
        recipients=ASSIGNEE,
        named=[row.assigned_to],
        counts_toward=row.due_date,
        threshold=mark,
        values={"obligation": row.summary, "site": row.site_name, "due_date": row.due_date},
        metadata={"days_remaining": days},
    )


STEPS = (send_alerts, update_deadline_statuses)
