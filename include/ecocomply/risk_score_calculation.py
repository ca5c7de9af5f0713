"""How much is wrong at a site, as one number a day from 0 to 100; its managers hear when its band gets worse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import SITE_MANAGERS
from include.isolation import at_once, each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "riskScoreCalculation"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside


def calculate_scores(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Score every site by what is overdue, open, escalated and was missed: a row a site and day, with its factors."""

    def look() -> Sequence[UUID]:
        with run.transaction() as tx:
            return [row.id for row in tx.rows(statement(PACKAGE, "sites_scored"), **_narrowed(run))]

    def score(tx: Transaction, ids: Sequence[UUID] | None) -> None:
        stored = tx.execute(statement(PACKAGE, "score_sites"), ids=ids, as_of=run.as_of, **_which(run))
        run.count("scores_stored", stored)

    at_once(run, look, score)
    with run.transaction() as tx:
        counted = tx.row(statement(PACKAGE, "risk_bands_counted"), **_which(run))
    if counted is not None:
        run.count("processed", counted.sites)
        run.count("sites_processed", counted.sites)
        for band in ("low", "medium", "high", "critical"):
            run.count(band, getattr(counted, band))


def send_alerts(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Tell the managers of each site whose band is worse than by the score before; a first score alerts nobody."""

    def alert(tx: Transaction, ids: Sequence[UUID]) -> None:
        # The world moved: the day may have been scored again since.
        worse = tx.rows(
            statement(PACKAGE, "risk_bands_worsened"), ids=ids, after=None, limit=len(ids), **_which(run)
        )
        run.count("skipped", len(ids) - len(worse))
        run.count("alerts_triggered", len(worse))
        tell(run, tx, [_alert(run, row) for row in worse])

    for rows in pages(run, statement(PACKAGE, "risk_bands_worsened"), ids=None, **_which(run)):
        each_chunk(run, [row.id for row in rows], alert)


def _narrowed(run: Run) -> dict[str, Any]:
    return {name: run.params[name] for name in ("company_id", "site_id")}


def _which(run: Run) -> dict[str, Any]:
    return {"today": run.today} | _narrowed(run)


def _alert(run: Run, row: Row[Any]) -> Notice:
    return Notice(
        kind="risk_band_worsened",
        company_id=row.company_id,
        site_id=row.id,
        entity_id=row.id,
        recipients=SITE_MANAGERS,
        counts_toward=run.today,
        threshold=row.risk_band,
        values={
            "site": row.site_name,
            "band": row.risk_band,
            "previous_band": row.previous_band,
            "score": f"{row.risk_score:.1f}",
            "previous_score": f"{row.previous_score:.1f}",
            "days_in_high": row.consecutive_high_days,
        },
        metadata={
            "risk_score": float(row.risk_score),
            "risk_band": row.risk_band,
            "previous_band": row.previous_band,
            "consecutive_high_days": row.consecutive_high_days,
        },
    )


STEPS = (calculate_scores, send_alerts)
