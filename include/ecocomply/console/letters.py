"""Dead letters as people look through them: by their cause, one by one, and decided on, many at a time."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Row

from include.ecocomply.access import as_service
from include.ecocomply.console import PACKAGE, PAGE
from include.ecocomply.console.listing import Listed, Place, companies, instant_of, page_of
from include.ecocomply.job_records import dead_letters
from include.errors import BadInput
from include.isolation import CHUNK, chunks, each_chunk
from include.queues.wording import by_cause
from include.run import Run, Transaction
from include.statements import Statement, statement

State = Literal["open", "retried", "permanent"]
Decision = Literal["retry", "permanent"]

STATES: tuple[State, ...] = ("open", "retried", "permanent")
DECISIONS: tuple[Decision, ...] = ("retry", "permanent")

A_MINUTE = 30
"""How many jobs a minute begin again, unless a person says otherwise."""
MOST_A_MINUTE = 600
MOST_LETTERS = 50_000
"""How many open letters are sorted by their cause: more would take longer than a person waits."""
MOST_CAUSES = 20
MOST_TYPES = 60
MOST_ENTRIES = 50
_LONGEST_WORDS = 200


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """What the letters are narrowed to.

    `words` are part of the error, or a whole id of a letter or a job; `cause` is a cause's id; `company` is part of
    a name, or an id; `ids` are those that a person has ticked, None for all.
    """

    state: State | None = "open"
    job_type: str | None = None
    company: str = ""
    words: str | None = None
    cause: str | None = None
    ids: tuple[uuid.UUID, ...] | None = None


@dataclass(frozen=True, slots=True)
class LetterDetail:
    """One letter, what became of its job's row, and what was done about both, the latest first."""

    row: Row[Any]
    entries: Sequence[Row[Any]]
    moves: Sequence[Row[Any]]


@dataclass(slots=True)
class Turns:
    """When jobs that are tried again have their turns: the first and the last of them."""

    first: datetime | None = None
    last: datetime | None = None
    planned: list[datetime] = field(default_factory=list)


def causes(tx: Transaction, wanted: LetterFilter) -> Sequence[Row[Any]]:
    """Return the most frequent causes of the open letters of a type or a company, those of every other filter too."""
    narrowed = LetterFilter(job_type=wanted.job_type, company=wanted.company)
    return tx.rows(_worded("letter_causes"), **_binds(tx, narrowed), most=MOST_LETTERS, limit=MOST_CAUSES)


def types(tx: Transaction) -> Sequence[str]:
    """Return the types of the jobs that have letters."""
    return [row.job_type for row in tx.rows(statement(PACKAGE, "letter_types"), limit=MOST_TYPES)]


def listed(tx: Transaction, wanted: LetterFilter, after: Place | None = None) -> Listed:
    """Return a page of the letters, the latest first, each with its job's state now."""
    rows = tx.rows(
        _worded("letter_list"),
        **_binds(tx, wanted),
        after_at=instant_of(after),
        after_id=after.id if after else None,
        limit=PAGE + 1,
    )
    return page_of(rows, "created_at", companies(tx, wanted.company).note)


def matching(tx: Transaction, wanted: LetterFilter) -> int:
    """Return how many letters the filter leaves."""
    return int(tx.value(_worded("letter_count"), **_binds(tx, wanted)))


def detail(tx: Transaction, letter_id: uuid.UUID) -> LetterDetail | None:
    """Return one letter, or None if there is none of that id."""
    row = tx.row(statement(PACKAGE, "letter"), id=letter_id)
    if row is None:
        return None
    return LetterDetail(
        row,
        tx.rows(statement(PACKAGE, "letter_entries"), job_id=row.job_id, limit=MOST_ENTRIES),
        tx.rows(statement(PACKAGE, "letter_moves"), job_id=str(row.job_id), limit=MOST_ENTRIES),
    )


def decide(
    tx: Transaction,
    what: Decision,
    letter_ids: Sequence[uuid.UUID],
    actor: str,
    note: str | None,
    a_minute: int | None = None,
) -> tuple[set[uuid.UUID], list[datetime]]:
    """Decide on open letters in a person's name; return those that were decided on, and the turns of their jobs.

    With `a_minute` the jobs of a retry begin one after another, no more than so many a minute, after those that
    wait for their turn already; without, all are due now. Raises BadInput for a number that can't be.
    """
    if what == "permanent":
        return dead_letters.mark_permanent(tx, letter_ids, actor, note), []
    if a_minute is not None:
        if not 1 <= a_minute <= MOST_A_MINUTE:
            raise BadInput(f"a minute: {a_minute} is not between 1 and {MOST_A_MINUTE}")
        tx.value(statement(PACKAGE, "plan_alone"))
    done = dead_letters.retry(tx, letter_ids, actor, note)
    if a_minute is None or not done:
        return done, []
    planned = tx.rows(statement(PACKAGE, "plan_retries"), ids=list(done), seconds=60 / a_minute)
    return done, [row.scheduled_for for row in planned]


def decide_all(
    run: Run,
    what: Decision,
    wanted: LetterFilter,
    actor: str,
    note: str | None,
    *,
    at_most: int,
    a_minute: int | None,
    seconds: float,
) -> Turns:
    """Decide on all open letters that the filter leaves, the oldest first; counts `changed` and `failed`.

    Stops after `at_most` letters, or when the time is up. Returns the turns of the jobs that begin again.
    """
    service, turns = as_service(run), Turns()
    give_up_at = time.monotonic() + seconds

    def changed(tx: Transaction, ids: Sequence[uuid.UUID]) -> None:
        done, planned = decide(tx, what, ids, actor, note, a_minute)
        turns.planned += planned
        run.count("changed", len(done))

    with service.transaction() as tx:
        found = tx.rows(_worded("letter_ids"), **_binds(tx, wanted), at_most=at_most)
    for chunk in chunks([row.id for row in found], CHUNK):
        if time.monotonic() >= give_up_at:
            break
        each_chunk(service, chunk, changed)
    if turns.planned:
        turns.first, turns.last = min(turns.planned), max(turns.planned)
    return turns


def _binds(tx: Transaction, wanted: LetterFilter) -> Mapping[str, Any]:
    if wanted.words and len(wanted.words) > _LONGEST_WORDS:
        raise BadInput(f"words: {len(wanted.words)} characters are too many, {_LONGEST_WORDS} is the most")
    found = companies(tx, wanted.company)
    company_ids = found.ids if found.some_id is None else [found.some_id]
    return {
        "state": wanted.state,
        "job_type": wanted.job_type,
        "company_ids": company_ids,
        "words": wanted.words,
        "cause": wanted.cause,
        "letter_ids": None if wanted.ids is None else list(wanted.ids),
    }


def _worded(name: str) -> Statement:
    return by_cause(PACKAGE, name, "error_message", ("letters_match",))
