"""Each approved run of a generator is held once against the limits of its year and month; what they exceed is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import OVERSIGHT
from include.ecocomply.run_hours import percentage
from include.errors import BadInput
from include.isolation import chunks, each_chunk, pages
from include.job import NothingOutside
from include.odd_dates import as_text
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "checkRuntimeExceedances"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

THRESHOLD, LIMIT = 90, 100
"""Percent of a limit from which it is nearly, or wholly, exceeded."""


class Exceedance(NamedTuple):
    """What a generator's hours exceed in a year or a month; `percents` are of the annual and the monthly limit."""

    type: str
    window: str
    start: date
    end: date
    percents: tuple[str | None, str | None]


def check_entries(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Hold runs against their generators' limits: flags, clocks and notifications in one transaction a chunk."""

    def check(tx: Transaction, ids: Sequence[UUID]) -> None:
        judged = tx.rows(statement(PACKAGE, "runtimes_judged"), ids=ids, today=run.today)
        # The world moved: what another run has checked, or nobody approves any more, is left out.
        run.count("skipped", len(ids) - len(judged))
        run.count("processed", len(judged))
        found = [(row, list(_exceedances(row))) for row in judged]
        _mark(run, tx, found)
        _wind_clocks(run, tx, found)
        # The newest run of a window tells of it.
        told = {
            (row.generator_id, one.type, one.window, one.start): _notice(row, one)
            for row, exceedances in found
            for one in exceedances
        }
        for notifications in chunks(list(told.values())):
            tell(run, tx, notifications)

    # A generator's runs together: its year is summed up once a chunk, not once a run.
    for rows in pages(run, statement(PACKAGE, "runtimes_unchecked"), **_which(run)):
        each_chunk(run, [row.run_id for row in rows], check, int(run.params["batch_size"]))


def complete_clocks(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Complete the clock of each exceedance whose year or month has ended."""

    def complete(tx: Transaction, ids: Sequence[UUID]) -> None:
        completed = tx.execute(statement(PACKAGE, "complete_exceedance_clocks"), ids=ids, today=run.today)
        run.count("clocks_completed", completed)
        run.count("skipped", len(ids) - completed)

    for rows in pages(run, statement(PACKAGE, "exceedance_clocks_ended"), **_which(run)):
        each_chunk(run, [row.id for row in rows], complete)


def _which(run: Run) -> dict[str, Any]:
    return {"today": run.today} | {name: run.params[name] for name in ("company_id", "generator_id")}


def _percent(hours: Decimal, limit: Decimal | None) -> Decimal | None:
    try:
        return None if limit is None else percentage(hours, limit)
    except BadInput:
        # The daily run-hour monitoring has it in the audit trail.
        return None


def _exceedances(row: Row[Any]) -> Iterator[Exceedance]:
    annual = _percent(row.year_hours, row.annual_run_hour_limit)
    monthly = _percent(row.month_hours, row.monthly_run_hour_limit)
    shown = tuple(None if one is None else f"{one:.1f}" for one in (annual, monthly))
    for window, percent, start, end in (
        ("annual", annual, row.year_start, row.year_end),
        ("monthly", monthly, row.month_start, row.month_end),
    ):
        if percent is not None and percent >= THRESHOLD:
            kind = f"{window.upper()}_LIMIT_EXCEEDED" if percent >= LIMIT else "THRESHOLD_EXCEEDED"
            yield Exceedance(kind, window, start, end, (shown[0], shown[1]))


def _mark(run: Run, tx: Transaction, found: Sequence[tuple[Row[Any], list[Exceedance]]]) -> None:
    types = [{one.type for one in exceedances} for _, exceedances in found]
    annuals = ["ANNUAL_LIMIT_EXCEEDED" in one for one in types]
    monthlies = ["MONTHLY_LIMIT_EXCEEDED" in one for one in types]
    tx.execute(
        statement(PACKAGE, "mark_runtimes_checked"),
        ids=[row.id for row, _ in found],
        thresholds=[bool(one) for one in types],
        annuals=annuals,
        monthlies=monthlies,
        as_of=run.as_of,
    )
    run.count("flags_set", sum(bool(one) for one in types))
    run.count("annual_limit_exceeded", sum(annuals))
    run.count("monthly_limit_exceeded", sum(monthlies))
    run.count("threshold_exceeded", sum("THRESHOLD_EXCEEDED" in one for one in types))


def _wind_clocks(run: Run, tx: Transaction, found: Sequence[tuple[Row[Any], list[Exceedance]]]) -> None:
    clocks: dict[tuple[UUID, str], dict[str, Any]] = {}
    for row, exceedances in found:
        for one in exceedances:
            key = (row.generator_id, one.type)
            end = max(one.end, clocks[key]["window_end"]) if key in clocks else one.end
            clocks[key] = {
                "company_id": row.company_id,
                "site_id": row.site_id,
                "entity_id": row.generator_id,
                "clock_type": one.type,
                "window_end": end,
                "metadata": {
                    "runtime_entry_id": row.id,
                    "run_date": row.run_date,
                    "runtime_hours": float(row.runtime_hours),
                    "annual_percentage": _number(one.percents[0]),
                    "monthly_percentage": _number(one.percents[1]),
                    "window_end": end,
                },
            }
    if clocks:
        rows = msgspec.json.encode(list(clocks.values()), enc_hook=as_text).decode()
        wound = tx.execute(statement(PACKAGE, "wind_exceedance_clocks"), clocks=rows, today=run.today)
        run.count("clocks_updated", wound)


def _number(percent: str | None) -> float | None:
    return None if percent is None else float(percent)


def _notice(row: Row[Any], one: Exceedance) -> Notice:
    return Notice(
        kind="runtime_exceedance",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.generator_id,
        recipients=OVERSIGHT,
        counts_toward=one.start,
        # Both windows may begin on the same day.
        threshold=f"{one.type}/{one.window}",
        values={
            "generator": row.generator_identifier,
            "exceedance_type": one.type,
            "window": one.window,
            "run_date": row.run_date,
            "annual_percentage": one.percents[0],
            "monthly_percentage": one.percents[1],
        },
        metadata={
            "runtime_entry_id": row.id,
            "exceedance_type": one.type,
            "annual_percentage": _number(one.percents[0]),
            "monthly_percentage": _number(one.percents[1]),
        },
    )


STEPS = (check_entries, complete_clocks)
