"""One bad row stops nothing else: set-based chunks that are bisected when they fail."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError

from include.errors import Permanent, Transient
from include.run import Run, Transaction, database_errors, is_row_fault, lost_transaction, row_error
from include.statements import Statement

CHUNK = 1_000
"""The most rows that one statement changes."""

_DEADLOCK_TRIES = 10

Id = TypeVar("Id")


def chunks(ids: Sequence[Id], size: int = CHUNK) -> Iterator[Sequence[Id]]:
    """Yield `ids` in slices of at most `size`."""
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def pages(run: Run, look: Statement, size: int = CHUNK, **binds: Any) -> Iterator[Sequence[Row[Any]]]:
    """Yield all rows of a statement, `size` at a time, so that memory does not grow with their number.

    The statement has the binds `after` and `limit`: it returns at most `limit` rows, ordered by `id`, beyond `after`.
    """
    after: Any = None
    while True:
        with run.transaction() as tx:
            rows = tx.rows(look, after=after, limit=size, **binds)
        if rows:
            yield rows
        if len(rows) < size:
            return
        after = rows[-1].id


def at_once(
    run: Run,
    look: Callable[[], Sequence[Id]],
    change: Callable[[Transaction, Sequence[Id] | None], Any],
    size: int = CHUNK,
) -> list[Id]:
    """Call `change(transaction, None)` for all rows by one statement, and return the ids that failed: none, mostly.

    For jobs that rewrite most of a table. Only if a row's data makes it fail, `look()` names the rows, and they go
    through `each_chunk`.
    """
    counts = run.counts.copy()
    try:
        _in_transaction(run, lambda tx: change(tx, None))
    except (DBAPIError, Permanent) as error:
        run.log.warning("all at once failed, now in chunks: job=%s err=%s", run.job, row_error(error))
    else:
        return []
    run.counts.clear()
    run.counts.update(counts)
    return each_chunk(run, look(), change, size)


def each_chunk(
    run: Run,
    ids: Sequence[Id],
    change: Callable[[Transaction, Sequence[Id]], Any],
    size: int = CHUNK,
) -> list[Id]:
    """Call `change(transaction, ids)` for every chunk, a transaction each, and return the ids that failed.

    A chunk whose data makes it fail, or for which `change` raises Permanent, is halved under savepoints until
    the bad rows stand alone; each is counted and logged through the run. A transaction that lost to another
    one is tried again. A lost connection is not a bad row: it raises Transient.
    """
    bad: list[Id] = []
    for chunk in chunks(ids, size):
        bad.extend(_chunk_with_retry(run, chunk, change))
    return bad


def _chunk_with_retry(
    run: Run, chunk: Sequence[Id], change: Callable[[Transaction, Sequence[Id]], Any]
) -> list[Id]:
    failures: list[tuple[Id, BaseException]] = []

    def work(tx: Transaction) -> None:
        failures.clear()
        _bisect(run, tx, chunk, change, failures)

    _in_transaction(run, work)
    for bad_id, error in failures:
        run.row_failed(bad_id, error)
    return [bad_id for bad_id, _ in failures]


def _in_transaction(run: Run, work: Callable[[Transaction], Any]) -> None:
    """Work in a transaction, and again in another one if it lost to a rival."""
    attempt = 0
    while True:
        attempt += 1
        counts = run.counts.copy()
        try:
            with run.transaction() as tx:
                work(tx)
        except Transient as error:
            cause = error.__cause__
            run.counts.clear()
            run.counts.update(counts)
            if attempt == _DEADLOCK_TRIES or not (isinstance(cause, DBAPIError) and lost_transaction(cause)):
                raise
            time.sleep(random.uniform(0.01, 0.1) * attempt)  # noqa: S311 - spreads rivals, guards nothing
            continue
        return


def _bisect(
    run: Run,
    tx: Transaction,
    chunk: Sequence[Id],
    change: Callable[[Transaction, Sequence[Id]], Any],
    failures: list[tuple[Id, BaseException]],
) -> None:
    counts = run.counts.copy()
    try:
        with tx.savepoint():
            change(tx, chunk)
    except (DBAPIError, Permanent) as error:
        if isinstance(error, DBAPIError) and not is_row_fault(error):
            with database_errors():
                raise
        run.counts.clear()
        run.counts.update(counts)
        if len(chunk) == 1:
            failures.append((chunk[0], error))
            return
        middle = len(chunk) // 2
        _bisect(run, tx, chunk[:middle], change, failures)
        _bisect(run, tx, chunk[middle:], change, failures)
