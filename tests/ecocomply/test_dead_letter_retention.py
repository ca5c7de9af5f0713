"""Retention: where dead letters and jobs go in time, and what stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from include.ecocomply import dead_letter_retention
from include.ecocomply.dead_letter_retention import Outside
from include.ecocomply.job_records.attempts import begin
from include.ecocomply.job_records.dag_runs import DagRun, TaskTry
from include.job import Job, perform
from include.preview import preview
from include.run import Run
from tests.ecocomply.jobs_world import DAG, Killed, Records, ago, dead, dies_at

MODULE: Job = dead_letter_retention


def retain(records: Records, **fields: Any) -> Run:
    """Run the retention once."""
    run = records.run(**fields)
    perform(MODULE, run, Outside())
    return run


def seed(records: Records) -> None:
    """Make letters that were resolved 31 and 29 days ago, one that is open, and jobs that ended 91 and 89 days ago."""
    records.forget()
    for name, resolved in (("old", 31), ("young", 29), ("open", None)):
        letter = dead(records, name)
        records.execute(
            "UPDATE dead_letter_queue SET resolved_at = :at, resolution = 'PERMANENT_FAILURE',"
            " resolved_by_airflow_user = 'ana' WHERE id = :id AND CAST(:at AS timestamptz) IS NOT NULL",
            at=None if resolved is None else ago(days=resolved), id=letter,
        )  # fmt: skip
    for name in ("done long ago", "done", "failed long ago", "cancelled long ago", "waits", "works"):
        run_id = name.replace(" ", "-")
        if name == "waits":
            records.add(dag_run_id=f"{DAG}/waits", created_at=ago(days=200))
            continue
        if name == "cancelled long ago":
            records.add(dag_run_id=f"{DAG}/{run_id}")
            records.execute(
                "UPDATE background_jobs SET status = 'CANCELLED' WHERE dag_run_id = :run",
                run=f"{DAG}/{run_id}",
            )
            continue
        job = begin(records.run(), TaskTry(DagRun(DAG, run_id), "work", 1), payload={})
        if name != "works":
            records.execute(
                "UPDATE background_jobs SET status = :status WHERE id = :id", id=job.job_id,
                status="FAILED" if "failed" in name else "COMPLETED",
            )  # fmt: skip
    records.execute(
        "UPDATE background_jobs SET completed_at = :at WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED')",
        at=ago(days=91),
    )
    records.execute(
        "UPDATE background_jobs SET completed_at = :at WHERE dag_run_id LIKE '%/done'", at=ago(days=89)
    )
    # An application that calls a job off may stamp nothing but the change.
    records.execute(
        "UPDATE background_jobs SET completed_at = NULL, updated_at = :at WHERE status = 'CANCELLED'",
        at=ago(days=91),
    )


def left(records: Records) -> Any:
    """Return the jobs and letters that are left, and what was archived."""
    jobs = [
        row[0]
        for row in records.rows("SELECT split_part(dag_run_id, '/', 2) FROM background_jobs ORDER BY 1")
    ]
    letters = sorted(one.error_message for one in records.letters())
    entries = records.entries("DEAD_LETTER_ARCHIVED")
    archived = sorted(one.previous_values["error_message"] for one in entries)
    return jobs, letters, archived


def test_retention(records: Records) -> None:
    """Letters 30 days after they were resolved, jobs 90 days after their end; an open letter keeps both."""
    seed(records)
    trail = "SELECT DISTINCT row_key FROM queue_audit"
    run = retain(records, params={"retention_days": 30})
    assert left(records) == (
        ["done", "open", "waits", "works", "young"], ["open is bad", "young is bad"], ["old is bad"],
    )  # fmt: skip
    assert (run.counts["archived"], run.counts["deleted"], run.counts["processed"]) == (1, 4, 5)
    ids = {str(row.id) for row in records.rows("SELECT id FROM background_jobs")}
    assert {row.row_key for row in records.rows(trail)} <= ids
    (entry,) = records.entries("DEAD_LETTER_ARCHIVED")
    assert entry.previous_values["resolved_by_airflow_user"] == "ana"
    assert (entry.entity_type, entry.previous_values["resolution"]) == ("BACKGROUND_JOB", "PERMANENT_FAILURE")
    again = retain(records)
    assert (again.counts["archived"], again.counts["deleted"]) == (0, 0)


def test_an_open_letter_keeps_its_job(records: Records) -> None:
    """Nobody has decided yet, however long ago it was."""
    dead(records)
    records.execute("UPDATE background_jobs SET completed_at = :at", at=ago(days=900))
    retain(records)
    assert (len(records.letters()), records.job().status) == (1, "FAILED")


@pytest.mark.parametrize(
    ("days", "archived"), [(None, ["old is bad"]), (0, ["old is bad", "young is bad"]), (32, [])]
)
def test_retention_days(records: Records, days: int | None, archived: list[str]) -> None:
    """The param; nobody's is the specification's 30."""
    seed(records)
    retain(records, params={"retention_days": days})
    assert left(records)[2] == archived


def test_retention_as_of(records: Records) -> None:
    """Ruling 1: the as-of decides, not the clock."""
    seed(records)
    retain(records, as_of=datetime.now(UTC) - timedelta(days=40))
    assert left(records)[2] == []


def test_more_than_a_chunk(records: Records) -> None:
    """Ruling 5: a chunk, not a cap."""
    records.execute(
        "INSERT INTO background_jobs (job_type) SELECT 'RISK_SCORE_CALCULATION' FROM generate_series(1, 2500)"
    )
    records.execute("UPDATE background_jobs SET status = 'CANCELLED'")
    records.execute("UPDATE background_jobs SET completed_at = :at", at=ago(days=91))
    assert retain(records).counts["deleted"] == 2500


def test_killed_at_every_point(records: Records, record_property: Any) -> None:
    """Ruling 3: each letter is in its queue or in the audit log, never in neither."""
    seed(records)
    with dies_at(records.engine, 0) as clean:
        retain(records)
    whole = left(records)
    for number in range(1, len(clean) + 1):
        seed(records)
        with dies_at(records.engine, number), pytest.raises(Killed):
            retain(records)
        records.engine.dispose()
        retain(records)
        assert left(records) == whole, f"after event {number}: {clean[number - 1]}"
    record_property("crash points", f"ecocomply_dead_letter_retention: {len(clean)}")


def test_a_preview_shows_what_would_go(records: Records) -> None:
    """Ruling 9: as the real run then does it."""
    seed(records)
    before = left(records)
    shown = preview(records.engine, MODULE, lambda db: records.run(db=db), Outside())
    assert left(records) == before
    assert shown["counts"] == dict(retain(records).counts)
    gone = {one["table"]: one["deleted"] for one in shown["tables"] if one["deleted"]}
    assert (gone["background_jobs"], gone["dead_letter_queue"]) == (4, 1)
