"""Gaps: deadlines ahead whose evidence is missing, has expired or was not approved, and how grave that is by the days.

A deadline has one open gap. For one due date it becomes graver as the days go by, never milder; sufficient evidence, or
the deadline's end, resolves it. What has passed without being completed stays open, as CRITICAL.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import ASSIGNEE_AND_SITE_MANAGERS
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "evidenceGapDetection"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

PRIORITIES = {"CRITICAL": "URGENT", "HIGH": "HIGH"}
"""The priority of a notification by the gap's severity; people are told of no other."""

_WORDS = {
    "NO_EVIDENCE": "there is no evidence for it yet.",
    "EXPIRED_EVIDENCE": "all of its evidence has expired.",
    "INSUFFICIENT_EVIDENCE": "none of its evidence has been approved.",
}


def review_gaps(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Resolve open gaps that have their evidence or nothing to prove any more; make graver those that are."""
    which = _which(run)

    def review(tx: Transaction, ids: Sequence[UUID]) -> None:
        run.count("gaps_resolved", tx.execute(statement(PACKAGE, "resolve_gaps"), ids=ids, **which))
        worse = tx.rows(statement(PACKAGE, "update_gaps"), ids=ids, **which)
        run.count("gaps_updated", len(worse))
        _tell(run, tx, [row for row in worse if row.worse])

    for page in pages(run, statement(PACKAGE, "gaps_open"), company_id=run.params["company_id"]):
        run.count("processed", len(page))
        each_chunk(run, [row.id for row in page], review)


def find_gaps(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Open a gap for each deadline of the days ahead whose evidence does not suffice, and tell of the grave ones."""
    which = _which(run)

    def find(tx: Transaction, ids: Sequence[UUID]) -> None:
        found = tx.rows(statement(PACKAGE, "open_gaps"), ids=ids, **which)
        run.count("gaps_detected", len(found))
        for row in found:
            run.count(row.severity.lower())
        _tell(run, tx, found)

    for days in range(int(run.params["look_ahead_days"]) + 1):
        # A day at a time, which is the order of the index.
        due: dict[str, Any] = {
            "day": run.today + timedelta(days=days),
            "company_id": run.params["company_id"],
        }
        for page in pages(run, statement(PACKAGE, "deadlines_without_gap"), **due):
            run.count("processed", len(page))
            each_chunk(run, [row.id for row in page], find)


def _which(run: Run) -> dict[str, Any]:
    return {"today": run.today, "as_of": run.as_of}


def _tell(run: Run, tx: Transaction, gaps: Sequence[Row[Any]]) -> None:
    before = run.counts["notifications"]
    tell(run, tx, [_notice(row) for row in gaps if row.severity in PRIORITIES])
    run.count("notifications_sent", run.counts["notifications"] - before)


def _notice(row: Row[Any]) -> Notice:
    return Notice(
        kind="evidence_gap",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        obligation_id=row.obligation_id,
        recipients=ASSIGNEE_AND_SITE_MANAGERS,
        named=[row.assigned_to],
        counts_toward=row.due_date,
        threshold=row.severity,
        priority=PRIORITIES[row.severity],
        values={
            "severity": row.severity,
            "obligation": row.summary,
            "site": row.site_name,
            "due_date": row.due_date,
            "gap": _WORDS[row.gap_type],
        },
        metadata={"gap_type": row.gap_type, "severity": row.severity},
    )


STEPS = (review_gaps, find_gaps)
