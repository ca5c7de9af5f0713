"""What one worker takes from a queue: the next due rows, past those that the database will not have changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy.exc import DBAPIError

from include.queues.engine import Claim, Place, Queue, place_after
from include.run import Run, Transaction, is_row_fault

RESCAN_SECONDS = 5.0
"""How long a worker goes on from its place before it looks from the start: rows may have come in before it."""

Taken = TypeVar("Taken")


@dataclass(slots=True)
class Claiming:
    """One worker's claims, of `kinds` alone if any are given: where the next one starts, what it leaves aside."""

    run: Run
    queue: Queue
    owner: str
    kinds: Sequence[str] | None = None
    place: Place | None = None
    _from_start_at: float = field(default_factory=time.monotonic)
    _refused: list[Any] = field(default_factory=list)

    def within(self, tx: Transaction, at_most: int) -> list[Claim]:
        """Claim in a transaction that does other things as well."""
        return self.queue.claim(tx, self.owner, at_most, **self._due())

    def alone(self, at_most: int) -> list[Claim]:
        """Claim in a transaction of its own; a row that can't be changed is counted once and left aside."""
        return _around(self.run, at_most, self._take, self._first, self._refused)

    def moved(self, claims: Sequence[Claim]) -> None:
        """Go on after the claims; without any, or after a while, from the start."""
        self.place = place_after(claims)
        if self.place is None or time.monotonic() - self._from_start_at >= RESCAN_SECONDS:
            self.place = None
            self._from_start_at = time.monotonic()

    def _take(self, tx: Transaction, at_most: int) -> list[Claim]:
        try:
            return self.within(tx, at_most)
        except DBAPIError:
            if self.queue.table.tenant:
                # Whose turn it is would hide which row it was: without it the oldest comes first.
                self.place = None
            raise

    def _first(self, tx: Transaction) -> Any:
        return self.queue.first_due(tx, **self._due())

    def _due(self) -> dict[str, Any]:
        return {
            "not_after": self.run.due_limit,
            "kinds": self.kinds,
            "place": self.place,
            "without": self._refused,
        }


def take_back_lost(run: Run, queue: Queue) -> None:
    """Take back every lost claim, and count them as `taken_back` and, where they end, `failed`.

    A row that can't be changed is counted and stays as it is; those beside it are taken back.
    """
    refused: list[Any] = []
    while True:
        again, ended = _around(
            run,
            1_000,
            lambda tx, at_most: queue.take_back(tx, at_most, without=refused),
            lambda tx: queue.first_lost(tx, without=refused),
            refused,
        )
        if not again + ended:
            return
        run.count("taken_back", again + ended)
        run.count("failed", ended)


def _around(
    run: Run,
    at_most: int,
    take: Callable[[Transaction, int], Taken],
    first: Callable[[Transaction], Any],
    refused: list[Any],
) -> Taken:
    """Take rows in a transaction; one that the database refuses goes to `refused`, and the others are taken.

    Which one it is shows by taking one by one, until it comes first.
    """
    one_by_one = False
    while True:
        try:
            with run.transaction() as tx:
                return take(tx, 1 if one_by_one else at_most)
        except DBAPIError as error:
            if not is_row_fault(error):
                raise
            if one_by_one:
                refused.append(_first_of(run, first, error))
                run.row_failed(refused[-1], error)
            one_by_one = not one_by_one


def _first_of(run: Run, first: Callable[[Transaction], Any], error: DBAPIError) -> Any:
    with run.transaction() as tx:
        key = first(tx)
    if key is None:
        raise error
    return key
