"""When each obligation is due: its next date, the deadlines ahead, and from them its status and its schedule's date.

Due dates are the fixed series of the base date plus whole periods, so that no month's end drifts. The next one is the
first after the last deadline that was completed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError

from include.ecocomply.job_records.row_errors import RowError, keep_row_errors
from include.errors import Permanent
from include.isolation import CHUNK, at_once, chunks, each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction, row_error
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "monitoringSchedule"
JOB_TYPE = "MONITORING_SCHEDULE"
SETTINGS: dict[str, str | None] = {}
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

DAYS_AHEAD = 90
"""How far ahead deadlines are made, in days."""

COUNTS = (
    "schedules_created", "deadlines_created", "deadline_dates_updated", "deadlines_retired", "deadlines_restored"
)  # fmt: skip
"""What scheduling an obligation may do: retire its deadlines of a former series, and restore them with it."""


def schedule_obligations(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Give each obligation its next date, a schedule, and its deadlines up to 90 days ahead."""
    which = _which(run)
    with run.transaction() as tx:
        total = tx.value(statement(PACKAGE, "obligations_counted"), **which)
    done = 0
    for page in pages(run, statement(PACKAGE, "obligations_to_schedule"), **which):
        refused = _schedule(run, page)
        _keep(run, refused)
        done += len(page)
        run.count("processed", len(page))
        run.progress(
            done,
            total,
            f"Scheduled {done}/{total} obligations",
            ids=[row.id for row in page],
            counts=dict(run.counts),
        )


def _schedule(run: Run, page: Sequence[Row[Any]]) -> list[tuple[Row[Any], str]]:
    """Schedule a page's obligations; return those that can't be, each with the reason."""
    reasons: dict[UUID, str] = {}

    def change(tx: Transaction, ids: Sequence[UUID]) -> None:
        try:
            made = tx.row(
                statement(PACKAGE, "schedule_obligations"), ids=ids, today=run.today, ahead=DAYS_AHEAD
            )
        except (DBAPIError, Permanent) as error:
            # Known here alone: by the end only the id is left.
            reasons[ids[0]] = row_error(error)
            raise
        if made is not None:
            for name in COUNTS:
                run.count(name, getattr(made, name))

    unusable = {row.id: row.unusable for row in page if row.unusable is not None}
    for obligation, reason in unusable.items():
        run.row_failed(obligation, reason)
    bad = each_chunk(run, [row.id for row in page if row.id not in unusable], change)
    wrong = unusable | {obligation: reasons[obligation] for obligation in bad}
    return [(row, wrong[row.id]) for row in page if row.id in wrong]


def _keep(run: Run, refused: Sequence[tuple[Row[Any], str]]) -> None:
    errors = [RowError("OBLIGATION", row.id, row.company_id, reason) for row, reason in refused]
    for some in chunks(errors, CHUNK):
        with run.transaction() as tx:
            keep_row_errors(tx, JOB_TYPE, run.today, some)


def update_statuses(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Set each obligation's status by its next date: due soon from 7 days before, overdue from the day after."""
    which = {"today": run.today, **_which(run)}

    def look() -> Sequence[UUID]:
        with run.transaction() as tx:
            return [row.id for row in tx.rows(statement(PACKAGE, "obligations_of_other_status"), **which)]

    def change(tx: Transaction, ids: Sequence[UUID] | None) -> None:
        moved = tx.row(statement(PACKAGE, "update_obligation_statuses"), ids=ids, **which)
        if moved is not None:
            for name in ("obligations_overdue", "obligations_due_soon", "obligations_pending"):
                run.count(name, getattr(moved, name))

    at_once(run, look, change)


def update_schedules(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Set the date on which each active schedule is due next: that of its first open deadline still to come."""
    which = {"today": run.today, **_which(run)}

    def look() -> Sequence[UUID]:
        with run.transaction() as tx:
            return [row.id for row in tx.rows(statement(PACKAGE, "schedules_active"), **_which(run))]

    def change(tx: Transaction, ids: Sequence[UUID] | None) -> None:
        run.count("schedules_updated", tx.execute(statement(PACKAGE, "update_schedules"), ids=ids, **which))

    at_once(run, look, change)


def _which(run: Run) -> dict[str, Any]:
    # `force_recalculate` needs nothing: every run reckons everything anew, and writes what differs.
    return {name: run.params[name] for name in ("company_id", "site_id")}


STEPS = (schedule_obligations, update_statuses, update_schedules)
