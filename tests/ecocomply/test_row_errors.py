"""What was wrong with single rows: in the audit log once a job type, row, reason and day."""

from __future__ import annotations

from datetime import date
from uuid import UUID

import pytest

from include.ecocomply.access import as_service
from include.ecocomply.job_records.row_errors import RowError, keep_row_errors
from tests.ecocomply.jobs_world import Records

TODAY, TOMORROW = date(2026, 11, 27), date(2026, 11, 28)


def keep(records: Records, job_type: str, day: date, *errors: RowError) -> int:
    """Write errors in a transaction of their own."""
    with as_service(records.run()).transaction() as tx:
        return keep_row_errors(tx, job_type, day, errors)


def test_once_a_job_row_reason_and_day(records: Records) -> None:
    """2.1 runs every hour and finds the same bad obligation each time."""
    bad = RowError("OBLIGATION", UUID(int=1), records.company, "frequency 'SOMETIMES' is unknown")
    other = RowError("OBLIGATION", UUID(int=2), records.company, bad.reason)
    worse = RowError("OBLIGATION", UUID(int=1), records.company, "it has no base date")
    assert keep(records, "MONITORING_SCHEDULE", TODAY, bad, other, bad) == 2
    assert keep(records, "MONITORING_SCHEDULE", TODAY, bad, other) == 0
    assert keep(records, "MONITORING_SCHEDULE", TODAY, worse) == 1
    assert keep(records, "MONITORING_SCHEDULE", TOMORROW, bad) == 1
    assert keep(records, "SAMPLING_SCHEDULE", TODAY, bad) == 1
    assert len(records.entries("JOB_ROW_ERROR")) == 5


def test_what_stands_in_the_log(records: Records) -> None:
    """The row by its type and id, the company's own to see, and the reason."""
    keep(
        records,
        "RUN_HOUR_MONITORING",
        TODAY,
        RowError("GENERATOR", UUID(int=7), records.company, "no\x00 limit"),
    )
    (entry,) = records.entries("JOB_ROW_ERROR")
    assert (entry.company_id, entry.entity_type, entry.entity_id) == (
        records.company,
        "GENERATOR",
        UUID(int=7),
    )
    assert entry.new_values == {"job_type": "RUN_HOUR_MONITORING", "reason": "no limit", "day": "2026-11-27"}


def test_nothing_to_write(records: Records) -> None:
    """A day without errors costs no statement."""
    assert keep(records, "SAMPLING_SCHEDULE", TODAY) == 0


@pytest.mark.parametrize("company", [None])
def test_a_row_of_no_company(records: Records, company: UUID | None) -> None:
    """It is the service's alone."""
    assert keep(records, "SAMPLING_SCHEDULE", TODAY, RowError("PARAMETER", UUID(int=3), company, "x")) == 1
