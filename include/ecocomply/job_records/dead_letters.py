"""Dead letters: what waits for a person's look, what a person decides, and what goes to the audit log in time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply.background_jobs import JOBS
from include.ecocomply.job_records.failures import PACKAGE
from include.errors import BadInput
from include.queues.engine import Queue
from include.run import Transaction
from include.statements import statement

PAGE = 50


def waiting_letters(
    tx: Transaction, *, after: tuple[datetime, UUID] | None = None, at_most: int = PAGE
) -> Sequence[Row[Any]]:
    """Return dead letters that nobody has decided on, the latest first, each with its job's type and payload.

    `after` is the `created_at` and the `id` of the last one of the page before.
    """
    created_at, letter_id = after or (None, None)
    return tx.rows(
        statement(PACKAGE, "waiting_letters"), after_at=created_at, after_id=letter_id, at_most=at_most
    )


def retry(tx: Transaction, letter_ids: Sequence[UUID], actor: str, notes: str | None = None) -> set[UUID]:
    """Let the jobs of open letters be tried again, from their first attempt; return the letters that are resolved.

    A letter whose job is not failed any more is left as it is. `actor` is the Airflow user.
    """
    who = _named(actor)
    letters = {
        row.id: row.job_id for row in tx.rows(statement(PACKAGE, "hold_letters"), ids=list(letter_ids))
    }
    again = Queue(JOBS).retry(tx, list(letters.values()), who)
    ids = [letter for letter, job in letters.items() if job in again]
    return _resolve(tx, ids, "RETRIED", who, notes)


def mark_permanent(
    tx: Transaction, letter_ids: Sequence[UUID], actor: str, notes: str | None = None
) -> set[UUID]:
    """Leave the jobs of open letters failed; return the letters that are resolved."""
    who = _named(actor)
    letters = tx.rows(statement(PACKAGE, "hold_letters"), ids=list(letter_ids))
    return _resolve(tx, [row.id for row in letters], "PERMANENT_FAILURE", who, notes)


def add_note(tx: Transaction, letter_id: UUID, actor: str, note: str) -> bool:
    """Add a line to an open letter's notes, with who wrote it; say whether it was open."""
    if not note.strip():
        raise BadInput("dead letter: a note needs words")
    line = f"{_named(actor)}: {note.strip()}"
    return tx.execute(statement(PACKAGE, "add_letter_note"), id=letter_id, line=line) > 0


def archive(tx: Transaction, before: datetime, at_most: int = 1_000) -> int:
    """Move letters that were resolved before an instant to the audit log; return how many."""
    return len(tx.rows(statement(PACKAGE, "archive_letters"), before=before, at_most=at_most))


def retire_jobs(tx: Transaction, before: datetime, at_most: int = 1_000) -> int:
    """Delete jobs that ended before an instant, with their trail; one with a dead letter stays. Return how many."""
    return len(tx.rows(statement(PACKAGE, "retire_jobs"), before=before, at_most=at_most))


def _resolve(
    tx: Transaction, ids: Sequence[UUID], resolution: str, actor: str, notes: str | None
) -> set[UUID]:
    if not ids:
        return set()
    found = tx.rows(
        statement(PACKAGE, "resolve_letters"), ids=list(ids), resolution=resolution, actor=actor, notes=notes
    )
    return {row.id for row in found}


def _named(actor: str) -> str:
    if not actor.strip():
        raise BadInput("dead letter: it needs the name of who decides")
    return actor.strip()
