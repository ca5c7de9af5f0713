"""What the engine must know of a table: its names, its status words, and its rules for trying again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from include.errors import BadInput

LOST = "the worker has not been heard of"
"""The error of a row whose claim was taken back, as long as no later attempt says more of it."""

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")


def doubling(first: int, most: int, attempts: int) -> tuple[int, ...]:
    """Return the delays before attempt 2, 3, …, `attempts`, in seconds: each twice the last, at most `most`."""
    return tuple(min(most, first * 2**n) for n in range(attempts - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A table's words for the engine's ideas. Without `cancelled` no row can be called off."""

    due: str
    claimed: str
    done: str
    failed: str
    cancelled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTable:
    """One queue table. Names are columns unless said otherwise; what is None the table does not have.

    `due` is when a row may start; where that instant must be kept, because something else is known by it, a
    later try waits for `again` instead. Higher `priority` goes first; within it `tenant`s take turns. Rows that
    share `stage` run by priority, the next only once none of a higher one is due or claimed. `kind` tells
    rows apart for workers that take only some.

    `delays` are the seconds before each further attempt after a transient failure; past its end the last one
    counts. No delays: a failure is final. `attempt_limit` is how often a row may be claimed; the row's own
    `max_attempts` wins. `lost_after` is the age of a heartbeat at which its claim is given up for lost; a lost
    claim is due again after `lost_delays` (default: `delays`).

    `moves` are the changes of status that the specification's own code makes beyond the engine's; `people_may`
    names what a person may do: "cancel", "retry" (a failed row from its first attempt), "requeue" (a claimed
    row, now). `channel` is what the database notifies when rows fall due.
    """

    name: str
    words: Words
    due: str
    error: str
    channel: str
    key: str = "id"
    key_type: Literal["uuid", "text", "bigint"] = "uuid"
    status: str = "status"
    attempts: str = "attempts"
    max_attempts: str | None = None
    again: str | None = None
    priority: str | None = None
    tenant: str | None = None
    stage: str | None = None
    kind: str | None = None
    started: str | None = None
    finished: str | None = None
    updated: str | None = None
    dedupe: str | None = None
    delays: tuple[int, ...] = ()
    attempt_limit: int = 1
    lost_after: timedelta = timedelta(minutes=2)
    lost_delays: tuple[int, ...] | None = None
    moves: frozenset[tuple[str, str]] = frozenset()
    people_may: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        names = [self.name, self.channel, *self.columns()]
        if bad := [name for name in names if not PLAIN_NAME.fullmatch(name)]:
            raise BadInput(f"queue table: {bad[0]!r} is not a plain name")
        words = [word for word in self.all_words() if not _WORD.fullmatch(word)]
        if words:
            raise BadInput(f"queue table {self.name}: {words[0]!r} is not a plain status word")
        if self.attempt_limit < 1 or any(
            seconds < 0 for seconds in (*self.delays, *(self.lost_delays or ()))
        ):
            raise BadInput(f"queue table {self.name}: attempts below 1, or a delay below 0")
        if unknown := self.people_may - {"cancel", "retry", "requeue"}:
            raise BadInput(f"queue table {self.name}: a person can't {min(unknown)!r}")
        if "cancel" in self.people_may and self.words.cancelled is None:
            raise BadInput(f"queue table {self.name}: no status word for a cancelled row")

    def columns(self) -> list[str]:
        """Return the columns that the description names, each once."""
        named = (
            self.key, self.status, self.due, self.again, self.attempts, self.max_attempts, self.error,
            self.priority, self.tenant, self.stage, self.kind, self.started, self.finished, self.updated,
            self.dedupe,
        )  # fmt: skip
        return list(dict.fromkeys(name for name in named if name is not None))

    def all_words(self) -> list[str]:
        """Return every status word that the description knows."""
        own = (self.words.due, self.words.claimed, self.words.done, self.words.failed, self.words.cancelled)
        return list(dict.fromkeys([*(w for w in own if w), *(w for move in self.moves for w in move)]))

    def allowed_moves(self) -> frozenset[tuple[str, str]]:
        """Return every change of status that the database is to allow."""
        words = self.words
        engine = {
            (words.due, words.claimed),
            (words.claimed, words.done),
            (words.claimed, words.failed),
            (words.claimed, words.due),
        }
        by_people = {
            "cancel": {(words.due, words.cancelled or words.due)},
            "retry": {(words.failed, words.due)},
            "requeue": {(words.claimed, words.due)},
        }
        allowed = engine | self.moves
        for what in self.people_may:
            allowed |= by_people[what]
        return frozenset(move for move in allowed if move[0] != move[1])

    def delay(self, attempt: int) -> int:
        """Return how many seconds a row waits after its failed attempt of that number, from 1."""
        return _of(self.delays, attempt)

    def lost_delay(self, attempt: int) -> int:
        """Return how many seconds a row waits after its claim of that number was lost."""
        return _of(self.delays if self.lost_delays is None else self.lost_delays, attempt)


def _of(delays: tuple[int, ...], attempt: int) -> int:
    # A claim that was made by hand may have counted nothing.
    return delays[min(max(attempt, 1), len(delays)) - 1] if delays else 0
