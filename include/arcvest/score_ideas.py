"""Every new idea gets a score from 0 to 100 by four criteria; a low one is rejected."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from include.arcvest.sources import Sources
from include.errors import BadInput
from include.isolation import CHUNK, each_chunk
from include.odd_dates import OddDate, reckonable
from include.queues.engine import Claim
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.arcvest"
JOB_TYPE = "score_ideas"
SECONDS = 60
"""The most that one job may take."""

TOPICS = "arcvest_topics"
LEAST_SCORE = "arcvest_least_score"
SETTINGS: dict[str, str | None] = {
    TOPICS: (
        "retirement, 401k, ira, roth, social security, medicare, tax, estate planning, inheritance, trust, "
        "inflation, interest rates, fed, bonds, stocks, portfolio, diversification, annuity, pension, "
        "financial planning, wealth, savings, recession, market"
    ),
    LEAST_SCORE: "20",
}

WEIGHTS = {"relevance": 40, "timeliness": 25, "authority": 20, "substance": 15}
"""What each criterion, a number from 0 to 1, counts; together a hundred."""

AUTHORITY = {"bloomberg": 1.0, "news": 0.7, "email": 0.5}
OTHER_AUTHORITY = 0.4

FRESH = timedelta(hours=6)
STALE = timedelta(days=7)
"""Up to FRESH an idea is fully timely, from STALE on not at all; in between it falls evenly."""

ENOUGH_TOPICS = 6
"""Points at which an idea is fully relevant: 2 for each topic in its title, 1 for one in its summary alone."""

ENOUGH_WORDS = 60
"""Words of a summary at which an idea has full substance."""

_WORDS = re.compile(r"[^\W_]+", re.UNICODE)


class Idea(NamedTuple):
    """What a score depends on; `at` is when it was published, else found."""

    source: str
    title: str
    summary: str
    at: datetime


def handle(run: Run, claim: Claim, sources: Sources) -> None:  # noqa: ARG001 - a handler's form
    """Score all ideas that are new, as of the job's making; a repeat gives the same scores."""
    topics, least = read_topics(run.settings[TOPICS]), _least(run.settings[LEAST_SCORE])
    as_of = reckonable(claim.row.created_at, "created_at")
    after = None
    while True:
        with run.transaction() as tx:
            rows = tx.rows(statement(PACKAGE, "new_ideas"), after=after, limit=CHUNK)
        if not rows:
            return
        scored = {}
        for row in rows:
            try:
                scored[row.id] = parts_of(_read(row), topics, as_of)
            except BadInput as error:
                run.row_failed(row.id, error)
        each_chunk(run, list(scored), partial(_save, run, scored, least))
        after = rows[-1].id


def parts_of(idea: Idea, topics: Sequence[str], as_of: datetime) -> dict[str, float]:
    """Return each criterion's part, from 0 to 1, to three places."""
    title, summary = _spread(idea.title), _spread(idea.summary)
    points = sum(2 if f" {t} " in title else 1 if f" {t} " in summary else 0 for t in topics)
    age = (as_of - idea.at) - FRESH
    parts = {
        "relevance": min(1.0, points / ENOUGH_TOPICS),
        "timeliness": 1.0 - min(1.0, max(0.0, age / (STALE - FRESH))),
        "authority": AUTHORITY.get(idea.source, OTHER_AUTHORITY),
        "substance": min(1.0, len(summary.split()) / ENOUGH_WORDS),
    }
    return {name: round(part, 3) for name, part in parts.items()}


def score_of(parts: dict[str, float]) -> float:
    """Return the score from 0 to 100, to two places."""
    return round(sum(WEIGHTS[name] * part for name, part in parts.items()), 2)


def read_topics(given: str | None) -> list[str]:
    """Read the variable of topics: words or phrases parted by commas."""
    found = [_spread(topic).strip() for topic in (given or "").split(",")]
    return list(dict.fromkeys(topic for topic in found if topic))


def _spread(text: str) -> str:
    return f" {' '.join(_WORDS.findall(text.casefold()))} "


def _read(row: Any) -> Idea:
    published = row.published_at
    # A feed's date that nobody can reckon with says as little as none.
    at = (
        reckonable(row.created_at, "created_at")
        if published is None or isinstance(published, OddDate)
        else published
    )
    return Idea(row.source, row.title or "", row.summary or "", at)


def _least(given: str | None) -> float:
    try:
        least = float(given or "")
    except ValueError:
        least = -1.0
    if not 0 <= least <= 100:  # noqa: PLR2004 - of a hundred
        raise BadInput(f"variable {LEAST_SCORE}: {given!r} is not a number from 0 to 100")
    return least


def _save(
    run: Run,
    scored: Mapping[uuid.UUID, dict[str, float]],
    least: float,
    tx: Transaction,
    chunk: Sequence[uuid.UUID],
) -> None:
    saved = tx.rows(
        statement(PACKAGE, "save_scores"),
        ids=chunk,
        scores=[score_of(scored[idea]) for idea in chunk],
        parts=[json.dumps(scored[idea]) for idea in chunk],
        least=least,
    )
    run.count("scored", len(saved))
    run.count("rejected", sum(row.status == "rejected" for row in saved))
    # The world moved: an application scored or took it first.
    run.count("skipped", len(chunk) - len(saved))
