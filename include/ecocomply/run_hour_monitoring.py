"""Generators may run so many hours a year and a month: the hours so far, and an alert at 80, 90 and 100 percent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.job_records.row_errors import RowError, keep_row_errors
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import OVERSIGHT
from include.ecocomply.run_hours import percentage, shown
from include.errors import BadInput
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "runHourMonitoring"
JOB_TYPE = "RUN_HOUR_MONITORING"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

THRESHOLDS = (100, 90, 80)
"""Percent of a limit, the most urgent first."""


class Window(NamedTuple):
    """A generator's year or month: when it began, the hours since, and how many there may be."""

    name: str
    start: date
    hours: Decimal
    limit: Decimal | None
    so_far: str
    seen: Decimal
    """The hours of before the adoption: the thresholds that these had reached are history."""
    told: int | None
    """The highest threshold that anybody was told of: a lower one is no news."""


class Reached(NamedTuple):
    """A threshold that the hours of a window have reached."""

    window: Window
    percent: Decimal
    threshold: int


def update_hours(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Sum up each generator's hours of its year and of the month, up to today."""

    def add_up(tx: Transaction, ids: Sequence[UUID]) -> None:
        updated = tx.execute(
            statement(PACKAGE, "sum_generator_hours"),
            ids=ids,
            year_starts=[found[one].year_start for one in ids],
            month_starts=[found[one].month_start for one in ids],
            today=run.today,
        )
        run.count("updated", updated)

    total, done = _total(run), 0
    found: dict[UUID, Row[Any]] = {}
    for rows in pages(run, statement(PACKAGE, "generators_watched"), ids=None, **_which(run)):
        odd = [row for row in rows if row.unusable is not None]
        for row in odd:
            run.row_failed(row.id, row.unusable)
        found = {row.id: row for row in rows if row.unusable is None}
        bad = each_chunk(run, list(found), add_up)
        errors = [_error(found[one], "its hours could not be written") for one in bad]
        _keep(run, [_error(row, row.unusable) for row in odd] + errors)
        done += len(rows)
        run.progress(
            done,
            max(done, total),
            f"Summed {done}/{max(done, total)} generators",
            ids=[row.id for row in rows],
        )


def alert_thresholds(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Tell of the highest threshold that a generator has reached, of its year and of its month, once each."""

    def alert(tx: Transaction, ids: Sequence[UUID]) -> None:
        # The world moved: hours or a limit may have been put right since.
        now = tx.rows(
            statement(PACKAGE, "generators_watched"), ids=ids, after=None, limit=len(ids), **_which(run)
        )
        alerts = [(row, one) for row in now for one in _reached(run, row, [])]
        run.count("threshold_breaches", len(alerts))
        for _, one in alerts:
            run.count(f"reached_{one.threshold}")
        tell(run, tx, [_alert(row, one) for row, one in alerts])

    total, done = _total(run), 0
    for rows in pages(run, statement(PACKAGE, "generators_watched"), ids=None, **_which(run)):
        errors: list[RowError] = []
        each_chunk(run, [row.id for row in rows if list(_reached(run, row, errors))], alert)
        _warn_of_missing_limits(run, rows)
        _keep(run, errors)
        done += len(rows)
        run.count("processed", len(rows))
        breaches = run.counts["threshold_breaches"]
        run.progress(
            done,
            max(done, total),
            f"Checked {done}/{max(done, total)} generators, {breaches} threshold breaches",
            ids=[row.id for row in rows],
            counts={"threshold_breaches": breaches},
        )


def _narrowed(run: Run) -> dict[str, Any]:
    return {name: run.params[name] for name in ("company_id", "generator_id")}


def _which(run: Run) -> dict[str, Any]:
    return {"today": run.today, "thresholds": list(THRESHOLDS)} | _narrowed(run)


def _total(run: Run) -> int:
    with run.transaction() as tx:
        return tx.value(statement(PACKAGE, "generators_counted"), **_narrowed(run))


def _windows(run: Run, row: Row[Any]) -> Iterator[Window]:
    if row.unusable is not None:
        return
    if run.params["check_annual"]:
        yield Window(
            "annual",
            row.year_start,
            row.current_year_hours,
            row.annual_run_hour_limit,
            "Year-to-date",
            row.seen_year_hours,
            row.told_annual,
        )
    if run.params["check_monthly"]:
        yield Window(
            "monthly",
            row.month_start,
            row.current_month_hours,
            row.monthly_run_hour_limit,
            "Month-to-date",
            row.seen_month_hours,
            row.told_monthly,
        )


def _reached(run: Run, row: Row[Any], errors: list[RowError]) -> Iterator[Reached]:
    for window in _windows(run, row):
        if window.limit is None:
            continue
        try:
            percent = percentage(window.hours, window.limit)
            seen = percentage(window.seen, window.limit)
        except BadInput as error:
            errors.append(_error(row, f"{window.name}: {error}"))
            continue
        threshold = next((one for one in THRESHOLDS if percent >= one), None)
        if threshold is not None and seen < threshold and (window.told or 0) <= threshold:
            yield Reached(window, percent, threshold)


def _warn_of_missing_limits(run: Run, rows: Sequence[Row[Any]]) -> None:
    if not run.params["check_annual"]:
        return
    for row in rows:
        if row.annual_run_hour_limit is None:
            run.count("without_annual_limit")
            run.log.warning(
                "no annual limit: job=%s recordId=%s",
                run.job,
                row.id,
                extra={"job": run.job, "recordId": str(row.id)},
            )


def _error(row: Row[Any], reason: str) -> RowError:
    return RowError("GENERATOR", row.id, row.company_id, reason)


def _keep(run: Run, errors: Sequence[RowError]) -> None:
    if errors:
        with run.transaction() as tx:
            keep_row_errors(tx, JOB_TYPE, run.today, errors)


def _alert(row: Row[Any], reached: Reached) -> Notice:
    window, limit = reached.window, reached.window.limit or Decimal(0)
    percent = f"{reached.percent:.1f}"
    return Notice(
        kind=f"run_hours_{reached.threshold}",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_id=row.id,
        recipients=OVERSIGHT,
        counts_toward=window.start,
        # Both windows may begin on the same day.
        threshold=window.name,
        values={
            "generator": row.generator_identifier,
            "percentage": percent,
            "threshold": reached.threshold,
            "window": window.name,
            "limit_hours": shown(limit),
            "hours_so_far": window.so_far,
            "hours": shown(window.hours),
        },
        metadata={
            "threshold_level": reached.threshold,
            "window": window.name,
            "window_start": window.start,
            "percentage": float(percent),
        },
    )


STEPS = (update_hours, alert_thresholds)
