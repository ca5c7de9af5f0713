"""What waits too long for a person's review is told higher up, at most once a day for each item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import REVIEW_LEVELS, Rule
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "reviewQueueEscalation"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside


def escalate_reviews(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Bring each waiting item to the highest level that it has reached, keep that, and tell those of the level."""
    look = statement(PACKAGE, "reviews_to_escalate")
    for page in pages(run, look, as_of=run.as_of, company_id=run.params["company_id"]):
        run.count("processed", len(page))
        usable = [row for row in page if row.unusable is None]
        for row in page:
            if row.unusable is not None:
                run.row_failed(row.id, row.unusable)
        run.count("rate_limited", sum(bool(row.too_soon) for row in usable))
        _escalate(run, {row.id: row for row in usable if not row.too_soon})
    run.count("notifications_sent", run.counts["notifications"])


def _escalate(run: Run, due: Mapping[UUID, Row[Any]]) -> None:
    def escalate(tx: Transaction, ids: Sequence[UUID]) -> None:
        of = {"ids": list(ids), "levels": [due[key].level for key in ids]}
        hours = [due[key].hours for key in ids]
        # The world moved: what was reviewed in between is left out.
        done = tx.rows(statement(PACKAGE, "escalate_reviews"), hours=hours, as_of=run.as_of, **of)
        run.count("skipped", len(ids) - len(done))
        run.count("items_escalated", len(done))
        for row in done:
            run.count(f"l{due[row.id].level}")
        tell(run, tx, [_notice(due[row.id]) for row in done])
        tx.execute(statement(PACKAGE, "keep_review_escalated_to"), **of)

    each_chunk(run, list(due), escalate)


def _notice(row: Row[Any]) -> Notice:
    return Notice(
        kind="review_escalation",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        obligation_id=row.obligation_id,
        recipients=_of_level(row.level),
        counts_toward=row.created_at.astimezone(UTC).date(),
        threshold=row.level,
        escalation_level=row.level,
        values={
            "document": row.document,
            "hours_pending": int(row.hours),
            "level": row.level,
            "hallucination_risk": row.hallucination_risk,
        },
        metadata={
            "review_type": row.review_type,
            "is_blocking": row.is_blocking,
            "hours_pending": int(row.hours),
            "escalation_level": row.level,
            "hallucination_risk": row.hallucination_risk,
        },
    )


def _of_level(level: int) -> Rule:
    """Return who hears of a level: those of it, and of the milder ones, which may have been missed."""
    return tuple(chain for rule in REVIEW_LEVELS[:level] for chain in rule)


STEPS = (escalate_reviews,)
