"""Tasks that come back: one for each due date of a definition up to today, those of missed periods included."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "recurringTaskGeneration"
SETTINGS: dict[str, str | None] = {}
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

MOST_TASKS = 1_000
"""Of one definition and run; what was missed beyond that is made by the next runs."""


def generate_tasks(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Make the tasks that are due of each active definition, and set its next date."""

    def make(tx: Transaction, ids: Sequence[UUID]) -> None:
        made = tx.row(statement(PACKAGE, "generate_tasks"), ids=ids, today=run.today, most=MOST_TASKS)
        if made is not None:
            run.count("tasks_generated", made.tasks)
            # The world moved: switched off, or moved on, since it was looked at.
            run.count("skipped", len(ids) - made.definitions)

    for page in pages(run, statement(PACKAGE, "recurring_tasks_due"), today=run.today):
        run.count("processed", len(page))
        for row in page:
            if row.unusable is not None:
                run.row_failed(row.id, row.unusable)
        each_chunk(run, [row.id for row in page if row.unusable is None], make)


STEPS = (generate_tasks,)
