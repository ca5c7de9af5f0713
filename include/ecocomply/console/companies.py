"""One company at a glance: its sites, what is open and late, and what the jobs did for it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from include.ecocomply.console import PACKAGE, PAGE
from include.ecocomply.console.listing import Listed, Place, companies, page_of
from include.ecocomply.console.notifications import ListedNotification, explained
from include.run import Transaction
from include.statements import statement

MOST = 20
"""How many rows each list on a company's page has."""

PARTS = ("sites", "deadlines", "obligations", "clocks", "gaps", "escalations", "jobs", "entries")
"""The lists, each made by the statement `company_<part>`."""


@dataclass(frozen=True, slots=True)
class Part:
    """One of the lists; `more` says that it goes on."""

    rows: Sequence[Any]
    more: bool


@dataclass(frozen=True, slots=True)
class Company:
    """One company with its lists by name, `notifications` among them."""

    row: Row[Any]
    parts: Mapping[str, Part]


def listed(tx: Transaction, search: str, after: Place | None = None) -> Listed:
    """Return a page of companies by name. `search` is an id or part of a name."""
    found = companies(tx, search)
    rows = tx.rows(
        statement(PACKAGE, "companies"),
        company_ids=found.ids if found.some_id is None else [found.some_id],
        after_name=after.value if after else None,
        after_id=after.id if after else None,
        limit=PAGE + 1,
    )
    return page_of(rows, "name", found.note)


def detail(tx: Transaction, company_id: uuid.UUID, now: datetime) -> Company | None:
    """Return one company, or None if there is none of that id. `now` is aware."""
    row = tx.row(statement(PACKAGE, "company"), company_id=company_id)
    if row is None:
        return None
    binds = {"company_id": company_id, "limit": MOST + 1}
    parts = {name: _part(tx.rows(statement(PACKAGE, f"company_{name}"), **binds)) for name in PARTS}
    ids = tx.rows(statement(PACKAGE, "company_notifications"), **binds)
    told: Sequence[ListedNotification] = explained(tx, [one.id for one in ids[:MOST]], now)
    return Company(row, parts | {"notifications": Part(told, len(ids) > MOST)})


def _part(rows: Sequence[Row[Any]]) -> Part:
    return Part(rows[:MOST], len(rows) > MOST)
