"""The news feeds are scanned for ideas."""

from __future__ import annotations

from include.arcvest import feed_scan
from include.arcvest.sources import Sources
from include.queues.engine import Claim
from include.run import Run

JOB_TYPE = "news_scan"
SECONDS = 60
"""The most that one job may take."""

SOURCE = "news"
FEEDS = "arcvest_news_feeds"
"""The variable that lists the feeds."""

SETTINGS: dict[str, str | None] = {FEEDS: None}


def handle(run: Run, claim: Claim, sources: Sources) -> None:
    """Add what the feeds bring as ideas."""
    feed_scan.scan(run, sources.feeds, SOURCE, FEEDS, claim.row.created_at)
