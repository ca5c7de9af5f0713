"""Risk: each site's latest score, what it is made of, and how it went."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import Row

from include.ecocomply.console import PACKAGE, PAGE
from include.ecocomply.console.listing import Listed, Place, companies, number_of, page_of
from include.run import Transaction
from include.statements import statement

DAYS: Mapping[str, int] = {"30": 30, "90": 90, "365": 365}
"""How much of the history is shown, by what its address has."""

PARTS = (
    ("Overdue obligations", "overdue_score", 40),
    ("Gaps in the evidence", "evidence_gap_score", 25),
    ("Escalations", "escalation_score", 20),
    ("The last 90 days", "historical_score", 15),
)
"""What a score is made of: for people, the column, and the weight in percent."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a score: what it is by itself, its weight in percent, and what it adds to the whole."""

    name: str
    score: Decimal
    weight: int

    @property
    def adds(self) -> Decimal:
        return self.score * self.weight / 100


@dataclass(frozen=True, slots=True)
class SiteRisk:
    """A site's latest score with its parts, and the scores of the days before, the earliest first."""

    row: Row[Any]
    parts: Sequence[Part]
    history: Sequence[Row[Any]]


def latest(tx: Transaction, company: str, band: str | None, after: Place | None = None) -> Listed:
    """Return a page of sites by their latest scores, the highest first. `company` is an id or part of a name."""
    found = companies(tx, company)
    rows = tx.rows(
        statement(PACKAGE, "risk_latest"),
        company_ids=found.ids if found.some_id is None else [found.some_id],
        band=band,
        after_score=number_of(after),
        after_id=after.id if after else None,
        limit=PAGE + 1,
    )
    return page_of(rows, "risk_score", found.note)


def of_site(tx: Transaction, site_id: uuid.UUID, days: int) -> SiteRisk | None:
    """Return a site's latest score and the days before it, `days` in all; None for a site without a score."""
    row = tx.row(statement(PACKAGE, "risk_of_site"), site_id=site_id)
    if row is None:
        return None
    since: date = row.score_date - timedelta(days=days - 1)
    history = tx.rows(
        statement(PACKAGE, "risk_history"), site_id=site_id, since=since, until=row.score_date, limit=days
    )
    return SiteRisk(
        row, [Part(name, getattr(row, column), weight) for name, column, weight in PARTS], history[::-1]
    )
