"""What may be done with the rows of a queue table, each in the transaction that it is given.

A claim has an owner, an attempt number and a heartbeat. What is said of a claim names all that; said too late,
it changes nothing and raises StaleClaim, so that what stands beside it in the transaction is rolled back too.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Row, text

from include.errors import BadInput, Permanent
from include.queues.table import LOST, QueueTable
from include.queues.wording import worded, worded_enqueue
from include.run import Transaction
from include.statements import Statement

_LONGEST_REASON = 2_000
_ACTOR = text("SELECT set_config('almanac.actor', :actor, true)")


class StaleClaim(Permanent):
    """A claim that was taken back, or finished by another: whoever still works on it is too late."""

    def __init__(self, table: str, keys: Sequence[Any]) -> None:
        super().__init__(f"{table}: no longer the holder of {', '.join(map(str, keys[:5]))}")
        self.keys = tuple(keys)


@dataclass(frozen=True, slots=True)
class Claim:
    """A row that is claimed: `attempt` counts from 1, `row` has the table's columns as they are now."""

    key: Any
    attempt: int
    attempt_limit: int
    owner: str
    row: Row[Any]


@dataclass(frozen=True, slots=True)
class Failure:
    """What became of a claim that failed; `permanent` ends the row whatever attempts it has left."""

    claim: Claim
    reason: str
    permanent: bool = False


@dataclass(slots=True)
class Place:
    """How far a worker has claimed: starting there spares the next claim the dead rows before it.

    Where tenants take turns, it is whose turn was the last.
    """

    rank: int
    due: datetime
    key: Any
    turn: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A row that ends as failed, for whoever buries it."""

    key: Any
    attempt: int
    reason: str


Bury = Callable[[Transaction, Sequence[Ended]], None]
"""Writes what a system keeps of rows that ended as failed, in the transaction that ends them."""


def _bury_nothing(tx: Transaction, ended: Sequence[Ended]) -> None:
    """Keep nothing: the row itself says it all."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A table with the operations on it. `bury` is told of every row that ends as failed."""

    table: QueueTable
    bury: Bury = field(default=_bury_nothing)

    def enqueue(
        self, tx: Transaction, rows: Sequence[Mapping[str, Any]], *, delay: timedelta = timedelta(0)
    ) -> list[Any]:
        """Insert rows and return the keys of those that are new, in the order given.

        A row maps columns to values that JSON can hold; all have the same columns. One that brings no due time
        is due after `delay`, by the database's clock. A row whose dedupe key is known adds nothing: of several
        sessions that enqueue one key at once, one adds the row. An application may as well insert on its own.
        """
        if not rows:
            return []
        columns = tuple(rows[0])
        if odd := next((row for row in rows if row.keys() != rows[0].keys()), None):
            raise BadInput(
                f"{self.table.name}: rows with columns {sorted(columns)} and {sorted(odd)} together"
            )
        found = tx.rows(
            worded_enqueue(self.table, tuple(name for name in columns if name != self.table.due)),
            rows=json.dumps([dict(row) for row in rows], default=_as_json),
            delay=delay.total_seconds(),
        )
        return [row[0] for row in found]

    def claim(
        self,
        tx: Transaction,
        owner: str,
        at_most: int,
        *,
        not_after: datetime | None = None,
        kinds: Sequence[str] | None = None,
        place: Place | None = None,
        without: Sequence[Any] = (),
    ) -> list[Claim]:
        """Claim due rows and count the attempt: by priority, then tenants in turn, then oldest first.

        `not_after` narrows what is due, `kinds` takes rows of these kinds alone, `without` leaves the rows of
        these keys aside, `place` starts past an earlier claim of the same worker: rows that fell due before it
        are then found by a claim without one. A row whose last claim was lost comes alone, since it may have
        killed its worker. Fewer than `at_most` may come though more are due; none means that none was to be had.
        """
        name = "claim_in_turn" if self.table.tenant else "claim"
        named, binds = self._due(name, not_after, kinds, place, without)
        if self.table.tenant:
            binds["after_turn"] = place and place.turn
        found = tx.rows(named, owner=owner, at_most=at_most, **binds)
        # What an UPDATE returns is in no order.
        rows = sorted(found, key=_in_turn if self.table.tenant else _in_order)
        return [Claim(row.claim_key, row.claim_attempt, row.claim_limit, owner, row) for row in rows]

    def first_due(
        self,
        tx: Transaction,
        *,
        not_after: datetime | None = None,
        kinds: Sequence[str] | None = None,
        place: Place | None = None,
        without: Sequence[Any] = (),
    ) -> Any:
        """Return the key of the row that a claim of one would take, or None."""
        named, binds = self._due("first_due", not_after, kinds, place, without)
        return tx.value(named, **binds)

    def complete(self, tx: Transaction, claims: Sequence[Claim]) -> None:
        """Write that claims of one owner are done. Raises StaleClaim if one is out of date."""
        self._all_held(claims, self.complete_held(tx, claims))

    def complete_held(self, tx: Transaction, claims: Sequence[Claim]) -> set[Any]:
        """Write that claims of one owner are done, and return the keys of those that were still held."""
        if not claims:
            return set()
        done = tx.rows(worded(self.table, "complete"), owner=claims[0].owner, **_named(claims))
        return {row[0] for row in done}

    def release(self, tx: Transaction, claims: Sequence[Claim]) -> set[Any]:
        """Give claims of one owner back as if they had not been made; return the keys of those still held."""
        if not claims:
            return set()
        released = tx.rows(worded(self.table, "release"), owner=claims[0].owner, **_named(claims))
        return {row[0] for row in released}

    def fail(self, tx: Transaction, failures: Sequence[Failure]) -> int:
        """Write that claims of one owner failed: due again after their delay, or at an end. Return how many ended.

        Raises StaleClaim if one is out of date.
        """
        held, ended = self.fail_held(tx, failures)
        self._all_held([failure.claim for failure in failures], held)
        return ended

    def fail_held(self, tx: Transaction, failures: Sequence[Failure]) -> tuple[set[Any], int]:
        """Write that claims of one owner failed; return the keys of those still held, and how many ended."""
        if not failures:
            return set(), 0
        claims = [failure.claim for failure in failures]
        ends = [self._ends(failure) for failure in failures]
        reasons = [storable_reason(failure.reason) for failure in failures]
        failed = tx.rows(
            worded(self.table, "fail"),
            owner=claims[0].owner,
            reasons=reasons,
            ends=ends,
            delays=[self.table.delay(claim.attempt) for claim in claims],
            **_named(claims),
        )
        held = {row[0] for row in failed}
        ended = [
            Ended(claim.key, claim.attempt, why)
            for claim, why, end in zip(claims, reasons, ends, strict=True)
            if end and claim.key in held
        ]
        return held, self._bury(tx, ended)

    def take_back(
        self, tx: Transaction, at_most: int = 1_000, *, without: Sequence[Any] = ()
    ) -> tuple[int, int]:
        """Take back claims whose heartbeat is too old, but for the rows of the keys in `without`.

        Returns how many are due again, and how many ended.
        """
        lost = self._lost(tx, at_most, without)
        if not lost:
            return 0, 0
        ends = [row.attempt >= row.attempt_limit for row in lost]
        taken = tx.rows(
            worded(self.table, "fail"),
            owner=None,
            keys=[row.row_key for row in lost],
            attempts=[row.attempt for row in lost],
            reasons=[LOST] * len(lost),
            ends=ends,
            delays=[self.table.lost_delay(row.attempt) for row in lost],
        )
        changed = {row[0] for row in taken}
        ended = [
            Ended(row.row_key, row.attempt, LOST)
            for row, end in zip(lost, ends, strict=True)
            if end and row.row_key in changed
        ]
        self._bury(tx, ended)
        return len(changed) - len(ended), len(ended)

    def first_lost(self, tx: Transaction, *, without: Sequence[Any] = ()) -> Any:
        """Return the key of the row that would be taken back first, or None."""
        lost = self._lost(tx, 1, without)
        return lost[0].row_key if lost else None

    def heartbeat(self, tx: Transaction, owner: str) -> set[Any]:
        """Say that an owner is alive, and return the keys of the claims that it still holds."""
        return {row[0] for row in tx.rows(worded(self.table, "heartbeat"), owner=owner)}

    def cancel(self, tx: Transaction, keys: Sequence[Any], actor: str) -> set[Any]:
        """Call off due rows for a person, and return the keys of those that were due."""
        return self._by_person(tx, "cancel", keys, actor)

    def retry(self, tx: Transaction, keys: Sequence[Any], actor: str) -> set[Any]:
        """Make failed rows due now, from their first attempt, and return the keys of those that had failed."""
        return self._by_person(tx, "retry", keys, actor)

    def requeue(self, tx: Transaction, keys: Sequence[Any], actor: str) -> set[Any]:
        """Take claimed rows from their workers for a person, due now; return the keys of those that were claimed."""
        return self._by_person(tx, "requeue", keys, actor)

    def statistics(self, tx: Transaction) -> Sequence[Row[Any]]:
        """Return `status`, `rows`, `due_now` and `oldest_due` per status."""
        return tx.rows(worded(self.table, "statistics"))

    def retire(self, tx: Transaction, before: datetime, at_most: int = 1_000) -> int:
        """Delete rows that ended before an instant, with their audit trail; return how many."""
        return len(tx.rows(worded(self.table, "retire"), before=before, at_most=at_most))

    def _due(
        self,
        name: str,
        not_after: datetime | None,
        kinds: Sequence[str] | None,
        place: Place | None,
        without: Sequence[Any],
    ) -> tuple[Statement, dict[str, Any]]:
        binds: dict[str, Any] = {"not_after": not_after}
        if kinds is not None:
            binds["kinds"] = list(kinds)
        if without:
            binds["without"] = list(without)
        beyond = place is not None and self.table.tenant is None
        if place is not None and beyond:
            binds |= {"after_due": place.due, "after_key": place.key}
            binds |= {"after_rank": place.rank} if self.table.priority else {}
        named = worded(self.table, name, beyond=beyond, kinds=kinds is not None, without=bool(without))
        return named, binds

    def _lost(self, tx: Transaction, at_most: int, without: Sequence[Any]) -> Sequence[Row[Any]]:
        return tx.rows(
            worded(self.table, "lost", without=bool(without)),
            lost_after=self.table.lost_after.total_seconds(),
            attempt_limit=self.table.attempt_limit,
            at_most=at_most,
            **({"without": list(without)} if without else {}),
        )

    def _ends(self, failure: Failure) -> bool:
        claim = failure.claim
        return failure.permanent or not self.table.delays or claim.attempt >= claim.attempt_limit

    def _bury(self, tx: Transaction, ended: Sequence[Ended]) -> int:
        if ended:
            self.bury(tx, ended)
        return len(ended)

    def _all_held(self, claims: Sequence[Claim], held: set[Any]) -> None:
        if lost := [claim.key for claim in claims if claim.key not in held]:
            raise StaleClaim(self.table.name, lost)

    def _by_person(self, tx: Transaction, what: str, keys: Sequence[Any], actor: str) -> set[Any]:
        if what not in self.table.people_may:
            raise BadInput(f"{self.table.name}: a person can't {what} its rows")
        if not actor.strip():
            raise BadInput(f"{self.table.name}: {what} needs the name of who asks for it")
        tx.execute(_ACTOR, actor=actor)
        changed = {row[0] for row in tx.rows(worded(self.table, what), keys=list(keys))}
        # What else the transaction does is not that person's.
        tx.execute(_ACTOR, actor="")
        return changed


def new_owner(run_id: str) -> str:
    """Return a name for a worker that no other has had, so that an attempt that is counted anew is another's."""
    return f"{run_id} {uuid.uuid4()}"


def place_after(claims: Sequence[Claim]) -> Place | None:
    """Return the place of the last claim, or None without any."""
    if not claims:
        return None
    last = claims[-1].row
    return Place(last.claim_rank, last.claim_due, last.claim_key, getattr(last, "claim_turn", None))


def storable_reason(reason: str) -> str:
    """Return a reason as a database can hold it, cut to what a person reads."""
    plain = reason.replace("\x00", "").encode("utf-8", "replace").decode()
    return plain if len(plain) <= _LONGEST_REASON else plain[: _LONGEST_REASON - 1] + "…"


def _in_order(row: Row[Any]) -> tuple[Any, ...]:
    return row.claim_rank, row.claim_due, row.claim_key


def _in_turn(row: Row[Any]) -> int:
    return int(row.claim_place)


def _as_json(value: Any) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    raise BadInput(f"a {type(value).__name__} is nothing that a queue's row can hold")


def _named(claims: Sequence[Claim]) -> Mapping[str, list[Any]]:
    if len({claim.owner for claim in claims}) > 1:
        raise BadInput("claims of several owners are finished one owner at a time")
    return {"keys": [claim.key for claim in claims], "attempts": [claim.attempt for claim in claims]}
