"""A job's row from its opening to its end: who holds it, what counts as an attempt, and what a failure leaves."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DataError

from include.ecocomply.access import act_as_service, as_service, companies_seen
from include.ecocomply.job_records.attempts import (
    JobAttempt,
    JobCancelled,
    JobEnded,
    attempt,
    begin,
    close_failed,
)
from include.ecocomply.job_records.dag_runs import DagRun, TaskTry, run_of_key, try_of_owner
from include.ecocomply.job_types import DAGS
from include.errors import BadInput, Busy, Permanent, Transient
from include.queues.engine import StaleClaim
from include.run import Transaction
from tests.ecocomply.jobs_world import Killed, Records, ago, dies_at, scheduled

PAYLOAD = {"site_id": None}


def fails(records: Records, error: BaseException, task: TaskTry | None = None) -> JobAttempt:
    """Let one try fail by an error, and return what it held."""
    held: list[JobAttempt] = []
    with suppress(type(error), JobEnded), attempt(records.run(), task or scheduled()) as job:
        held.append(job)
        raise error
    return held[0]


def started(
    records: Records, job_id: UUID, number: int = 1, dag: str = "ecocomply_risk_score_calculation"
) -> TaskTry:
    """Let a row name the run that the dispatcher would start for it."""
    run = DagRun(dag, f"job__{job_id}")
    records.execute("UPDATE background_jobs SET dag_run_id = :run WHERE id = :id", run=run.key, id=job_id)
    return TaskTry(run, "check_run", number)


def test_a_run_by_the_clock_opens_its_row_and_ends_it(records: Records) -> None:
    """Every run has a row; it is never seen waiting, so no dispatcher takes it."""
    run = records.run()
    with attempt(run, scheduled(), payload=PAYLOAD) as job:
        row = records.job()
        assert (row.status, row.attempts, row.retry_count) == ("RUNNING", 1, 0)
        assert (row.job_type, row.payload, row.as_of) == ("RISK_SCORE_CALCULATION", PAYLOAD, run.as_of)
        assert (row.max_retries, row.timeout_seconds, row.heartbeat_interval_seconds) == (2, 900, 60)
        assert (row.company_id, row.created_by) == (None, None)
        job.complete({"scored": 3})
    row = records.job()
    assert (row.status, row.result, row.claimed_by) == ("COMPLETED", {"scored": 3}, None)
    assert row.started_at < row.completed_at
    assert records.letters() == []


def test_nobody_sees_the_row_wait(records: Records) -> None:
    """Inserted and claimed are one transaction, since the database lets no row begin as running."""
    seen: list[Any] = []
    with dies_at(records.engine, 0) as events, attempt(records.run(), scheduled()):
        seen = list(events)
    inserted = next(n for n, said in enumerate(seen) if said.startswith("-- a row is the job of a run"))
    claimed = next(
        n for n, said in enumerate(seen) if said.startswith("-- one row: the waiting job, claimed")
    )
    assert "commit" not in seen[inserted:claimed]


def test_the_row_goes_from_task_to_task(records: Records) -> None:
    """A second task is no second attempt; what the first one held is void from then on."""
    with attempt(records.run(), scheduled(task="check_run")) as first:
        pass
    with attempt(records.run(), scheduled(task="calculate")) as second:
        assert second.job_id == first.job_id
        assert records.job().attempts == 1
        with pytest.raises(StaleClaim):
            first.complete({})
        second.complete({})
    assert records.job().status == "COMPLETED"


def test_a_failed_try_is_an_attempt(records: Records) -> None:
    """7.1: 2 and 4 seconds apart, three in all, whichever of the run's tasks it was."""
    tries = [scheduled(1, task="a"), scheduled(2, task="a"), scheduled(1, task="b")]
    for number, task in enumerate(tries, 1):
        job = fails(records, Transient("storage: 503"), task)
        row = records.job()
        assert (row.attempts, row.retry_count, row.error_message) == (number, number - 1, "storage: 503")
        if number < 3:
            assert row.status == "PENDING"
            wait = row.scheduled_for - row.updated_at
            assert timedelta(seconds=2 * number - 1) < wait <= timedelta(seconds=2 * number)
    assert (row.status, row.health_status) == ("FAILED", "FAILED")
    assert row.dead_letter_queue_id is not None
    assert len(job.alerts) == 1


def test_the_last_failure_tells_airflow_to_stop(records: Records) -> None:
    """A row's attempts may be fewer than its tasks' tries."""
    task = started(records, records.add(max_retries=0))
    used_up = "attempts are used up, the last ended by: lab: 503"
    with pytest.raises(JobEnded, match=used_up), attempt(records.run(), task):
        raise Transient("lab: 503")
    with pytest.raises(JobEnded, match="is FAILED already"), attempt(records.run(), task):
        pass
    assert len(records.letters()) == 1


@pytest.mark.parametrize(
    ("max_retries", "dag", "limit"), [(0, 3, 1), (1, 3, 2), (2, 3, 3), (9, 3, 3), (9, 2, 2)]
)
def test_the_smaller_limit_holds(records: Records, max_retries: int, dag: int, limit: int) -> None:
    """The row's own limit, and the catalogue's."""
    dag_id = "ecocomply_risk_score_calculation" if dag == 3 else "ecocomply_consultant_client_sync"
    assert DAGS[dag_id].attempts == dag
    job_id = records.add(DAGS[dag_id].job_type, max_retries=max_retries)
    task = started(records, job_id, dag=dag_id)
    for number in range(1, limit + 1):
        fails(records, Transient("again"), TaskTry(task.dag_run, "work", number))
        assert records.job().status == ("FAILED" if number == limit else "PENDING")


@pytest.mark.parametrize("error", [BadInput("site: no such"), Permanent("gone")], ids=str)
def test_a_permanent_error_ends_it_at_once(records: Records, error: Permanent) -> None:
    """7.1's table: what trying again can't mend is not tried again, and comes out as it was."""
    with pytest.raises(type(error), match=str(error)), attempt(records.run(), scheduled()):
        raise error
    assert (records.job().status, records.job().attempts) == ("FAILED", 1)


def test_data_that_the_database_refuses_is_permanent(records: Records) -> None:
    """As Airflow's own retries judge it."""
    with pytest.raises(DataError), attempt(records.run(), scheduled()), records.engine.begin() as connection:
        connection.execute(text("SELECT CAST('x' AS integer)"))
    assert records.job().status == "FAILED"


def test_a_killed_try_is_an_attempt(records: Records) -> None:
    """It wrote nothing of its end; the next try of the same task finds that, and the last one's end is the row's."""
    for number in (1, 2, 3):
        begin(records.run(), scheduled(number), payload={})
        assert records.job().attempts == number
    with pytest.raises(JobEnded, match="the last was killed"):
        begin(records.run(), scheduled(4), payload={})
    assert records.job().status == "FAILED"
    (letter,) = records.letters()
    assert letter.error_message == "the worker has not been heard of"


def writes_beside(tx: Transaction, job: JobAttempt) -> None:
    """Write what a job's work brought, and then see that the job is still its own."""
    act_as_service(tx)
    tx.execute(text("UPDATE companies SET name = 'written by the late one'"))
    job.hold(tx)


def test_a_try_that_is_too_late_changes_nothing(records: Records) -> None:
    """R6: a worker that Airflow gave up still runs; what it says, and what stands beside it, is void."""
    late = begin(records.run(), scheduled(1), payload={})
    now = begin(records.run(), scheduled(2), payload={})
    late.run.log.disabled = False
    for says in (
        lambda: late.progress(1, 2),
        lambda: late.complete({"x": 1}),
        lambda: late.fail(Transient("x")),
    ):
        with pytest.raises(StaleClaim):
            says()
    with pytest.raises(StaleClaim), records.database.transaction() as tx:
        writes_beside(tx, late)
    with pytest.raises(StaleClaim):
        begin(records.run(), scheduled(1), payload={})
    row = records.job()
    assert (row.status, row.attempts, row.result, row.progress) == ("RUNNING", 2, None, None)
    assert records.rows("SELECT FROM companies WHERE name LIKE 'written%'") == []
    with records.database.transaction() as tx:
        act_as_service(tx)
        now.hold(tx)
    now.complete({})


def test_the_same_try_may_begin_twice(records: Records) -> None:
    """A step may open its job where the step before it in the same task has."""
    first = begin(records.run(), scheduled(), payload={})
    again = begin(records.run(), scheduled(), payload={})
    assert (again.job_id, again.claim.attempt) == (first.job_id, 1)


def test_an_applications_row_is_claimed_by_its_id(records: Records) -> None:
    """The dispatcher named the run; the run's first step claims the row, due or not, and keeps its as-of."""
    job_id = records.add(
        created_by=records.owner, as_of=ago(hours=5), payload={"company_id": str(records.company)}
    )
    with attempt(records.run(), started(records, job_id)) as job:
        assert (job.job_id, job.created_by) == (job_id, records.owner)
        assert job.claim.row.as_of == records.job().as_of < ago(hours=4)
        job.complete({})
    assert records.job(job_id).status == "COMPLETED"


def test_a_run_that_no_row_names_is_refused(records: Records) -> None:
    """Whoever may trigger a DAG may give the run any id, and gets no hold on a row by that."""
    job_id = records.add()
    with pytest.raises(BadInput, match="names no such run"):
        begin(
            records.run(),
            TaskTry(DagRun("ecocomply_risk_score_calculation", f"job__{job_id}"), "t", 1),
            payload={},
        )
    with pytest.raises(BadInput, match="no DAG of the catalogue"):
        begin(records.run(), TaskTry(DagRun("ecocomply_job_health", "x"), "t", 1), payload={})
    assert records.job().status == "PENDING"


def test_two_tries_open_a_run_at_once(records: Records) -> None:
    """One that Airflow gave up, and the next: one row, which the later one has in the end, or from the start."""
    held: list[JobAttempt | BaseException] = []
    lined_up = threading.Barrier(2)

    def one(number: int) -> None:
        lined_up.wait(5)
        try:
            held.append(begin(records.run(), scheduled(number), payload={}))
        except StaleClaim as error:
            held.append(error)

    both = [threading.Thread(target=one, args=(number,)) for number in (1, 2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert len(held) == 2
    assert records.job().claimed_by == scheduled(2).owner


def test_a_worker_of_the_applications_own_is_left_its_row(records: Records) -> None:
    """It took the row after the dispatcher had named a run in it: no two work on one job."""
    task = started(records, records.add())
    records.execute("UPDATE background_jobs SET status = 'RUNNING', last_heartbeat = now()")
    with pytest.raises(Busy, match="application's own"):
        begin(records.run(), task, payload={})
    assert close_failed(records.run(), task.dag_run, "the run has failed", "close") == []
    assert (records.job().status, records.letters()) == ("RUNNING", [])


def test_a_job_that_was_called_off(records: Records) -> None:
    """From PENDING alone, by 7.4: before its run, or between two tries."""
    task = started(records, records.add())
    records.execute("UPDATE background_jobs SET status = 'CANCELLED'")
    with pytest.raises(JobCancelled, match="called off"), attempt(records.run(), task):
        pass
    assert records.letters() == []


def test_a_cleared_run_opens_a_new_row(records: Records) -> None:
    """What has ended stays as it ended; the new one is for the same payload, user and as-of."""
    job_id = records.add(created_by=records.owner, payload={"a": 1}, max_retries=1)
    task = started(records, job_id)
    with attempt(records.run(), task) as job:
        job.complete({"first": True})
    cleared = TaskTry(DagRun(task.dag_run.dag_id, task.dag_run.run_id, 1), "check_run", 2)
    with attempt(records.run(), cleared) as again:
        assert again.job_id != job_id
        again.complete({})
    old, new = records.rows("SELECT * FROM background_jobs ORDER BY created_at")
    assert (old.id, old.status, old.result) == (job_id, "COMPLETED", {"first": True})
    assert (new.payload, new.created_by, new.company_id, new.max_retries, new.as_of) == (
        {"a": 1}, records.owner, records.company, 1, old.as_of,
    )  # fmt: skip


def test_a_run_that_is_cleared_while_its_row_is_open_goes_on_with_it(records: Records) -> None:
    """Otherwise the old row would be found without a worker, and tried again beside the new one."""
    first = begin(records.run(), scheduled(1), payload={})
    again = begin(records.run(), scheduled(2, cleared=1), payload={})
    assert (again.job_id, again.claim.attempt) == (first.job_id, 1)
    again.complete({})
    with pytest.raises(JobEnded, match="is COMPLETED already"):
        begin(records.run(), scheduled(3, cleared=1), payload={})


def test_two_dags_of_one_type_at_one_instant(records: Records) -> None:
    """On a Monday both digests have runs of the same id."""
    for dag in ("ecocomply_digest_delivery_daily", "ecocomply_digest_delivery_weekly"):
        begin(records.run(), scheduled(dag=dag), payload={})
    assert len(records.rows("SELECT FROM background_jobs WHERE status = 'RUNNING'")) == 2


def test_the_last_step_closes_what_failed_between(records: Records) -> None:
    """A task that never came to its record, or whose process was killed at its last try."""
    begin(records.run(), scheduled(task="check_run"), payload={})
    alerts = close_failed(records.run(), scheduled().dag_run, "task calculate has failed", "close")
    row = records.job()
    assert (row.status, row.error_message, row.attempts) == ("FAILED", "task calculate has failed", 1)
    assert len(alerts) == len(records.letters()) == 1
    assert close_failed(records.run(), scheduled().dag_run, "again", "close") == []


def test_the_last_step_closes_a_row_that_waits_for_another_try(records: Records) -> None:
    """The run is over, so no try will come."""
    fails(records, Transient("x"))
    close_failed(records.run(), scheduled().dag_run, "the run has failed", "close")
    assert records.job().status == "FAILED"
    assert len(records.letters()) == 1


def test_three_minutes_need_three_heartbeats(records: Records) -> None:
    """1.1: a statement that holds its worker up does not hold the heart up. Scaled: a minute is 0.4 s."""
    every = timedelta(seconds=0.4)
    began = time.monotonic()
    with dies_at(records.engine, 0) as events, attempt(records.run(), scheduled(), heartbeat=every) as job:

        def beats() -> int:
            return sum(said.startswith("-- a row is a claim of this owner that is alive") for said in events)

        before = records.job().last_heartbeat
        # Once is enough, but on a machine that is short of breath.
        while beats() < 3 and time.monotonic() - began < 30:
            with records.engine.begin() as connection:
                connection.execute(text("SELECT pg_sleep(1.3)"))
        seen, took = beats(), time.monotonic() - began
        after = records.job().last_heartbeat
        job.complete({})
    assert 3 <= seen <= took / every.total_seconds()
    assert after - before > 2 * every


@pytest.mark.parametrize(("dag_id", "row", "seconds"), [
    ("ecocomply_risk_score_calculation", 60, 60), ("ecocomply_risk_score_calculation", 20, 20),
    ("ecocomply_excel_import_commit", 60, 30), ("ecocomply_document_processing", 60, 30),
])  # fmt: skip
def test_how_often_a_heart_beats(
    records: Records, monkeypatch: pytest.MonkeyPatch, dag_id: str, row: int, seconds: int
) -> None:
    """60 s; 30 s for imports and large documents; more often where the row says so."""
    asked: list[timedelta] = []
    from include.ecocomply.job_records import attempts  # noqa: PLC0415 - to be watched

    real = attempts.beating
    monkeypatch.setattr(
        attempts,
        "beating",
        lambda run, queue, owner, every: asked.append(every) or real(run, queue, owner, every),
    )
    job_id = records.add(DAGS[dag_id].job_type, heartbeat_interval_seconds=row)
    with attempt(records.run(), started(records, job_id, dag=dag_id)) as job:
        job.complete({})
    assert asked == [timedelta(seconds=seconds)]


def test_a_heartbeat_revives_what_was_taken_for_stale(records: Records) -> None:
    """7.3: HEALTHY again, in the same statement."""
    with attempt(records.run(), scheduled(), heartbeat=timedelta(seconds=0.2)) as job:
        records.execute("UPDATE background_jobs SET health_status = 'STALE'")
        for _ in range(50):
            if records.job().health_status == "HEALTHY":
                break
            time.sleep(0.05)
        assert records.job().health_status == "HEALTHY"
        job.complete({})


def test_progress_is_kept_and_is_a_heartbeat(records: Records) -> None:
    """4.1 logs "Processed {n}/{total} parameters": it stands on the row, with what a dead letter would show."""
    with attempt(records.run(), scheduled()) as job:
        before = records.job().last_heartbeat
        job.progress(20, 45, "Processed 20/45 parameters", ids=range(60), counts={"processed": 20})
        job.progress(45, 45, ids=range(50, 150), counts={"failed": 1})
        row = records.job()
        assert row.last_heartbeat > before
        assert (row.progress["current"], row.progress["total"]) == (45, 45)
        assert row.progress["counts"] == {"processed": 20, "failed": 1}
        assert row.progress["ids"] == [str(n) for n in range(100)]
    with attempt(records.run(), scheduled(task="next")) as job:
        job.progress(1, 2, ids=["later"], counts={"breaches": 2})
        assert records.job().progress["counts"] == {"processed": 20, "failed": 1, "breaches": 2}


def test_the_dead_letter(records: Records) -> None:
    """7.2's context, and 4.1's counts and ids; 18.2's audit entry; the trace, without the values of statements."""
    run = records.run()
    dag = "ecocomply_sampling_schedule"
    payload = {"company_id": str(records.company)}
    for number in (1, 2, 3):
        task = scheduled(number, dag=dag, task="generate")
        with suppress(Transient, JobEnded), attempt(run, task, payload=payload) as job:
            job.progress(1, 3, ids=["p1"], counts={"processed": 1})
            raise Transient("database: deadlock")
    row = records.job()
    (letter,) = records.letters()
    assert row.dead_letter_queue_id == letter.id
    assert (letter.company_id, letter.retry_count, letter.resolved_at) == (records.company, 2, None)
    assert letter.error_message == row.error_message == "database: deadlock"
    assert "test_job_attempts" in letter.error_stack
    assert letter.error_stack == row.error_stack
    context = letter.error_context
    assert context["job_type"] == "SAMPLING_SCHEDULE"
    assert (context["payload"], context["attempts"]) == (payload, 3)
    assert context["first_attempted_at"] == row.started_at.isoformat()
    assert context["last_error_code"] is None
    assert context["execution_step"] == "generate"
    assert context["partial_results"]["counts"] == {"processed": 1}
    assert context["partial_results"]["ids"] == ["p1"]
    (entry,) = records.entries("JOB_ERROR")
    assert (entry.entity_type, entry.entity_id, entry.user_id) == ("BACKGROUND_JOB", row.id, None)
    assert (entry.company_id, entry.previous_values) == (records.company, payload)
    said = entry.new_values
    assert (said["error_name"], said["error_message"], said["retry_count"], said["job_type"]) == (
        "Transient", "database: deadlock", 2, "SAMPLING_SCHEDULE",
    )  # fmt: skip
    assert said["context"]["execution_step"] == "generate"


def test_a_trace_holds_no_value_of_a_statement(records: Records) -> None:
    """SQLAlchemy prints what was bound, which may be a person's."""
    with suppress(DataError), attempt(records.run(), scheduled()), records.engine.begin() as connection:
        connection.execute(
            text("SELECT CAST(:secret AS integer), :other"), {"secret": "1x", "other": "jo@eco.test"}
        )
    (letter,) = records.letters()
    assert letter.error_context["last_error_code"] == "22P02"
    assert "jo@eco.test" not in json.dumps([letter.error_stack, letter.error_message])


ADMINS = ("owner", "admin")


@pytest.mark.parametrize(
    ("job_type", "payload", "by", "told"),
    [
        ("RISK_SCORE_CALCULATION", "company", None, ADMINS),
        ("RISK_SCORE_CALCULATION", None, None, ()),
        ("RISK_SCORE_CALCULATION", None, "staff", ADMINS),
        ("CROSS_SELL_TRIGGER_DETECTION", "company", None, ()),
        ("AUDIT_PACK_GENERATION", "company", "staff", ("staff",)),
        ("AUDIT_PACK_GENERATION", "company", None, ADMINS),
        # A consultant's work for a client is the client's to know; not for a company that is no client.
        ("RISK_SCORE_CALCULATION", "company", "consultant", ADMINS),
        ("RISK_SCORE_CALCULATION", "company", "stranger", ("stranger",)),
        ("AUDIT_PACK_GENERATION", "company", "consultant", ("consultant",)),
    ],
)  # fmt: skip
def test_who_is_told(
    records: Records, job_type: str, payload: str | None, by: str | None, told: tuple[str, ...]
) -> None:
    """18.3: a payload with a company tells its OWNERs and ADMINs, or who asked; one without, the operators alone."""
    given = {"company_id": str(records.company)} if payload else {}
    job_id = records.add(job_type, payload=given, created_by=by and getattr(records, by))
    (dag,) = [dag for dag in DAGS.values() if dag.job_type == job_type]
    job = fails(records, Permanent("no"), started(records, job_id, dag=dag.dag_id))
    expected = {getattr(records, name) for name in told}
    assert records.notified() == expected
    (alert,) = job.alerts
    assert set(alert.recipients) == expected
    # The platform tells the operators of a task that failed; the ledger need not.
    assert not alert.operators


def test_the_notification(records: Records) -> None:
    """18.3's fields, one a recipient; the operators' own notices are the ledger's."""
    job = fails(records, Permanent("disk is full"), started(records, records.add(created_by=records.owner)))
    row = records.rows("SELECT * FROM notifications WHERE user_id = :id", id=records.owner)[0]
    assert (row.notification_type, row.channel, row.priority, row.status) == (
        "SYSTEM_ALERT", "EMAIL", "CRITICAL", "PENDING",
    )  # fmt: skip
    assert row.subject == "Background Job Failed: RISK_SCORE_CALCULATION" == job.alerts[0].subject
    assert row.body_text == (
        "The RISK_SCORE_CALCULATION job failed after 0 retries. Error: disk is full. "
        "Please check the admin dashboard for details."
    )
    assert (row.entity_type, row.entity_id, row.recipient_email) == (
        "background_job", job.job_id, f"owner-{records.owner.int}@eco.test",
    )  # fmt: skip
    assert row.metadata["severity"] == "ERROR"


@pytest.mark.parametrize("who", ["requested_by", "user_id"])
def test_who_asked_stands_in_the_payload(records: Records, who: str) -> None:
    """A row of the application's own login names nobody by created_by; another company's user is not told."""
    for user, told in ((records.staff, {records.staff}), (records.stranger, {records.owner, records.admin})):
        records.forget()
        payload = {"company_id": str(records.company), who: str(user)}
        job_id = records.add("AER_GENERATION", payload=payload)
        fails(records, Permanent("no"), started(records, job_id, dag="ecocomply_aer_generation"))
        assert records.notified() == told


def test_who_uploaded_a_document_is_told(records: Records) -> None:
    """18.3: of its processing."""
    records.execute(
        "INSERT INTO documents (id, company_id, site_id, title, document_type, uploaded_by)"
        " VALUES (:id, :company, :site, 'Permit', 'ENVIRONMENTAL_PERMIT', :by)",
        id=UUID(int=90), company=records.company, site=records.site, by=records.staff,
    )  # fmt: skip
    payload = {"company_id": str(records.company), "document_id": str(UUID(int=90))}
    job_id = records.add("DOCUMENT_PROCESSING", payload=payload)
    fails(records, Permanent("no"), started(records, job_id, dag="ecocomply_document_processing"))
    assert records.notified() == {records.staff}


def test_a_job_that_fails_again_has_a_letter_of_its_own(records: Records) -> None:
    """The queue's page makes failed rows due without looking at their letters."""
    job_id = records.add(created_by=records.owner)
    task = started(records, job_id)
    fails(records, Permanent("first"), task)
    records.execute("UPDATE background_jobs SET status = 'PENDING', attempts = 0")
    fails(records, Permanent("second"), TaskTry(task.dag_run, "work", 1))
    old, new = records.letters()
    assert (old.resolution, old.resolution_notes) == ("RETRIED", "It was tried again, and failed again.")
    assert (new.error_message, new.resolved_at) == ("second", None)
    assert records.job().dead_letter_queue_id == new.id
    assert len(records.rows("SELECT FROM notifications WHERE user_id = :id", id=records.owner)) == 2
    records.execute("UPDATE background_jobs SET status = 'PENDING', attempts = 0")
    with attempt(records.run(), TaskTry(task.dag_run, "work", 2)) as job:
        job.complete({})
    assert {letter.resolution for letter in records.letters()} == {"RETRIED"}


def work(records: Records) -> None:
    """Do a whole run: two tasks, of which the second fails at first, and is tried again."""
    for number, task in ((1, "check_run"), (1, "calculate"), (2, "calculate")):
        with suppress(Transient), attempt(records.run(), scheduled(number, task=task)) as job:
            job.progress(number, 2)
            finish(job, task, number)


def finish(job: JobAttempt, task: str, number: int) -> None:
    """End the job in its last task's second try."""
    if task == "calculate":
        if number == 1:
            raise Transient("storage: 503")
        job.complete({"done": 1})


def outcome(records: Records) -> tuple[Any, ...]:
    """Return what a run leaves, however often it was tried."""
    row = records.job()
    letters = [(one.error_message, one.resolved_at) for one in records.letters()]
    return row.status, row.result, row.claimed_by, letters, len(records.entries("JOB_ERROR"))


def test_killed_at_every_statement(records: Records, record_property: Any) -> None:
    """Ruling 3: whatever a killed try left, the next one goes on, and the row ends as in one clean run."""
    with dies_at(records.engine, 0) as clean:
        work(records)
    whole = outcome(records)
    assert whole[0] == "COMPLETED"
    for number in range(1, len(clean) + 1):
        records.forget()
        with dies_at(records.engine, number), pytest.raises(Killed):
            work(records)
        records.engine.dispose()
        if (rows := records.rows("SELECT status FROM background_jobs")) and rows[0].status == "COMPLETED":
            # Killed after its end was committed: Airflow's next try is told so.
            with pytest.raises(JobEnded):
                begin(records.run(), scheduled(9), payload={})
        else:
            work_again(records)
        assert outcome(records) == whole, f"after event {number}: {clean[number - 1]}"
    record_property("crash points", f"a job's record: {len(clean)}")


def work_again(records: Records) -> None:
    """Try the tasks again, with later numbers."""
    for task in ("check_run", "calculate"):
        with attempt(records.run(), scheduled(30, task=task)) as job:
            if task == "calculate":
                job.complete({"done": 1})


def left_of_failure(records: Records) -> tuple[str, int, int, int]:
    """Return the row's status, and how many letters, entries and recipients there are."""
    told = (len(records.letters()), len(records.entries("JOB_ERROR")), len(records.notified()))
    return records.job().status, *told


def test_killed_while_it_fails_for_good(records: Records) -> None:
    """The dead letter, the audit entry, the notifications and the row's end are there together, or not at all."""

    def fail_for_good() -> None:
        task = started(records, records.add(created_by=records.owner))
        with dies_at(records.engine, die_at) as events:
            events_of.append(events)
            with suppress(Permanent), attempt(records.run(), task):
                raise Permanent("no")

    events_of: list[list[str]] = []
    die_at = 0
    fail_for_good()
    assert left_of_failure(records) == ("FAILED", 1, 1, 2)
    for die_at in range(1, len(events_of[0]) + 1):
        records.forget()
        with pytest.raises(Killed):
            fail_for_good()
        records.engine.dispose()
        # The last event is the commit that all of it waits for.
        assert left_of_failure(records)[1:] == (0, 0, 0), f"after event {die_at}"
        assert records.job().status in ("PENDING", "RUNNING")


def test_a_failure_that_can_not_be_recorded_is_counted_by_the_next_try(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is away: the task's own error comes out, and the attempt is not forgotten."""

    def away(*_: Any) -> bool:
        raise Transient("database: away")

    with monkeypatch.context() as patched:
        patched.setattr(JobAttempt, "fail", away)
        with pytest.raises(Transient, match="storage"), attempt(records.run(), scheduled(1)):
            raise Transient("storage: 503")
    assert records.job().status == "RUNNING"
    assert begin(records.run(), scheduled(2), payload={}).claim.attempt == 2


@pytest.mark.parametrize("key", [None, "", "a", "a/b/c/d", "a/b/x", "/b", "a//1"])
def test_what_names_no_run(key: str | None) -> None:
    """An application may keep ids of its own in the column."""
    assert run_of_key(key) is None
    assert try_of_owner(key) is None


@pytest.mark.parametrize("task", [scheduled(3), scheduled(12, cleared=2)])
def test_what_is_written_is_read_back(task: TaskTry) -> None:
    """The row's text is the only memory of who holds it."""
    assert try_of_owner(task.owner) == task
    assert run_of_key(task.dag_run.key) == task.dag_run


def test_the_books_are_the_services(records: Records) -> None:
    """15.1: bookkeeping bypasses no policy by its login, but takes the service's role."""
    run = records.run()
    with as_service(as_service(run)).transaction() as tx:
        assert tx.value(text("SELECT current_user")) == "ecocomply_service"
        assert companies_seen(tx, records.consultant) == {records.company, records.other}
        assert tx.value(text("SELECT current_user")) == "ecocomply_service"
    with run.transaction() as tx:
        assert tx.value(text("SELECT current_user")) != "ecocomply_service"
