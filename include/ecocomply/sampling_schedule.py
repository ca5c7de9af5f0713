"""Trade effluent is sampled on time: the next day for each parameter, and reminders until its result is there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.job_records.row_errors import RowError, keep_row_errors
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import SITE_TEAM
from include.ecocomply.sampling_dates import next_sample_date, week_after
from include.errors import BadInput
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.odd_dates import reckonable
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "samplingSchedule"
JOB_TYPE = "SAMPLING_SCHEDULE"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

REMINDERS = ((8, "CRITICAL"), (1, "HIGH"), (0, "NORMAL"))
"""Days past the sample's day from which a reminder has a priority, the most urgent first."""


class Planned(NamedTuple):
    """A parameter with the day that was worked out for it, and the one that this counts from."""

    id: UUID
    company_id: UUID
    base_date: date
    next_date: date
    changes: bool

    def __str__(self) -> str:
        """Return what finds it, as a row's error names it."""
        return str(self.id)


def generate_schedule(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Work out the day of each parameter's next sample; one that changes is written, and audited."""

    def schedule(tx: Transaction, planned: Sequence[Planned]) -> None:
        changed = tx.execute(
            statement(PACKAGE, "schedule_samples"),
            ids=[one.id for one in planned],
            bases=[one.base_date for one in planned],
            nexts=[one.next_date for one in planned],
            today=run.today,
        )
        run.count("scheduled", changed)
        run.count("skipped", len(planned) - changed)

    which = _which(run)
    with run.transaction() as tx:
        total = tx.value(statement(PACKAGE, "parameters_counted"), **_narrowed(run))
    for rows in pages(run, statement(PACKAGE, "parameters_sampled"), **which):
        errors: list[RowError] = []
        planned = [one for row in rows if (one := _planned(run, row, errors)) is not None]
        bad = each_chunk(run, [one for one in planned if one.changes], schedule)
        errors += [
            RowError("PARAMETER", one.id, one.company_id, f"the day {one.next_date} could not be written")
            for one in bad
        ]
        if errors:
            with run.transaction() as tx:
                keep_row_errors(tx, JOB_TYPE, run.today, errors)
        run.count("processed", len(rows))
        done = run.counts["processed"]
        run.progress(
            done,
            max(done, total),
            f"Processed {done}/{max(done, total)} parameters",
            ids=[row.id for row in rows],
            counts={"scheduled": run.counts["scheduled"], "failed": run.counts["failed"]},
        )


def send_reminders(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Remind of each sample that is due and not there: on its day, the day after, and a week after that."""

    def remind(tx: Transaction, due: Sequence[UUID]) -> None:
        # The world moved: a result may have come in since.
        still = tx.rows(statement(PACKAGE, "samples_due"), ids=due, after=None, limit=len(due), **which)
        run.count("skipped", len(due) - len(still))
        run.count("reminders", len(still))
        tell(run, tx, [_reminder(run, row) for row in still])

    which = _which(run)
    for rows in pages(run, statement(PACKAGE, "samples_due"), ids=None, **which):
        each_chunk(run, [row.id for row in rows], remind)


def _narrowed(run: Run) -> dict[str, Any]:
    return {name: run.params[name] for name in ("company_id", "site_id", "parameter_id")}


def _which(run: Run) -> dict[str, Any]:
    return {"today": run.today} | _narrowed(run)


def _planned(run: Run, row: Row[Any], errors: list[RowError]) -> Planned | None:
    try:
        reckonable(row.base_date, row.base_column)
    except BadInput as error:
        run.row_failed(row.id, error)
        errors.append(
            RowError("PARAMETER", row.id, row.company_id, f"{error}; its next sample is not planned")
        )
        return None
    try:
        next_date = next_sample_date(
            row.sampling_frequency, row.sampling_weekday, row.base_date, row.country_code, row.region
        )
    except BadInput as error:
        # A parameter is rather sampled on a wrong day than never.
        run.row_failed(row.id, error)
        errors.append(RowError("PARAMETER", row.id, row.company_id, f"{error}; sampled weekly instead"))
        next_date = week_after(row.base_date)
    return Planned(row.id, row.company_id, row.base_date, next_date, next_date != row.next_sample_date)


def _reminder(run: Run, row: Row[Any]) -> Notice:
    days = (run.today - reckonable(row.next_sample_date, "next_sample_date")).days
    since, priority = next(one for one in REMINDERS if days >= one[0])
    return Notice(
        kind="sampling_reminder",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        recipients=SITE_TEAM,
        counts_toward=row.next_sample_date,
        threshold=since,
        priority=priority,
        values={
            "parameter": row.parameter_type,
            "site": row.site_name,
            "sampling_date": row.next_sample_date,
        },
        metadata={"next_sample_date": row.next_sample_date, "days_overdue": days},
    )


STEPS = (generate_schedule, send_reminders)
