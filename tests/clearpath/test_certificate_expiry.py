"""A certificate is good to the end of its last day; then it expires, and its PDF is made anew only on demand."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from include.clearpath import certificate_expiry
from include.clearpath.tables import CERTIFICATES, TEST_SESSIONS
from include.run import EngineDatabase, Run
from tests.clearpath.rows import AS_OF, Rows, noon

NOTHING = certificate_expiry.Outside()


def expire(rows: Rows, as_of: datetime = AS_OF) -> Run:
    """Run the job once."""
    return rows.perform(certificate_expiry, NOTHING, as_of)


@pytest.mark.parametrize(
    ("valid_until", "today", "status"),
    [
        ("2027-03-10", "2027-03-09", "valid"),
        # One that ends today is good until the night is over.
        ("2027-03-10", "2027-03-10", "valid"),
        ("2027-03-10", "2027-03-11", "expired"),
        ("2027-02-28", "2027-02-28", "valid"),
        ("2027-02-28", "2027-03-01", "expired"),
        ("2028-02-29", "2028-02-29", "valid"),
        ("2028-02-29", "2028-03-01", "expired"),
        # 2028 has a 29 February, so the 28th is not the month's last day.
        ("2028-02-28", "2028-02-29", "expired"),
        ("2026-12-31", "2026-12-31", "valid"),
        ("2026-12-31", "2027-01-01", "expired"),
        ("2019-01-01", "2027-03-10", "expired"),
        ("2029-03-10", "2027-03-10", "valid"),
    ],
)
def test_the_day(rows: Rows, valid_until: str, today: str, status: str) -> None:
    """`valid_until < today`: strictly."""
    certificate = rows.certificate(valid_until=date.fromisoformat(valid_until))
    expire(rows, noon(today))
    assert rows.status(CERTIFICATES, certificate) == status


@pytest.mark.parametrize("zone", ["UTC", "Europe/Madrid"])
@pytest.mark.parametrize(
    ("as_of", "status"), [("2027-03-11T05:59:59Z", "valid"), ("2027-03-11T06:00:00Z", "expired")]
)
def test_the_local_day_decides(
    database_of: Callable[..., EngineDatabase], zone: str, as_of: str, status: str
) -> None:
    """T4: the last day is over at midnight in Edmonton, whatever zone the database's session is in."""
    rows = Rows(database_of("clearpath", zone))
    certificate = rows.certificate(valid_until=date(2027, 3, 10))
    expire(rows, datetime.fromisoformat(as_of))
    assert rows.status(CERTIFICATES, certificate) == status


def test_a_certificate_without_a_last_day_stays(rows: Rows) -> None:
    """Nobody said until when it holds, so nothing says that it is over."""
    certificate = rows.certificate(valid_until=None)
    expire(rows)
    assert rows.status(CERTIFICATES, certificate) == "valid"


def test_what_expiring_does(rows: Rows) -> None:
    """Status, stamp of the real time and the flag; the file stays, and nothing is rendered in the night."""
    certificate = rows.certificate(
        valid_until=date(2020, 1, 1), pdf_path="certificates/1.pdf", current_pdf_path="certificates/1.pdf"
    )
    before = rows.one(CERTIFICATES, certificate)
    run = expire(rows, noon("2021-01-01"))
    after = rows.one(CERTIFICATES, certificate)
    assert (after.status, after.pdf_needs_regeneration) == ("expired", True)
    assert abs(after.expired_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert (after.pdf_path, after.current_pdf_path) == (before.pdf_path, before.current_pdf_path)
    assert after.rendered_at is None
    assert run.counts["expired"] == 1


def test_one_that_has_expired_is_left_alone(rows: Rows) -> None:
    """The status guards: an expired certificate, flag or not, is not worked on again."""
    long_ago = datetime(2025, 1, 1, tzinfo=UTC)
    rows.certificate(valid_until=date(2024, 12, 31), status="expired", expired_at=long_ago)
    before = rows.all(CERTIFICATES)
    run = expire(rows)
    assert (run.counts["processed"], rows.all(CERTIFICATES)) == (0, before)


def test_the_same_night_again(rows: Rows) -> None:
    """Twice is as once."""
    rows.certificate(valid_until=date(2027, 3, 9))
    expire(rows)
    once = rows.all(CERTIFICATES)
    assert expire(rows).counts["processed"] == 0
    assert rows.all(CERTIFICATES) == once


def test_a_missed_night_is_made_up(rows: Rows) -> None:
    """T6: what ended while the scheduler was down expires in the next run."""
    certificate = rows.certificate(valid_until=date(2027, 2, 1))
    expire(rows)
    assert rows.status(CERTIFICATES, certificate) == "expired"


@pytest.mark.parametrize(
    "change", [{"valid_until": date(2029, 1, 1)}, {"status": "expired", "expired_at": AS_OF}], ids=str
)
def test_the_world_moves(rows: Rows, change: dict[str, Any]) -> None:
    """A certificate that was renewed, or expired by another, between the look and the change is skipped."""
    certificate = rows.certificate(valid_until=date(2027, 3, 9))
    with rows.meanwhile(
        "a row is a valid certificate", lambda: rows.change(CERTIFICATES, certificate, **change)
    ):
        run = expire(rows)
    assert (run.counts["expired"], run.counts["skipped"]) == (0, 1)
    after = rows.one(CERTIFICATES, certificate)
    assert (after.pdf_needs_regeneration, after.expired_at) == (False, change.get("expired_at"))


def test_one_bad_certificate_stops_no_other(rows: Rows) -> None:
    """A row that the database refuses is counted as failed; the batch goes on."""
    certificates = [rows.certificate(valid_until=date(2027, 3, 9)) for _ in range(5)]
    rows.refuse(CERTIFICATES, certificates[2])
    run = expire(rows)
    assert (run.counts["expired"], run.counts["failed"]) == (4, 1)
    assert [rows.status(CERTIFICATES, one) for one in certificates].count("valid") == 1


def test_nothing_due(rows: Rows) -> None:
    """R1: processed 0 is a success, and the run is noted."""
    rows.certificate()
    run = expire(rows)
    assert (run.state, run.counts["processed"]) == ("success", 0)
    state = rows.state("certificateExpiry")
    assert state is not None
    assert state.last_run_at == AS_OF


def test_more_than_one_statement_changes(rows: Rows) -> None:
    """A batch size is a chunk, not a cap."""
    user = rows.user()
    sessions = [uuid.uuid4() for _ in range(1_500)]
    rows.insert_many(TEST_SESSIONS, [{"id": one, "user_id": user, "status": "complete"} for one in sessions])
    ended = {"valid_until": date(2027, 3, 9)}
    rows.insert_many(CERTIFICATES, [{"test_session_id": one, **ended} for one in sessions])
    assert expire(rows).counts["expired"] == 1_500
    with rows.database.transaction() as tx:
        valid = select(func.count()).select_from(CERTIFICATES).where(CERTIFICATES.c.status == "valid")
        assert tx.value(valid) == 0
