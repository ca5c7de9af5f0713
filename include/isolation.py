"""One bad row stops nothing else: set-based chunks that are bisected when they fail."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy.exc import DBAPIError

from include.errors import Permanent, Transient
from include.run import Run, Transaction, database_errors, is_row_fault, lost_transaction

CHUNK = 1_000
"""The most rows that one statement changes."""

_DEADLOCK_TRIES = 10

Id = TypeVar("Id")


def chunks(ids: Sequence[Id], size: int = CHUNK) -> Iterator[Sequence[Id]]:
    """Yield `ids` in slices of at most `size`."""
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


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
    attempt = 0
    while True:
        attempt += 1
        counts = run.counts.copy()
        failures: list[tuple[Id, BaseException]] = []
        try:
            with run.transaction() as tx:
                _bisect(run, tx, chunk, change, failures)
        except Transient as error:
            cause = error.__cause__
            run.counts.clear()
            run.counts.update(counts)
            if attempt == _DEADLOCK_TRIES or not (isinstance(cause, DBAPIError) and lost_transaction(cause)):
                raise
            time.sleep(random.uniform(0.01, 0.1) * attempt)  # noqa: S311 - spreads rivals, guards nothing
            continue
        for bad_id, error in failures:
            run.row_failed(bad_id, error)
        return [bad_id for bad_id, _ in failures]


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
