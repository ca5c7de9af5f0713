"""Obligations that are due within a week and have no evidence: who looks after one is reminded, once a day."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, notify
from include.ecocomply.recipients import ASSIGNEE
from include.isolation import pages
from include.job import NothingOutside
from include.run import Run
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "evidenceReminder"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

DAYS_AHEAD = 7


def send_reminders(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Remind by mail of each obligation that is due by the seventh day and has no live evidence."""
    which: dict[str, Any] = {"today": run.today, "ahead": DAYS_AHEAD}
    which |= {name: run.params[name] for name in ("company_id", "site_id")}
    for page in pages(run, statement(PACKAGE, "obligations_without_evidence"), **which):
        run.count("processed", len(page))
        notify(run, [_reminder(run, row) for row in page])


def _reminder(run: Run, row: Row[Any]) -> Notice:
    return Notice(
        kind="evidence_reminder",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        obligation_id=row.id,
        recipients=ASSIGNEE,
        named=[row.assigned_to],
        counts_toward=row.deadline_date,
        # Once a day.
        threshold=run.today.isoformat(),
        channels=["EMAIL"],
        values={"obligation": row.summary, "site": row.site_name, "due_date": row.deadline_date},
        metadata={"days_until_due": row.days_until_due},
    )


STEPS = (send_reminders,)
