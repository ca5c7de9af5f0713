"""Deadlines that have passed undone, and SLA targets that were missed: each found once, and told at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.dates_in_words import day
from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import ASSIGNEE_AND_OVERSIGHT
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "detectBreachesAndAlerts"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

URGENT_HOURS = 24
"""A miss that is found so many hours late is urgent."""


def detect_breaches(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Tell of each deadline that has passed undone, whatever another job has marked it as."""

    def detect(tx: Transaction, ids: Sequence[UUID]) -> None:
        # The world moved: what was completed or moved in between stays out.
        kept = tx.rows(statement(PACKAGE, "keep_breaches"), ids=ids, today=run.today, as_of=run.as_of)
        run.count("skipped", len(ids) - len(kept))
        run.count("breaches", len(kept))
        run.count("without_evidence", sum(row.evidence_missing for row in kept))
        run.count("hours_to_detection", sum(row.hours_to_detection for row in kept))
        tell(run, tx, [_breach(run, row) for row in kept])

    _work_through(run, "breaches_untold", detect)
    hours = run.counts.pop("hours_to_detection", 0)
    run.count("average_hours_to_detection", round(hours / (run.counts["breaches"] or 1)))
    with run.transaction() as tx:
        resolved = tx.value(
            statement(PACKAGE, "breaches_resolved"), as_of=run.as_of, company_id=run.params["company_id"]
        )
    run.count("resolved_after_notification", resolved)


def detect_sla_misses(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Mark each deadline whose SLA target has passed undone as breached as of now, and tell of it."""

    def detect(tx: Transaction, ids: Sequence[UUID]) -> None:
        kept = tx.rows(statement(PACKAGE, "keep_sla_misses"), ids=ids, today=run.today, as_of=run.as_of)
        run.count("skipped", len(ids) - len(kept))
        run.count("sla_misses", len(kept))
        tell(run, tx, [_sla_miss(row) for row in kept])

    _work_through(run, "sla_misses", detect)


def _work_through(run: Run, look: str, detect: Callable[[Transaction, Sequence[UUID]], None]) -> None:
    which: dict[str, Any] = {"today": run.today, "company_id": run.params["company_id"]}
    for page in pages(run, statement(PACKAGE, look), int(run.params["batch_size"]), **which):
        run.count("processed", len(page))
        each_chunk(run, [row.id for row in page], detect)


def _breach(run: Run, row: Row[Any]) -> Notice:
    app = (run.settings["APP_URL"] or "").rstrip("/")
    upload = f"{app}/sites/{row.site_id}/obligations/{row.obligation_id}/evidence"
    return Notice(
        kind="regulatory_breach" if row.evidence_missing else "compliance_breach",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        obligation_id=row.obligation_id,
        recipients=ASSIGNEE_AND_OVERSIGHT,
        named=[row.assigned_to],
        counts_toward=row.due_date,
        values={
            "obligation": row.summary,
            "obligation_title": row.summary,
            "site": row.site_name,
            "site_name": row.site_name,
            "company_name": row.company_name,
            "regulator_name": row.regulator,
            "due_date": row.due_date,
            "deadline_date": day(row.due_date),
            "days_overdue": row.days_overdue,
        }
        | ({"evidence_upload_url": upload} if row.evidence_missing else {}),
        metadata={"severity": "CRITICAL", "days_overdue": row.days_overdue},
    )


def _sla_miss(row: Row[Any]) -> Notice:
    urgent = row.sla_breach_hours >= URGENT_HOURS
    return Notice(
        kind="sla_breach",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        obligation_id=row.obligation_id,
        recipients=ASSIGNEE_AND_OVERSIGHT,
        named=[row.assigned_to],
        counts_toward=row.sla_target_date,
        priority="URGENT" if urgent else "HIGH",
        values={
            "obligation": row.summary,
            "deadline_title": row.summary,
            "site": row.site_name,
            "site_name": row.site_name,
            "company_name": row.company_name,
            "sla_target_date": row.sla_target_date,
            "due_date": row.due_date,
            "days_to_due_date": row.days_to_due_date,
            "sla_breach_hours": row.sla_breach_hours,
        },
        metadata={"severity": "CRITICAL" if urgent else "WARNING", "sla_breach_hours": row.sla_breach_hours},
    )


STEPS = (detect_breaches, detect_sla_misses)
