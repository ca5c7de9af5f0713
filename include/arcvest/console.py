"""The plan's two monitoring queries, as the console shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from include.run import Transaction
from include.statements import statement

PACKAGE = "include.arcvest"
MOST_FAILED = 200
"""Failed jobs that a page shows, the latest; the queue's own page has all."""


def queue_status(tx: Transaction) -> Sequence[Row[Any]]:
    """Return per type and status of jobs made in the last 24 hours: `jobs` and `avg_attempts`."""
    return tx.rows(statement(PACKAGE, "console_queue_status"))


def failed_jobs(tx: Transaction) -> Sequence[Row[Any]]:
    """Return jobs that failed for good in the last 24 hours, the latest first."""
    return tx.rows(statement(PACKAGE, "console_failed_jobs"), limit=MOST_FAILED)
