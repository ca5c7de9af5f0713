"""Work through what is due: claim a chunk, do the work, write what became of it, until nothing is left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import DBAPIError

from include.errors import AlmanacError, Permanent, Transient
from include.isolation import each_chunk
from include.queues.claiming import Claiming
from include.queues.engine import Claim, Failure, Queue, new_owner
from include.queues.heartbeat import beating
from include.run import Run, Transaction, row_error

UNWRITABLE = "what its work brought could not be written"


@dataclass(frozen=True, slots=True)
class Done:
    """A claim whose work is done; `result` is what the system writes beside it."""

    claim: Claim
    result: Any = None


Outcome = Done | Failure

Work = Callable[[Run, Sequence[Claim]], Sequence[Outcome]]
"""Does the work of a chunk, with no transaction open, and returns one outcome a claim."""

Write = Callable[[Transaction, Sequence[Outcome]], None]
"""Writes what a chunk's work has brought, in the transaction that finishes its claims."""


def write_nothing(tx: Transaction, outcomes: Sequence[Outcome]) -> None:
    """Write nothing beside the end of the claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run takes: `chunk` rows a claim, `kinds` of them, until `seconds` have passed (None: no limit)."""

    chunk: int = 100
    kinds: Sequence[str] | None = None
    seconds: float | None = None


def drain(
    run: Run, queue: Queue, work: Work, write: Write = write_nothing, limits: Limits | None = None
) -> int:
    """Claim, work and finish until nothing is due; return how many rows were claimed.

    Each chunk's outcomes are written with `write` and the end of its claims in one transaction, which claims the
    next chunk as well: a commit a chunk. A row whose writing fails stands alone and fails with that reason; one
    that was taken away meanwhile is counted as `stale`, and what was to be written of it is not.
    """
    limits = limits or Limits()
    give_up_at = math.inf if limits.seconds is None else time.monotonic() + limits.seconds
    claiming = Claiming(run, queue, new_owner(run.run_id), limits.kinds)
    claimed = 0

    def claim_next(tx: Transaction) -> list[Claim]:
        return claiming.within(tx, limits.chunk) if time.monotonic() < give_up_at else []

    with beating(run, queue, claiming.owner):
        claims: list[Claim] = []
        while True:
            from_start = claiming.place is None
            in_time = time.monotonic() < give_up_at
            if not claims and in_time:
                claims = claiming.alone(limits.chunk)
            if not claims and (from_start or not in_time):
                return claimed
            claimed += len(claims)
            claiming.moved(claims)
            if claims:
                outcomes = _worked(run, queue, work, claims)
                claims = _finish_and_claim(run, queue, outcomes, write, claim_next)


def _worked(run: Run, queue: Queue, work: Work, claims: Sequence[Claim]) -> Sequence[Outcome]:
    """Do a chunk's work. What keeps all of it from being done is no attempt of any row."""
    try:
        return work(run, claims)
    except Transient:
        with suppress(AlmanacError, DBAPIError), run.transaction() as tx:
            queue.release(tx, claims)
        raise


def finish(run: Run, queue: Queue, outcomes: Sequence[Outcome], write: Write = write_nothing) -> None:
    """Write the outcomes of claims of one owner, and count them as `completed`, `failed`, `retried` and `stale`."""
    by_key: Mapping[Any, Outcome] = {outcome.claim.key: outcome for outcome in outcomes}

    def settle(tx: Transaction, keys: Sequence[Any]) -> None:
        _settle(run, queue, tx, [by_key[key] for key in keys], write)

    for key in each_chunk(run, list(by_key), settle):
        # Counted and logged with its cause where it was found; here it only ends.
        ending = [Failure(by_key[key].claim, UNWRITABLE, permanent=True)]
        try:
            with run.transaction() as tx:
                queue.fail_held(tx, ending)
        except (DBAPIError, Permanent) as error:
            told = "%s: row %s ends without what is kept of ended rows: %s"
            run.log.warning(told, queue.table.name, key, row_error(error))
            with run.transaction() as tx:
                Queue(queue.table).fail_held(tx, ending)


def _finish_and_claim(
    run: Run,
    queue: Queue,
    outcomes: Sequence[Outcome],
    write: Write,
    claim_next: Callable[[Transaction], list[Claim]],
) -> list[Claim]:
    """Finish a chunk and claim the next in one transaction; where that fails, finish row by row and claim nothing."""
    counts = run.counts.copy()
    try:
        with run.transaction() as tx:
            _settle(run, queue, tx, outcomes, write)
            return claim_next(tx)
    except (DBAPIError, Permanent, Transient) as error:
        run.log.debug("%s: a chunk is finished row by row: %s", queue.table.name, type(error).__name__)
        run.counts.clear()
        run.counts.update(counts)
    finish(run, queue, outcomes, write)
    return []


def _settle(run: Run, queue: Queue, tx: Transaction, outcomes: Sequence[Outcome], write: Write) -> None:
    # First the claims, then what stands beside them: a claim that was taken away brings nothing.
    held = queue.complete_held(tx, [one.claim for one in outcomes if isinstance(one, Done)])
    run.count("completed", len(held))
    failed, ended = queue.fail_held(tx, [one for one in outcomes if isinstance(one, Failure)])
    run.count("failed", ended)
    run.count("retried", len(failed) - ended)
    held |= failed
    run.count("stale", len(outcomes) - len(held))
    write(tx, [one for one in outcomes if one.claim.key in held])
