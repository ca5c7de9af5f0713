"""The dashboard of the clocks: the materialised view, by company, and of one company by site and module."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from include.ecocomply.console import PACKAGE, PAGE
from include.ecocomply.console.listing import Listed, Place, companies, number_of, page_of
from include.run import Transaction
from include.statements import statement

MOST_PARTS = 200
"""How many sites and modules of one company are shown."""


@dataclass(frozen=True, slots=True)
class CompanyClocks:
    """One company's line and those of its sites and modules; `more` says that there are others."""

    row: Row[Any]
    parts: Sequence[Row[Any]]
    more: bool


def refreshed_at(tx: Transaction) -> datetime | None:
    """Return when the view was last refreshed by its job; None: no such job is on record."""
    at: datetime | None = tx.value(statement(PACKAGE, "clocks_refreshed"))
    return at


def by_company(tx: Transaction, search: str, after: Place | None = None) -> Listed:
    """Return a page of companies, those with the most red clocks first. `search` is an id or part of a name."""
    found = companies(tx, search)
    rows = tx.rows(
        statement(PACKAGE, "clocks_by_company"),
        company_ids=found.ids if found.some_id is None else [found.some_id],
        after_red=number_of(after),
        after_id=after.id if after else None,
        limit=PAGE + 1,
    )
    return page_of(rows, "red", found.note)


def of_company(tx: Transaction, company_id: uuid.UUID) -> CompanyClocks | None:
    """Return one company's clocks, or None if the view has none of it."""
    rows = tx.rows(
        statement(PACKAGE, "clocks_by_company"),
        company_ids=[company_id],
        after_red=None,
        after_id=None,
        limit=1,
    )
    if not rows:
        return None
    parts = tx.rows(statement(PACKAGE, "clocks_of_company"), company_id=company_id, limit=MOST_PARTS + 1)
    return CompanyClocks(rows[0], parts[:MOST_PARTS], len(parts) > MOST_PARTS)
