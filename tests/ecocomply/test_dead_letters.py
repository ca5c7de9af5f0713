"""Dead letters: what a person sees and decides, and who decided."""

from __future__ import annotations

import pytest

from include.ecocomply.access import as_service
from include.ecocomply.job_records import dead_letters
from include.errors import BadInput
from tests.ecocomply.jobs_world import Records, dead


def test_what_waits_for_a_person(records: Records) -> None:
    """7.2's query, latest first, page by page; what is resolved is not among it."""
    letters = [dead(records, f"run-{n}", company_id=str(records.company)) for n in range(5)]
    with as_service(records.run()).transaction() as tx:
        dead_letters.mark_permanent(tx, [letters[1]], "ana")
        first = dead_letters.waiting_letters(tx, at_most=3)
        rest = dead_letters.waiting_letters(tx, after=(first[-1].created_at, first[-1].id), at_most=3)
    assert [row.id for row in (*first, *rest)] == [letters[n] for n in (4, 3, 2, 0)]
    assert (first[0].job_type, first[0].company_name) == ("RISK_SCORE_CALCULATION", "Acme")
    assert first[0].payload == {"company_id": str(records.company)}


def test_retry_begins_anew(records: Records) -> None:
    """FAILED to PENDING, attempts from the first; who asked is an Airflow user, not one of the application's."""
    letter = dead(records)
    with as_service(records.run()).transaction() as tx:
        assert dead_letters.retry(tx, [letter], "ana", "the disk is bigger now") == {letter}
        assert dead_letters.retry(tx, [letter], "ben") == set()
    row = records.job()
    assert (row.status, row.attempts, row.retry_count, row.as_of is not None) == ("PENDING", 0, 0, True)
    (kept,) = records.letters()
    assert (kept.resolution, kept.resolved_by_airflow_user, kept.resolved_by) == ("RETRIED", "ana", None)
    assert kept.resolution_notes == "the disk is bigger now"
    assert kept.resolved_at is not None
    (entry,) = records.entries("DEAD_LETTER_RESOLVED")
    assert entry.new_values["airflow_user"] == "ana"
    (move,) = records.rows("SELECT actor FROM queue_audit WHERE from_status = 'FAILED'")
    assert move.actor == "ana"


def test_a_permanent_failure_stays_failed(records: Records) -> None:
    """The other branch of 7.2's picture."""
    letter = dead(records)
    with as_service(records.run()).transaction() as tx:
        assert dead_letters.mark_permanent(tx, [letter], "ana", "not ours to mend") == {letter}
        assert dead_letters.retry(tx, [letter], "ben") == set()
    assert records.job().status == "FAILED"
    assert records.letters()[0].resolution == "PERMANENT_FAILURE"


def test_a_letter_whose_job_is_at_work_again(records: Records) -> None:
    """The queue's page let it be tried; what a person decides of its letter now changes nothing."""
    letter = dead(records)
    records.execute("UPDATE background_jobs SET status = 'PENDING'")
    with as_service(records.run()).transaction() as tx:
        assert dead_letters.retry(tx, [letter], "ana") == set()
    assert records.letters()[0].resolved_at is None


def test_notes(records: Records) -> None:
    """Line by line, with who wrote them; a decision's words come last."""
    letter = dead(records)
    with as_service(records.run()).transaction() as tx:
        assert dead_letters.add_note(tx, letter, "ana", "asked the lab ")
        assert dead_letters.add_note(tx, letter, "ben", "they know")
        dead_letters.mark_permanent(tx, [letter], "ana", "closed")
        assert not dead_letters.add_note(tx, letter, "ben", "too late")
    assert records.letters()[0].resolution_notes == "ana: asked the lab\nben: they know\nclosed"


def test_a_decision_has_a_name(records: Records) -> None:
    """Whoever decides is somebody."""
    letter = dead(records)
    with as_service(records.run()).transaction() as tx:
        for decide in (
            lambda: dead_letters.retry(tx, [letter], " "),
            lambda: dead_letters.mark_permanent(tx, [letter], ""),
            lambda: dead_letters.add_note(tx, letter, "", "x"),
            lambda: dead_letters.add_note(tx, letter, "ana", "  "),
        ):
            with pytest.raises(BadInput):
                decide()
    assert records.letters()[0].resolved_at is None
