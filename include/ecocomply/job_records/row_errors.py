"""What was wrong with single rows of a job, in the audit log: once a job type, row, reason and day."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from include.ecocomply.job_records.failures import PACKAGE
from include.queues.engine import storable_reason
from include.run import Transaction
from include.statements import statement


@dataclass(frozen=True, slots=True)
class RowError:
    """A row that a job could not work on. `entity_type` is in upper case, as in the audit log."""

    entity_type: str
    entity_id: UUID
    company_id: UUID | None
    reason: str


def keep_row_errors(tx: Transaction, job_type: str, day: date, errors: Sequence[RowError]) -> int:
    """Write row errors to the audit log, in the service's transaction; return how many are new that day.

    The hourly run of a job finds the same row again and again: it is told of once a day, and each reason by itself.
    """
    if not errors:
        return 0
    rows = [
        {
            "entity_type": one.entity_type,
            "entity_id": str(one.entity_id),
            "company_id": None if one.company_id is None else str(one.company_id),
            "reason": storable_reason(one.reason),
        }
        for one in errors
    ]
    return tx.execute(
        statement(PACKAGE, "keep_row_errors"), errors=json.dumps(rows), job_type=job_type, day=day
    )
