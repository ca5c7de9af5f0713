"""How jobs stand now, in the words that the database notifies of every change."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from include.ecocomply.job_records.failures import PACKAGE
from include.run import Transaction
from include.statements import statement


def job_statuses(tx: Transaction, job_ids: Collection[UUID]) -> Sequence[str]:
    """Return a JSON text for each of the jobs that there is: `job_id`, `status`, `progress`, `updated_at`."""
    return [row.said for row in tx.rows(statement(PACKAGE, "job_statuses"), ids=list(job_ids))]
