"""The health of jobs: slow is not stale, stale is due again or dead, and what ran out of time is closed."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import job_health
from include.ecocomply.job_health import OUT_OF_TIME, UNRESPONSIVE, Outside
from include.ecocomply.job_records.attempts import JobAttempt, begin
from include.ecocomply.job_records.dag_runs import DagRun, RunStanding, TaskTry
from include.job import Job, perform
from include.preview import preview
from include.run import Run
from tests.ecocomply.jobs_world import IDLE, LIVE, OVER, TIMED_OUT, FakeAirflow, Killed, Records, dies_at
from tests.fakes.world import FakeAlerts

DAG = "ecocomply_risk_score_calculation"
MODULE: Job = job_health
SILENT = timedelta(minutes=5, seconds=5)


def look(records: Records, airflow: FakeAirflow, alerts: FakeAlerts | None = None) -> Run:
    """Run the check once."""
    run = records.run()
    perform(MODULE, run, Outside(airflow, alerts or FakeAlerts()))
    return run


def working(records: Records, run_id: str = "scheduled__1", number: int = 1, dag: str = DAG) -> JobAttempt:
    """Begin a job by a run, as a task that then says nothing more."""
    return begin(records.run(), TaskTry(DagRun(dag, run_id), "work", number), payload={})


@pytest.mark.parametrize(
    ("standing", "silent", "recovered"),
    [
        (LIVE, SILENT, False),
        (IDLE, SILENT, True),
        (OVER, SILENT, True),
        (None, SILENT, True),
        (OVER, timedelta(minutes=4, seconds=50), False),
    ],
)
def test_stale_needs_silence_and_no_task(
    records: Records, standing: RunStanding | None, silent: timedelta, *, recovered: bool
) -> None:
    """7.3: more than five minutes without a heartbeat, and no running, queued or retrying task in Airflow."""
    job = working(records)
    records.age(silent)
    airflow = FakeAirflow(runs={job.task.dag_run: standing} if standing else {})
    run = look(records, airflow)
    row = records.job()
    assert run.counts["recovered"] == run.counts["stale"] == int(recovered)
    assert run.counts["slow"] == int(standing is LIVE)
    assert (row.status, row.health_status) == ("PENDING" if recovered else "RUNNING", "HEALTHY")
    if recovered:
        assert row.error_message == UNRESPONSIVE
        wait = row.scheduled_for - row.updated_at
        assert timedelta(seconds=1) < wait <= timedelta(seconds=2)
        assert records.letters() == []


def test_stale_is_seen_before_it_is_mended(records: Records) -> None:
    """The dashboard counts stale jobs; a heartbeat that comes meanwhile takes the job back to its worker."""
    job = working(records)
    records.age(SILENT)
    job_health.mark_stale(records.run(), Outside(FakeAirflow(), FakeAlerts()))
    assert (records.job().status, records.job().health_status) == ("RUNNING", "STALE")
    job.progress(1, 2)
    run = records.run()
    job_health.recover_stale(run, Outside(FakeAirflow(), FakeAlerts()))
    assert (records.job().status, records.job().health_status) == ("RUNNING", "HEALTHY")
    assert not run.counts


def test_a_stale_job_without_an_attempt_left_is_dead(records: Records) -> None:
    """The smaller of the row's limit and the catalogue's; the letter says what was done until then."""
    job = working(records, dag="ecocomply_consultant_client_sync")
    records.age(SILENT)
    look(records, FakeAirflow())
    records.due()
    job = working(records, number=2, dag="ecocomply_consultant_client_sync")
    job.progress(1, 5, counts={"synced": 1})
    records.age(SILENT)
    run = look(records, FakeAirflow())
    row = records.job()
    assert (row.status, row.health_status, row.attempts) == ("FAILED", "FAILED", 2)
    assert (run.counts["failed"], run.counts["recovered"]) == (1, 0)
    (letter,) = records.letters()
    assert letter.error_message == UNRESPONSIVE
    assert letter.error_context["partial_results"]["counts"] == {"synced": 1}


@pytest.mark.parametrize("silent", [timedelta(0), SILENT])
def test_a_run_that_ran_out_of_time_is_closed(records: Records, silent: timedelta) -> None:
    """Airflow skips its tasks and calls nothing: the run's limit covers all attempts, so this was the last."""
    job = working(records)
    records.age(silent)
    run = look(records, FakeAirflow(runs={job.task.dag_run: TIMED_OUT}))
    row = records.job()
    assert (row.status, row.error_message, row.attempts) == ("FAILED", OUT_OF_TIME, 1)
    assert (run.counts["timed_out"], run.counts["failed"], run.counts["stale"]) == (1, 1, 0)
    assert len(records.letters()) == 1


def test_a_cleared_run_is_the_same_to_airflow(records: Records) -> None:
    """The row names the clearing, Airflow the run."""
    begin(records.run(), TaskTry(DagRun(DAG, "scheduled__1", 2), "work", 1), payload={})
    records.age(SILENT)
    look(records, FakeAirflow(runs={DagRun(DAG, "scheduled__1"): LIVE}))
    assert records.job().status == "RUNNING"


def test_a_worker_of_the_applications_own(records: Records) -> None:
    """It writes the specification's columns alone; without a heartbeat, when it started counts."""
    for column in ("last_heartbeat", "started_at"):
        records.forget()
        records.add()
        records.execute(
            f"UPDATE background_jobs SET status = 'RUNNING', {column} = now() - interval '6 minutes'"
        )
        assert look(records, FakeAirflow()).counts["recovered"] == 1
        assert records.job().status == "PENDING"


def test_the_operators_hear_where_no_run_tells(records: Records) -> None:
    """Of a run that was killed the platform tells by itself."""
    records.add(max_retries=0)
    records.execute("UPDATE background_jobs SET status = 'RUNNING', attempts = 1")
    records.execute("UPDATE background_jobs SET last_heartbeat = now() - interval '6 minutes'")
    job = working(records)
    alerts = FakeAlerts()
    run = look(records, FakeAirflow(runs={job.task.dag_run: TIMED_OUT}), alerts)
    assert run.counts["failed"] == 2
    assert len(alerts.told) == run.counts["sent"] == 1
    look(records, FakeAirflow(), alerts)
    assert len(alerts.told) == 1


def seed(records: Records) -> FakeAirflow:
    """Make jobs that are alive, slow, stale, dead, and out of time."""
    records.forget()
    airflow = FakeAirflow()
    for name, standing, silent, attempts in (
        ("alive", LIVE, False, 1), ("slow", LIVE, True, 1), ("stale", OVER, True, 1), ("dead", OVER, True, 3),
        ("late", TIMED_OUT, False, 2),
    ):  # fmt: skip
        job = working(records, name)
        airflow.runs[job.task.dag_run] = standing
        records.execute(
            "UPDATE background_jobs SET attempts = :attempts, heartbeat_at = heartbeat_at - :silent WHERE id = :id",
            attempts=attempts, silent=SILENT if silent else timedelta(0), id=job.job_id,
        )  # fmt: skip
    return airflow


def state(records: Records) -> Any:
    """Return what became of each."""
    rows = records.rows("SELECT dag_run_id, status, health_status, attempts FROM background_jobs ORDER BY 1")
    return rows, sorted(one.error_message for one in records.letters()), len(records.entries("JOB_ERROR"))


def test_killed_at_every_point(records: Records, record_property: Any) -> None:
    """Ruling 3: run again, it ends as one clean run; and once more changes nothing."""
    airflow = seed(records)
    with dies_at(records.engine, 0, airflow) as clean:
        look(records, airflow)
    whole = state(records)
    assert [row[1] for row in whole[0]] == ["RUNNING", "FAILED", "FAILED", "RUNNING", "PENDING"]
    assert len(whole[1]) == whole[2] == 2
    for number in range(1, len(clean) + 1):
        airflow = seed(records)
        with dies_at(records.engine, number, airflow), pytest.raises(Killed):
            look(records, airflow)
        records.engine.dispose()
        look(records, airflow)
        assert state(records) == whole, f"after event {number}: {clean[number - 1]}"
    look(records, airflow)
    assert state(records) == whole
    record_property("crash points", f"ecocomply_job_health: {len(clean)}")


def test_two_checks_at_once(records: Records) -> None:
    """Each dead job has one letter."""
    for number in range(20):
        working(records, f"run-{number}")
    records.execute("UPDATE background_jobs SET attempts = 3")
    records.age(SILENT)
    errors: list[BaseException] = []

    def one() -> None:
        try:
            look(records, FakeAirflow())
        except BaseException as error:  # noqa: BLE001 - told by the test
            errors.append(error)

    both = [threading.Thread(target=one) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert errors == []
    assert len(records.letters()) == 20
    assert records.rows("SELECT FROM background_jobs WHERE status <> 'FAILED'") == []


def test_a_bad_row_stops_no_other(records: Records) -> None:
    """Ruling 6: an application's trigger that refuses one row."""
    bad, good = working(records, "bad"), working(records, "good")
    records.age(SILENT)
    records.execute(
        f"ALTER TABLE background_jobs ADD CHECK (id <> '{bad.job_id}' OR status <> 'PENDING') NOT VALID"
    )
    run = look(records, FakeAirflow())
    assert (records.job(bad.job_id).status, records.job(good.job_id).status) == ("RUNNING", "PENDING")
    assert (run.counts["failed"], run.counts["recovered"]) == (1, 1)


def test_a_preview_shows_what_would_become_of_them(records: Records) -> None:
    """Ruling 9: as the real run then does it."""
    airflow = seed(records)
    before = state(records)
    shown = preview(records.engine, MODULE, lambda db: records.run(db=db), Outside(airflow, FakeAlerts()))
    assert state(records) == before
    run = look(records, airflow)
    assert shown["counts"] == dict(run.counts)
    changed = {one["table"]: (one["inserted"], one["updated"]) for one in shown["tables"]}
    assert changed == {
        "background_jobs": (0, 3), "queue_audit": (3, 0), "dead_letter_queue": (2, 0), "audit_logs": (2, 0)
    }  # fmt: skip


def test_airflow_is_asked_of_what_is_silent_alone(records: Records) -> None:
    """A job that was heard of is not stale, however its run stands; a heartbeat that comes late is."""
    job = working(records)
    airflow = FakeAirflow(runs={job.task.dag_run: OVER})
    run = records.run()
    job_health.mark_stale(run, Outside(airflow, FakeAlerts()))
    assert (airflow.asked, run.counts["stale"], records.job().health_status) == (0, 0, "HEALTHY")


def test_airflow_is_asked_of_no_strange_key(records: Records) -> None:
    """What an application keeps in the column is no run."""
    records.add(id=UUID(int=5), dag_run_id="theirs")
    records.execute(
        "UPDATE background_jobs SET status = 'RUNNING', last_heartbeat = now() - interval '6 minutes'"
    )
    airflow = FakeAirflow()
    look(records, airflow)
    assert airflow.asked == 0
    assert records.job().status == "PENDING"
