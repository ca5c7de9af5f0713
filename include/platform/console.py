"""What the console shows of the platform: runs, previews, alerts and outages."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from include.errors import BadInput
from include.run import Transaction
from include.statements import statement

PACKAGE = "include.platform"

PAGE = 50
_MOST_STEPS = 500
_MOST_OUTAGES = 50


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a page of runs ends: the ISO instant that its last run started at, and that run's id."""

    started_at: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Runs:
    """One page of a DAG's runs; `next` is None on the last one."""

    rows: Sequence[Row[Any]]
    next: RunPlace | None


@dataclass(frozen=True, slots=True)
class RunDetail:
    """One run with the attempts of its tasks, the earliest first."""

    row: Row[Any]
    steps: Sequence[Row[Any]]


def latest_runs(tx: Transaction, dag_ids: Collection[str]) -> Sequence[Row[Any]]:
    """Return the latest run of each of these DAGs that has run, sorted by DAG.

    Where a preview is newer it comes after the run, so that a look does not hide what was done.
    """
    return tx.rows(statement(PACKAGE, "console_latest_runs"), dag_ids=sorted(dag_ids))


def known_runs(tx: Transaction, dag_id: str, run_ids: Collection[str]) -> set[str]:
    """Return which of these runs have a summary."""
    rows = tx.rows(statement(PACKAGE, "console_known_runs"), dag_id=dag_id, run_ids=sorted(run_ids))
    return {row.run_id for row in rows}


def runs_of_dag(tx: Transaction, dag_id: str, after: RunPlace | None = None) -> Runs:
    """Return a page of one DAG's runs, the latest first. Raises BadInput for a place that can't be."""
    rows = tx.rows(
        statement(PACKAGE, "console_runs_of_dag"),
        dag_id=dag_id,
        after_at=_instant(after.started_at) if after else None,
        after_id=after.run_id if after else None,
        limit=PAGE + 1,
    )
    last = rows[PAGE - 1] if len(rows) > PAGE else None
    return Runs(rows[:PAGE], RunPlace(last.started_at.isoformat(), last.run_id) if last else None)


def run_detail(tx: Transaction, dag_id: str, run_id: str) -> RunDetail | None:
    """Return one run, or None if the platform knows none of that id."""
    row = tx.row(statement(PACKAGE, "console_run"), dag_id=dag_id, run_id=run_id)
    if row is None:
        return None
    return RunDetail(
        row, tx.rows(statement(PACKAGE, "console_run_steps"), dag_id=dag_id, run_id=run_id, limit=_MOST_STEPS)
    )


def counted(
    tx: Transaction, dag_ids: Collection[str], names: Collection[str], since: datetime
) -> Sequence[Row[Any]]:
    """Return what the runs of these DAGs have counted under some names since an instant, previews left out."""
    return tx.rows(
        statement(PACKAGE, "console_counted"), dag_ids=sorted(dag_ids), names=sorted(names), since=since
    )


def alerts(
    tx: Transaction,
    dag_ids: Collection[str],
    *,
    undelivered: bool = False,
    after: tuple[str, uuid.UUID] | None = None,
) -> tuple[Sequence[Row[Any]], tuple[str, uuid.UUID] | None]:
    """Return a page of alerts of these DAGs and of none, the latest first, and where the next one begins."""
    rows = tx.rows(
        statement(PACKAGE, "console_alerts"),
        dag_ids=sorted(dag_ids),
        undelivered=undelivered,
        after_at=_instant(after[0]) if after else None,
        after_id=after[1] if after else None,
        limit=PAGE + 1,
    )
    last = rows[PAGE - 1] if len(rows) > PAGE else None
    return rows[:PAGE], (last.created_at.isoformat(), last.id) if last else None


def outages(tx: Transaction) -> Sequence[Row[Any]]:
    """Return the outages, the open ones first and then the latest."""
    return tx.rows(statement(PACKAGE, "console_outages"), limit=_MOST_OUTAGES)


def delivery(alert: Row[Any]) -> str:
    """Return in words why an alert has not reached anybody, or that it has."""
    if alert.delivered_at is not None:
        return "delivered" if alert.delivery_attempts else alert.last_error or "told elsewhere"
    if alert.no_address:
        return "logged only: ADMIN_ALERT_EMAIL is not set"
    tries = f"{alert.delivery_attempts} {'try' if alert.delivery_attempts == 1 else 'tries'}"
    if alert.last_error:
        return f"{tries} failed: {alert.last_error}"
    if alert.delivery_claimed_at is not None:
        return "on its way: claimed, no answer yet"
    return "waits for its first try"


@dataclass(frozen=True, slots=True)
class Difference:
    """One changed column: its values as text, None where there is none (a new or a deleted row)."""

    column: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """One row that a run would insert, update or delete; `differences` holds the changed columns alone."""

    kind: str
    key: str
    differences: Sequence[Difference]


@dataclass(frozen=True, slots=True)
class TableChanges:
    """What a run would do to one table; counts are exact, `changes` are the first ones."""

    table: str
    inserted: int
    updated: int
    deleted: int
    changes: Sequence[Change]

    @property
    def total(self) -> int:
        return self.inserted + self.updated + self.deleted


def table_changes(result: Mapping[str, Any]) -> Sequence[TableChanges]:
    """Return a stored preview's changes, table by table."""
    return [
        TableChanges(
            table=str(table["table"]),
            inserted=int(table["inserted"]),
            updated=int(table["updated"]),
            deleted=int(table["deleted"]),
            changes=[_change(change) for change in table["changes"]],
        )
        for table in result.get("tables", [])
    ]


def _change(change: Mapping[str, Any]) -> Change:
    before, after = change.get("before") or {}, change.get("after") or {}
    columns = dict.fromkeys([*before, *after])
    return Change(
        kind=str(change["kind"]),
        key=", ".join(f"{name} {_text(value)}" for name, value in change["key"].items()),
        differences=[
            Difference(column, _side(change.get("before"), column), _side(change.get("after"), column))
            for column in columns
            if column not in before or column not in after or before[column] != after[column]
        ],
    )


def _side(row: Mapping[str, Any] | None, column: str) -> str | None:
    return _text(row[column]) if row is not None and column in row else None


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else str(value)


def _instant(text: str) -> datetime:
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"page: {text!r} is no place in this list") from None
    if value.tzinfo is None:
        raise BadInput(f"page: {text!r} is no place in this list")
    return value
