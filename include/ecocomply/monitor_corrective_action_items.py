"""Items of corrective actions are remembered: ahead, on their day, and every day after it, until they are done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import MANAGERS_AND_ADMINS, NAMED_ELSE_MANAGERS, Rule
from include.errors import BadInput
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.odd_dates import OddDate
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "monitorCorrectiveActionItems"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

AHEAD_DAYS = 3
"""How many days before its date an item is told of for the first time."""
ESCALATED_AFTER_DAYS = 7
"""An item overdue by more days than these is told to managers and admins as well."""


def send_reminders(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Remind the assignee, else the managers: once ahead, on the due day, and daily when overdue."""

    def remind(tx: Transaction, ids: Sequence[UUID]) -> None:
        due = tx.rows(statement(PACKAGE, "corrective_items_still_due"), ids=ids, until=until)
        run.count("skipped", len(ids) - len(due))
        run.count("processed", len(due))
        run.count("overdue_items", sum(row.due_date < run.today for row in due))
        made = [_notice(row, run.today, NAMED_ELSE_MANAGERS) for row in due]
        run.count("reminders_sent", tell(run, tx, made))

    until = run.today + timedelta(days=AHEAD_DAYS)
    _each(run, until, remind)


def escalate_overdue_items(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Tell managers and admins too of what has been overdue for long: the same message, once a day and person."""

    def escalate(tx: Transaction, ids: Sequence[UUID]) -> None:
        late = tx.rows(statement(PACKAGE, "corrective_items_still_due"), ids=ids, until=until)
        made = [_notice(row, run.today, MANAGERS_AND_ADMINS) for row in late]
        tell(run, tx, made)
        run.count("escalations_to_managers", len(late))

    until = run.today - timedelta(days=ESCALATED_AFTER_DAYS + 1)
    _each(run, until, escalate)


def _each(run: Run, until: date, change: Callable[[Transaction, Sequence[UUID]], None]) -> None:
    which = {"until": until, "company_id": run.params["company_id"]}
    size = int(run.params["batch_size"])
    for page in pages(run, statement(PACKAGE, "corrective_items_due"), size, **which):
        each_chunk(run, [row.id for row in page], change, size)


def _notice(row: Row[Any], today: date, recipients: Rule) -> Notice:
    if isinstance(row.due_date, OddDate):
        raise BadInput(f"EcoComply: corrective action item {row.id} is due on {row.due_date}")
    days_left = (row.due_date - today).days
    return Notice(
        kind="corrective_item_overdue" if days_left < 0 else "corrective_item_due",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        recipients=recipients,
        named=[row.assigned_to],
        counts_toward=row.due_date,
        # ahead once, however late that is; then each day by itself
        threshold=AHEAD_DAYS if days_left > 0 else days_left,
        values={
            "item": row.item_title,
            "corrective_action": row.corrective_action_name,
            "corrective_action_id": row.corrective_action_id,
            "due_date": row.due_date,
        },
    )


STEPS = (send_reminders, escalate_overdue_items)
