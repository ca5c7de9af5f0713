"""How long each breach of an SLA has gone on, in hours, and who is told at 12, 24 and 48 of them: each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import SLA_LEVELS
from include.isolation import at_once, each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "updateSlaBreachTimers"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside


def update_breach_durations(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Count the hours of every breach of a deadline that is not completed."""
    which = _which(run)

    def look() -> Sequence[UUID]:
        with run.transaction() as tx:
            return [row.id for row in tx.rows(statement(PACKAGE, "breaches_running"), **which)]

    def change(tx: Transaction, ids: Sequence[UUID] | None) -> None:
        run.count("updated", tx.execute(statement(PACKAGE, "update_breach_durations"), ids=ids, **which))

    for page in pages(run, statement(PACKAGE, "breaches_unusable"), company_id=which["company_id"]):
        for row in page:
            run.row_failed(row.id, "its sla_breached_at lies before 1900")
    at_once(run, look, change, int(run.params["batch_size"]))
    with run.transaction() as tx:
        counted = tx.row(statement(PACKAGE, "breached_counted"), **which)
    if counted is not None:
        run.count("processed", counted.tracked)
        run.count("average_breach_hours", counted.average_hours)
        for bucket in ("under_24h", "from_24h_to_48h", "over_48h"):
            run.count(bucket, getattr(counted, bucket))


def escalate_breaches(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Tell of each breach that has reached 12, 24 or 48 hours; of several of these the highest, once."""
    look, which = statement(PACKAGE, "breaches_to_escalate"), {"today": run.today} | _which(run)
    size = int(run.params["batch_size"])

    def escalate(tx: Transaction, ids: Sequence[UUID]) -> None:
        # The world moved: what was completed or told of in between is left out.
        due = tx.rows(look, ids=ids, after=None, limit=len(ids), **which)
        run.count("skipped", len(ids) - len(due))
        run.count("escalations", len(due))
        tell(run, tx, [_notice(row) for row in due])

    for page in pages(run, look, size, ids=None, **which):
        each_chunk(run, [row.id for row in page], escalate)


def _which(run: Run) -> dict[str, Any]:
    return {"as_of": run.as_of, "company_id": run.params["company_id"]}


def _notice(row: Row[Any]) -> Notice:
    return Notice(
        kind="sla_escalation",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        obligation_id=row.obligation_id,
        recipients=SLA_LEVELS[row.level - 1],
        named=[row.assigned_to],
        counts_toward=row.target_date,
        threshold=row.threshold_hours,
        # The first is a warning, before anybody higher up hears of it.
        priority="HIGH" if row.level == 1 else "URGENT",
        escalation_level=row.level,
        values={
            "obligation": row.summary,
            "site": row.site_name,
            "breach_hours": row.breach_hours,
            "threshold_hours": row.threshold_hours,
        },
        metadata={
            "target_date": row.target_date,
            "breach_hours": row.breach_hours,
            "threshold_hours": row.threshold_hours,
        },
    )


STEPS = (update_breach_durations, escalate_breaches)
