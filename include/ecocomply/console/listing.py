"""Lists in pages: where one ends, how a form's words find people and companies, and which of them are looked at."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from include.ecocomply.console import PACKAGE, PAGE
from include.errors import BadInput
from include.odd_dates import OddDate
from include.run import Transaction
from include.statements import statement

MOST_FOUND = 500
"""How many people or companies a search looks at; more than that is too vague to be of use."""

_LONGEST_SEARCH = 200


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ends: what the list is sorted by there, as text, and the row's id."""

    value: str
    id: uuid.UUID


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of a list; `next` is None on the last one, `note` says what a reader should know of it."""

    rows: Sequence[Any]
    next: Place | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What a search leaves: an id that something has, or the ids that the words are found in; None: no search."""

    some_id: uuid.UUID | None = None
    ids: list[uuid.UUID] | None = None
    note: str | None = None


def page_of(rows: Sequence[Row[Any]], column: str, note: str | None = None) -> Listed:
    """Return a page of rows that were read with one more than fits, sorted by a column and the id."""
    if len(rows) <= PAGE:
        return Listed(rows, None, note)
    last = rows[PAGE - 1]
    value = getattr(last, column)
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return Listed(rows[:PAGE], Place(text, last.id), note)


def instant_of(place: Place | None) -> datetime | OddDate | None:
    """Return the instant at which a page ended. Raises BadInput for a place that no list has."""
    if place is None:
        return None
    if odd := OddDate.read(place.value):
        return odd
    try:
        value = datetime.fromisoformat(place.value)
    except ValueError:
        raise _no_place(place) from None
    if value.tzinfo is None:
        raise _no_place(place)
    return value


def number_of(place: Place | None) -> float | None:
    """Return the number at which a page ended. Raises BadInput for a place that no list has."""
    if place is None:
        return None
    try:
        value = float(place.value)
    except ValueError:
        raise _no_place(place) from None
    # What is no number compares with nothing.
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN alone differs from itself
        raise _no_place(place)
    return value


def people(tx: Transaction, search: str) -> Found:
    """Find people by part of an address or a name, or take an id as it is."""
    return _found(tx, search, "people_found", "people", "by address")


def companies(tx: Transaction, search: str) -> Found:
    """Find companies by part of their name, or take an id as it is."""
    return _found(tx, search, "companies_found", "companies", "by name")


def _found(tx: Transaction, search: str, name: str, what: str, order: str) -> Found:
    words = search.strip()
    if not words:
        return Found()
    if len(words) > _LONGEST_SEARCH:
        raise BadInput(f"search: {len(words)} characters are too many, {_LONGEST_SEARCH} is the most")
    try:
        return Found(some_id=uuid.UUID(words))
    except ValueError:
        pass
    rows = tx.rows(statement(PACKAGE, name), words=words.lower(), limit=MOST_FOUND + 1)
    note = None
    if len(rows) > MOST_FOUND:
        note = f"More than {MOST_FOUND} {what} match; these are the first {MOST_FOUND} {order}. Search for more of it."
    return Found(ids=[row.id for row in rows[:MOST_FOUND]], note=note)


def _no_place(place: Place) -> BadInput:
    return BadInput(f"page: {place.value!r} is no place in this list")
