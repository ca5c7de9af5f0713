"""Evidence that is about to expire: people are told 30, 14, 7 and 1 days before, once each."""

from __future__ import annotations

from datetime import timedelta
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
NAME = "evidenceExpiryTracking"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

MARKS = (1, 7, 14, 30)
"""Days before the expiry date of which people are told, the most urgent first."""
_URGENT_DAYS = 7


def track_expiry(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Tell of each item of evidence the most urgent mark that it has crossed, once; not of what has expired."""
    for days in range(MARKS[-1] + 1):
        mark = next(one for one in MARKS if days <= one)
        nearer = [one for one in MARKS if one < mark]
        which: dict[str, Any] = {"day": run.today + timedelta(days=days), "nearer": nearer}
        # A day at a time, which is the order of the index.
        for page in pages(run, statement(PACKAGE, "evidence_expiring"), **which):
            run.count("processed", len(page))
            notify(run, [_notice(row, days, mark) for row in page])


def _notice(row: Row[Any], days: int, mark: int) -> Notice:
    return Notice(
        kind="evidence_expiring",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        evidence_id=row.id,
        # Uploader and assignees of linked obligations, else site managers.
        recipients=ASSIGNEE,
        named=[row.uploaded_by, *row.assignees],
        counts_toward=row.expiry_date,
        threshold=mark,
        priority="HIGH" if mark <= _URGENT_DAYS else "NORMAL",
        values={"file_name": row.file_name, "site": row.site_name, "expiry_date": row.expiry_date},
        metadata={"days_until_expiry": days, "company": row.company_name},
    )


STEPS = (track_expiry,)
