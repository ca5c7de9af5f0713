"""Clocks tell how many days are left: counted anew each day, and people reminded once as each mark is crossed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import ASSIGNEE
from include.isolation import at_once, each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "updateComplianceClocks"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside


class Band(NamedTuple):
    """What a clock is with `least` to `most` days left."""

    least: int | None
    most: int | None
    criticality: str
    status: str


BANDS = (
    Band(None, -1, "RED", "OVERDUE"),
    Band(0, 7, "RED", "ACTIVE"),
    Band(8, 30, "AMBER", "ACTIVE"),
    Band(31, None, "GREEN", "ACTIVE"),
)


def recalculate_clocks(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Count the days that each running clock has left, and from them its criticality and status."""
    which = _which(run)

    def look() -> Sequence[UUID]:
        with run.transaction() as tx:
            return [row.id for row in tx.rows(statement(PACKAGE, "clocks_running"), **which)]

    def change(tx: Transaction, ids: Sequence[UUID] | None) -> None:
        overdue = tx.value(statement(PACKAGE, "clocks_becoming_overdue"), ids=ids, **which)
        for band in BANDS:
            binds = {**which, **band._asdict(), "ids": ids}
            run.count("updated", tx.execute(statement(PACKAGE, "recalculate_clocks"), **binds))
        run.count("transitioned_to_overdue", overdue)

    at_once(run, look, change, int(run.params["batch_size"]))
    with run.transaction() as tx:
        counted = tx.row(statement(PACKAGE, "clocks_counted"), **which)
    if counted is not None:
        run.count("processed", counted.running)
        for criticality in ("red", "amber", "green"):
            run.count(criticality, getattr(counted, criticality))


def send_reminders(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Remind of each clock that has crossed a mark; of several marks the most urgent, once."""

    def remind(tx: Transaction, due: Sequence[Row[Any]]) -> None:
        # The world moved: what was reminded of in between, or has another date now, is left out.
        marks = {"ids": [row.id for row in due], "marks": [row.mark for row in due]}
        reminded = {row.id for row in tx.rows(statement(PACKAGE, "keep_clock_reminders"), **marks, **which)}
        run.count("skipped", len(due) - len(reminded))
        run.count("reminders", len(reminded))
        tell(run, tx, [_reminder(row) for row in due if row.id in reminded])

    which = _which(run)
    for due in pages(run, statement(PACKAGE, "clocks_to_remind_of"), **which):
        each_chunk(run, due, remind)


def _which(run: Run) -> dict[str, Any]:
    return {"today": run.today} | {name: run.params[name] for name in ("company_id", "site_id", "module_id")}


def _reminder(row: Row[Any]) -> Notice:
    return Notice(
        kind="clock_reminder",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        recipients=ASSIGNEE,
        named=[row.assigned_to],
        counts_toward=row.target_date,
        threshold=row.mark,
        values={
            "clock": row.clock_type.replace("_", " ").capitalize(),
            "site": row.site_name,
            "target_date": row.target_date,
        },
    )


STEPS = (recalculate_clocks, send_reminders)
