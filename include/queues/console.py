"""What the console shows of any queue, and what it changes of many rows at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from include.errors import BadInput
from include.isolation import chunks, each_chunk
from include.queues.engine import Queue
from include.queues.table import QueueTable
from include.queues.wording import worded
from include.run import Run, Transaction

PAGE = 50
MOST_MOVES = 200
"""How many changes of status of one row are shown, the latest."""
MOST_KINDS = 50
MOST_FAILURES = 50_000
"""How many failures are sorted by their cause: more would take longer than a person waits."""
BATCH = 20_000
"""How many rows are looked up at once to be changed, so that few looks go through the whole table."""
ACTIONS = ("cancel", "retry", "requeue")


@dataclass(frozen=True, slots=True)
class RowFilter:
    """What a list is narrowed to. `words` are part of the error, or a whole key; `cause` is a Cause's id."""

    status: str | None = None
    kind: str | None = None
    words: str | None = None
    cause: str | None = None

    def binds(self) -> dict[str, str | None]:
        return {"status": self.status, "kind": self.kind, "words": self.words, "cause": self.cause}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ends: the planned instant there as the database writes it (empty for none), and the key."""

    planned: str
    key: str


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of a list; `next` is None on the last one."""

    rows: Sequence[Row[Any]]
    next: Place | None


@dataclass(frozen=True, slots=True)
class Standing:
    """How a queue stands.

    `depth` is the number of rows by status, every word of the table first. `ended` has, by status, how many
    rows came to an end in it in the last hour and the last day. `causes` are the most frequent of the
    first MOST_FAILURES failures, with `more` if there are others.
    """

    depth: Mapping[str, int]
    due_now: int
    oldest_due: datetime | None
    ended: Mapping[str, tuple[int, int]]
    causes: Sequence[Row[Any]] = field(default_factory=tuple)
    more: bool = False


@dataclass(frozen=True, slots=True)
class RowDetail:
    """One row with its changes of status, the earliest first; `cut` if there were more before them."""

    row: Row[Any]
    moves: Sequence[Row[Any]]
    cut: bool


def acted_on(table: QueueTable, what: str) -> str:
    """Return the status of the rows that a person may cancel, retry or requeue."""
    words = table.words
    return {"cancel": words.due, "retry": words.failed, "requeue": words.claimed}[what]


def standing(tx: Transaction, table: QueueTable, most_causes: int) -> Standing:
    """Return how a queue stands now, by the database's clock."""
    counted = Queue(table).statistics(tx)
    rates = tx.rows(worded(table, "console_rates"))
    causes = tx.rows(worded(table, "console_causes"), most=MOST_FAILURES, limit=most_causes + 1)
    depth = dict.fromkeys(table.all_words(), 0) | {row.status: row.rows for row in counted}
    return Standing(
        depth=depth,
        due_now=sum(row.due_now for row in counted),
        oldest_due=next((row.oldest_due for row in counted if row.oldest_due is not None), None),
        ended={row.status: (row.last_hour, row.last_day) for row in rates},
        causes=causes[:most_causes],
        more=len(causes) > most_causes,
    )


def kinds(tx: Transaction, table: QueueTable) -> Sequence[Row[Any]]:
    """Return the most frequent kinds of the queue's rows with their number; none if the table has no kinds."""
    return tx.rows(worded(table, "console_kinds"), limit=MOST_KINDS) if table.kind else ()


def listed(tx: Transaction, table: QueueTable, wanted: RowFilter, after: Place | None = None) -> Listed:
    """Return a page of the queue's rows, the latest planned first."""
    rows = tx.rows(
        worded(table, "console_list"),
        **wanted.binds(),
        after_planned=(after.planned or None) if after else None,
        after_key=after.key if after else None,
        attempt_limit=table.attempt_limit,
        limit=PAGE + 1,
    )
    last = rows[PAGE - 1] if len(rows) > PAGE else None
    return Listed(rows[:PAGE], Place(last.planned_text, last.row_key) if last else None)


def matching(tx: Transaction, table: QueueTable, wanted: RowFilter) -> Mapping[str, int]:
    """Return how many rows the filter leaves, by status."""
    return {row.status: row.rows for row in tx.rows(worded(table, "console_matching"), **wanted.binds())}


def row_detail(tx: Transaction, table: QueueTable, key: str) -> RowDetail | None:
    """Return one row with what became of it, or None if there is none of that key."""
    row = tx.row(worded(table, "console_row"), row_key=key, attempt_limit=table.attempt_limit)
    if row is None:
        return None
    moves = tx.rows(worded(table, "console_trail"), row_key=row.row_key, limit=MOST_MOVES + 1)
    return RowDetail(row, moves[:MOST_MOVES][::-1], len(moves) > MOST_MOVES)


def change(tx: Transaction, table: QueueTable, what: str, keys: Sequence[Any], actor: str) -> set[Any]:
    """Cancel, retry or requeue rows in a person's name; return the keys of those that were changed.

    Raises BadInput for what a person may not do with this table.
    """
    return _by(Queue(table), what)(tx, keys, actor)


def change_all(
    run: Run,
    table: QueueTable,
    what: str,
    wanted: RowFilter,
    actor: str,
    *,
    at_most: int,
    seconds: float,
) -> None:
    """Cancel, retry or requeue what the filter leaves, in a person's name; counts `changed` and `failed`.

    Goes through the rows once by key, a chunk a transaction, and stops after `at_most` rows, or when the time
    is up. A row that another session holds, or that differs by now, is left alone, and one that the database
    will not have changed stops no other. Raises BadInput for what a person may not do with this table.
    """
    act = _by(Queue(table), what)
    binds = wanted.binds() | {"acted_on": acted_on(table, what)}
    give_up_at = time.monotonic() + seconds

    def changed(tx: Transaction, keys: Sequence[Any]) -> None:
        # Asked again under the row's lock: what was read before may be another's by now.
        held = [row.row_key for row in tx.rows(worded(table, "console_held"), keys=list(keys), **binds)]
        run.count("changed", len(act(tx, held, actor)) if held else 0)

    seen, after = 0, None
    while seen < at_most and time.monotonic() < give_up_at:
        with run.transaction() as tx:
            found = tx.rows(
                worded(table, "console_keys"), after_key=after, at_most=min(BATCH, at_most - seen), **binds
            )
        if not found:
            return
        keys = [row.row_key for row in found]
        for chunk in chunks(keys):
            if time.monotonic() >= give_up_at:
                return
            each_chunk(run, chunk, changed)
        seen, after = seen + len(keys), keys[-1]


def _by(queue: Queue, what: str) -> Callable[[Transaction, Sequence[Any], str], set[Any]]:
    if what not in queue.table.people_may:
        raise BadInput(f"{queue.table.name}: a person can't {what} its rows")
    return {"cancel": queue.cancel, "retry": queue.retry, "requeue": queue.requeue}[what]
