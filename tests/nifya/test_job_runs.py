"""Jobs that are due are run by their handlers, and what follows them is written with their end."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import event

from include.errors import AlmanacError, BadInput, Permanent, Transient
from include.nifya import admin_jobs, job_runs, job_series
from include.nifya.job_types import NotReached
from include.run import Run
from include.statements import statement
from tests.nifya.conftest import DAILY, DIGEST, FOR_IT, PROCESS, SUBSCRIPTION, Jobs

MADRID = ZoneInfo("Europe/Madrid")
HOUR = timedelta(hours=1)


def says(answer: AlmanacError | None) -> Any:
    """Return handlers that answer the same for every job."""

    def handler(run: Run, outside: Any, datas: Sequence[Any]) -> Sequence[AlmanacError | None]:
        return [answer] * len(datas)

    return {PROCESS: handler, DIGEST: handler}


WELL, BROKEN, DOWN = says(None), says(Permanent("boe: no such section")), says(Transient("boe: 503"))


def test_a_job_without_a_schedule_runs_once(jobs: Jobs) -> None:
    """R1: one-off work ends as completed, and nothing follows it; the next run finds nothing."""
    job = jobs.add()
    assert jobs.perform(WELL).counts["completed"] == 1
    row = jobs.row(job)
    assert (row.status, row.attempts, row.error, row.claimed_by) == ("completed", 1, None, None)
    assert row.last_run_at is not None
    assert row.finished_at >= row.last_run_at
    assert jobs.after(job) == []
    assert jobs.perform(WELL).counts["processed"] == 0


@pytest.mark.parametrize("handlers", [WELL, BROKEN], ids=["completed", "failed"])
def test_a_recurring_job_is_followed(jobs: Jobs, handlers: Any) -> None:
    """Ruling NIFYA: its end and the next row are one transaction, after a failure too; missed days are one run."""
    job = jobs.add(schedule=DAILY, ago=timedelta(days=9), created_by="ana")
    jobs.perform(handlers)
    (following,) = jobs.after(job)
    assert following.status == "pending"
    assert (following.type, following.data, following.schedule) == (PROCESS, FOR_IT, DAILY)
    assert following.created_by == "ana"
    local = following.next_run_at.astimezone(MADRID)
    assert (local.hour, local.minute) == (9, 0)
    assert timedelta(0) < following.next_run_at - datetime.now(UTC) <= 25 * HOUR


def test_a_series_keeps_its_name(jobs: Jobs) -> None:
    """The third row must be known by the first, or no history and no uniqueness would hold."""
    job = jobs.add(schedule={"type": "interval", "intervalMs": 3_600_000})
    jobs.perform(WELL)
    (second,) = jobs.after(job)
    jobs.set(second.id, next_run_at=second.next_run_at - HOUR, series_id=job)
    jobs.perform(WELL)
    assert [row.status for row in jobs.after(job)] == ["completed", "pending"]


def test_an_interval_is_counted_from_the_planned_time(jobs: Jobs) -> None:
    """T5: a run that was 10 minutes late doesn't move the runs after it."""
    job = jobs.add(schedule={"type": "interval", "intervalMs": 3_600_000}, ago=timedelta(minutes=10))
    jobs.perform(WELL)
    (following,) = jobs.after(job)
    assert following.next_run_at == jobs.row(job).next_run_at + HOUR


def test_a_transient_failure_is_tried_again_after_60_and_300_seconds(jobs: Jobs) -> None:
    """A parser that is down for a minute costs no run; the planned time stays what it was."""
    job = jobs.add(schedule=DAILY)
    planned = jobs.row(job).next_run_at
    for attempt, delay in ((1, 60), (2, 300)):
        before = datetime.now(UTC)
        assert jobs.perform(DOWN).counts["retried"] == 1
        row = jobs.row(job)
        assert (row.status, row.attempts, row.error) == ("pending", attempt, "boe: 503")
        assert before < row.retry_at - timedelta(seconds=delay) < datetime.now(UTC)
        assert jobs.perform(DOWN).counts["processed"] == 0
        jobs.set(job, retry_at=datetime.now(UTC))
    assert jobs.perform(DOWN).counts["failed"] == 1
    row = jobs.row(job)
    assert (row.status, row.attempts, row.next_run_at) == ("failed", 3, planned)
    assert len(jobs.after(job)) == 1


@pytest.mark.parametrize(
    ("type_", "data", "reason"),
    [
        ("reticulate-splines", {}, "is not one of process-subscription, send-digest-emails"),
        (PROCESS, {}, "missing required field `subscriptionId`"),
        (PROCESS, {"subscriptionId": "12"}, "UUID"),
        (PROCESS, [], "Expected `object`"),
        (PROCESS, FOR_IT | {"all": True}, "unknown field `all`"),
        (DIGEST, {"hourOfDay": "24"}, "hourOfDay"),
        (DIGEST, {"hourOfDay": 9.5}, "hourOfDay"),
    ],
)
def test_a_job_that_says_nothing_sensible_fails_alone(jobs: Jobs, type_: str, data: Any, reason: str) -> None:
    """Ruling 6: an application may write anything; that row fails at once and says why, the others go on."""
    bad, good = jobs.add(type_, data=data), jobs.add()
    run = jobs.perform(WELL)
    assert (jobs.row(bad).status, jobs.row(good).status) == ("failed", "completed")
    assert reason in jobs.row(bad).error
    assert (run.counts["failed"], run.counts["completed"]) == (1, 1)


@pytest.mark.parametrize("hour", ["09", "9", 9, 0, "23", None])
def test_the_hours_of_a_digest(jobs: Jobs, hour: Any) -> None:
    """Both "09" and 9 stand in rows that applications write."""
    seen: list[int | None] = []

    def handler(run: Run, outside: Any, datas: Sequence[Any]) -> Sequence[None]:
        seen.extend(data.hour for data in datas)
        return [None] * len(datas)

    jobs.add(DIGEST, data={"hourOfDay": hour})
    jobs.perform({DIGEST: handler})
    assert seen == [None if hour is None else int(hour)]


def test_the_jobs_of_a_type_are_one_set(jobs: Jobs) -> None:
    """A thousand subscriptions must not cost a thousand round trips: the handler gets all that are due together."""
    calls: list[int] = []

    def handler(run: Run, outside: Any, datas: Sequence[Any]) -> Sequence[None]:
        calls.append(len(datas))
        return [None] * len(datas)

    for _ in range(30):
        jobs.add()
    jobs.perform({PROCESS: handler})
    assert calls == [30]


def test_a_handler_that_breaks_on_one_job(jobs: Jobs) -> None:
    """Ruling 6: a bug that one job's data brings out fails that job, and no other of its set."""
    bad = jobs.add(data={"subscriptionId": str(uuid.UUID(int=13))})
    good = [jobs.add() for _ in range(7)]

    def handler(run: Run, outside: Any, datas: Sequence[Any]) -> Sequence[None]:
        if any(data.subscription_id.int == 13 for data in datas):
            raise KeyError("thirteen")
        run.count("seen", len(datas))
        return [None] * len(datas)

    run = jobs.perform({PROCESS: handler})
    assert [jobs.row(job).status for job in good] == ["completed"] * 7
    assert (jobs.row(bad).status, jobs.row(bad).error) == ("pending", "KeyError: 'thirteen'")
    assert run.counts["seen"] == 7


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("DELETE FROM subscriptions", "the subscription is deleted"),
        ("UPDATE subscriptions SET active = false", "the subscription is inactive"),
    ],
)
@pytest.mark.parametrize("handlers", [WELL, BROKEN], ids=["completed", "failed"])
def test_a_subscription_that_ends(jobs: Jobs, change: str, reason: str, handlers: Any) -> None:
    """Ruling NIFYA: a subscription that is deleted or inactive ends its recurrence, and the row says why."""
    job = jobs.add(schedule=DAILY)
    jobs.execute(change)
    jobs.perform(handlers)
    assert jobs.row(job).recurrence_ended == reason
    assert jobs.after(job) == []


def test_a_digest_has_no_subscription_to_end_with(jobs: Jobs) -> None:
    """Only jobs for a subscription end with it."""
    job = jobs.add(DIGEST, schedule=DAILY)
    jobs.execute("DELETE FROM subscriptions")
    jobs.perform(WELL)
    assert len(jobs.after(job)) == 1


def test_a_schedule_that_an_application_wrote_wrong(jobs: Jobs) -> None:
    """The work is done all the same; that nothing follows is said, and no other row is held up by it."""
    bad = jobs.add(schedule={"type": "cron", "expression": "0 0 31 2 *"})
    good = jobs.add(schedule=DAILY)
    jobs.perform(WELL)
    assert jobs.row(bad).status == "completed"
    assert "names a date that never comes" in jobs.row(bad).recurrence_ended
    assert len(jobs.after(good)) == 1


def test_a_series_that_ends_unasked_is_told_once(jobs: Jobs, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody looks at a job that ran well: that it never runs again is a warning, a count and one mail."""
    bad = [jobs.add(schedule={"type": "cron", "expression": "0 0 31 2 *"}) for _ in range(3)]
    run = jobs.perform(BROKEN)
    assert run.counts["recurrences_ended"] == 3
    assert list(jobs.alerts.told.values()) == ["stuck: NIFYA: 3 recurring jobs have ended"]
    assert all(f"recordId={job}" in caplog.text for job in bad)
    retried(jobs, bad[0])
    run = jobs.perform(BROKEN)
    assert (run.counts["recurrences_ended"], len(jobs.alerts.told)) == (0, 1)


def test_a_series_that_was_ended_is_not_told(jobs: Jobs) -> None:
    """Whoever ends a subscription knows that its jobs end."""
    jobs.add(schedule=DAILY)
    jobs.execute("UPDATE subscriptions SET active = false")
    assert jobs.perform(WELL).counts["recurrences_ended"] == 0
    assert jobs.alerts.told == {}


def test_a_json_null_is_no_schedule(jobs: Jobs) -> None:
    """R5: JSON null and SQL NULL mean the same, whichever the application wrote."""
    job = jobs.add()
    jobs.execute("UPDATE scheduled_jobs SET schedule = 'null'")
    jobs.perform(WELL)
    row = jobs.row(job)
    assert (row.status, row.recurrence_ended, jobs.after(job)) == ("completed", None, [])


def test_a_series_has_one_open_job(jobs: Jobs) -> None:
    """A failed row that is tried again by hand must not begin a second line beside the one that went on."""
    job = jobs.add(schedule=DAILY)
    jobs.perform(BROKEN)
    with jobs.database.transaction() as tx:
        assert job_runs.QUEUE.retry(tx, [job], "ana") == {job}
    jobs.execute(
        'UPDATE scheduled_jobs SET schedule = \'{"type": "daily", "hourOfDay": 3}\' WHERE status = \'pending\''
    )
    jobs.perform(WELL)
    assert jobs.row(job).status == "completed"
    assert len(jobs.after(job)) == 1


def test_two_workers_that_end_one_series_at_once(jobs: Jobs) -> None:
    """Ruling NIFYA: the next row is unique per series and time, held by the database where neither sees the other."""
    first = jobs.add(schedule=DAILY, ago=3 * HOUR)
    second = jobs.add(schedule=DAILY, ago=2 * HOUR, series_id=first)
    jobs.execute("UPDATE scheduled_jobs SET status = 'processing'")
    jobs.execute("UPDATE scheduled_jobs SET status = 'completed'")
    problems: list[Exception] = []

    def other() -> None:
        try:
            with jobs.database.transaction() as tx:
                job_series.follow_completed(tx, [second])
        except Exception as error:  # noqa: BLE001 - whatever it is, the test tells it
            problems.append(error)

    with jobs.database.transaction() as tx:
        job_series.follow_completed(tx, [first])
        thread = threading.Thread(target=other)
        thread.start()
        # It waits for what this one does with the row of the same time.
        thread.join(1)
        assert thread.is_alive()
    thread.join(30)
    assert problems == []
    assert [row.status for row in jobs.after(first)] == ["completed", "pending"]


def retried(jobs: Jobs, job: uuid.UUID) -> None:
    """Try a failed job again, as a person does."""
    with jobs.database.transaction() as tx:
        assert job_runs.QUEUE.retry(tx, [job], "ana") == {job}


@pytest.mark.parametrize("open_one", ["first", "later"])
def test_a_job_that_is_worked_on_is_open_too(jobs: Jobs, open_one: str) -> None:
    """One line a series, whichever of its rows a worker has just now: the first, which names it, or a later one."""
    first = jobs.add(schedule=DAILY)
    jobs.perform(BROKEN)
    (later,) = jobs.after(first)
    retried(jobs, first)
    held, ends = (first, later.id) if open_one == "first" else (later.id, first)
    # Of another plan than the row that would follow, so that the unique key does not hold it off.
    jobs.set(later.id, next_run_at=datetime.now(UTC) - HOUR, retry_at=datetime.now(UTC) + HOUR)
    jobs.set(first, retry_at=datetime.now(UTC) + HOUR)
    jobs.set(held, retry_at=datetime.now(UTC) - HOUR)
    with jobs.database.transaction() as tx:
        assert [claim.key for claim in job_runs.QUEUE.claim(tx, "another worker", 10)] == [held]
    jobs.set(ends, retry_at=datetime.now(UTC) - HOUR)
    assert jobs.perform(WELL).counts["completed"] == 1
    assert len(jobs.after(first)) == 1


def test_a_time_at_which_a_job_has_ended_is_passed_over(jobs: Jobs) -> None:
    """A series must not die silently: where a row that has ended stands at its next time, the one after is next."""
    first = jobs.add(schedule=DAILY)
    jobs.perform(WELL)
    (second,) = jobs.after(first)
    taken = second.next_run_at
    jobs.set(second.id, retry_at=datetime.now(UTC) - HOUR)
    jobs.perform(WELL)
    third = jobs.after(first)[1]
    jobs.set(third.id, next_run_at=datetime.now(UTC) - HOUR)
    jobs.perform(WELL)
    (fourth,) = [row for row in jobs.after(first) if row.status == "pending"]
    assert fourth.next_run_at - taken in (23 * HOUR, 24 * HOUR, 25 * HOUR)


def test_a_series_whose_next_times_are_all_taken(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """No recurring job without a follower and without a reason, however odd the rows beside it."""
    monkeypatch.setattr(job_series, "_MOST_TIMES", 3)
    job = jobs.add(schedule={"type": "interval", "intervalMs": 3_600_000}, ago=timedelta(minutes=1))
    planned = jobs.row(job).next_run_at
    for n in range(1, 4):
        jobs.add(series_id=job, next_run_at=planned + n * HOUR)
    jobs.execute("UPDATE scheduled_jobs SET status = 'processing' WHERE series_id IS NOT NULL")
    jobs.execute("UPDATE scheduled_jobs SET status = 'completed' WHERE series_id IS NOT NULL")
    assert jobs.perform(WELL).counts["recurrences_ended"] == 1
    assert jobs.row(job).recurrence_ended == "the series has jobs at each of its next 3 times"


def test_a_success_of_a_job_that_is_tried_again_ends_the_streak(jobs: Jobs) -> None:
    """Three in a row: a run that a person had repeated, and that went well, is between them."""
    job = jobs.add(schedule=DAILY, failures_in_row=2, failing_since=datetime.now(UTC) - 48 * HOUR)
    jobs.perform(BROKEN)
    (following,) = jobs.after(job)
    assert (following.failures_in_row, following.failing_told) == (3, True)
    retried(jobs, job)
    jobs.perform(WELL)
    (following,) = jobs.after(job)
    assert (following.failures_in_row, following.failing_since) == (0, None)
    assert (following.failing_told, following.failing_cause) == (False, None)


def test_what_the_time_did_not_reach_is_given_back(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow parser must not use up the tries of jobs that nobody came to."""
    monkeypatch.setattr(job_runs, "SECONDS", 0.3)
    done, left = jobs.add(), jobs.add()
    answered: list[Any] = []

    def slow(run: Run, outside: Any, datas: Sequence[Any]) -> Sequence[AlmanacError | None]:
        answered.append(None)
        first: list[AlmanacError | None] = [None if len(answered) == 1 else NotReached("the time was up")]
        return first + [NotReached("the time was up")] * (len(datas) - 1)

    run = jobs.perform({PROCESS: slow})
    rows = sorted((jobs.row(job) for job in (done, left)), key=lambda row: row.status)
    assert [(row.status, row.attempts) for row in rows] == [("completed", 1), ("pending", 0)]
    assert (rows[1].retry_at, rows[1].claimed_by, rows[1].error) == (None, None, None)
    assert (run.counts["processed"], run.counts["failed"], run.counts["retried"]) == (1, 0, 0)


def test_a_lost_claim(jobs: Jobs) -> None:
    """R2, R8: a worker that is killed each time ends the row after its attempts, and the series goes on."""
    job = jobs.add(schedule=DAILY)
    for attempt in (1, 2, 3):
        with jobs.database.transaction() as tx:
            (claim,) = job_runs.QUEUE.claim(tx, f"worker {attempt}", 10)
        assert claim.attempt == attempt
        assert jobs.perform(WELL).counts["taken_back"] == 0
        jobs.set(job, heartbeat_at=datetime.now(UTC) - HOUR)
        jobs.perform(WELL)
        jobs.execute(
            "UPDATE scheduled_jobs SET retry_at = now() WHERE status = 'pending' AND retry_at IS NOT NULL"
        )
    row = jobs.row(job)
    assert (row.status, row.error) == ("failed", "the worker has not been heard of")
    assert len(jobs.after(job)) == 1


def test_a_worker_that_comes_back_too_late(jobs: Jobs) -> None:
    """R6: what was taken away is not ended by its old holder, and nothing follows twice."""
    job = jobs.add(schedule=DAILY)

    def slow(run: Run, outside: Any, datas: Sequence[Any]) -> Sequence[None]:
        jobs.set(job, heartbeat_at=datetime.now(UTC) - HOUR)
        job_runs.take_back(jobs.run())
        jobs.set(job, retry_at=datetime.now(UTC) - HOUR)
        jobs.perform(WELL)
        return [None] * len(datas)

    run = jobs.perform({PROCESS: slow})
    assert (run.counts["stale"], run.counts["completed"]) == (1, 0)
    assert (jobs.row(job).status, jobs.row(job).attempts) == ("completed", 2)
    assert len(jobs.after(job)) == 1


def test_three_failures_in_a_row_are_told_once(jobs: Jobs) -> None:
    """Ruling NIFYA: an alert after three failed runs in a row, one a streak; a success ends the streak."""
    job = jobs.add(schedule=DAILY)

    def next_run(handlers: Any) -> int:
        jobs.execute("UPDATE scheduled_jobs SET retry_at = now() WHERE status = 'pending'")
        jobs.perform(handlers)
        return len(jobs.alerts.told)

    # Nothing else is unique about the days, so each run's plan lies an hour further back than the next one's.
    told = []
    for handlers in (BROKEN, BROKEN, BROKEN, BROKEN, WELL, BROKEN, BROKEN, BROKEN, BROKEN):
        told.append(next_run(handlers))
        jobs.execute(
            "UPDATE scheduled_jobs SET next_run_at = next_run_at - interval '10 days' WHERE status <> 'pending'"
        )
    assert told == [0, 0, 1, 1, 1, 1, 1, 2, 2]
    assert len(jobs.after(job)) == 9
    assert all("failed 3 times in a row" in words for words in jobs.alerts.told.values())


def test_many_that_fail_together_are_one_alert(jobs: Jobs) -> None:
    """A parser that is down fails every job: one mail with a number, not a thousand mails."""
    for _ in range(25):
        jobs.add(schedule=DAILY, failures_in_row=2, failing_since=datetime.now(UTC) - 48 * HOUR)
    run = jobs.perform(BROKEN)
    assert run.counts["alerts"] == 1
    assert list(jobs.alerts.told.values()) == ["stuck: NIFYA: 25 jobs have failed 3 times in a row"]


def test_killed_between_the_alert_and_its_mark(jobs: Jobs) -> None:
    """Ruling 3: told and not yet marked, it is told again under the same cause, which the ledger knows."""
    job = jobs.add(schedule=DAILY, failures_in_row=2, failing_since=datetime.now(UTC) - 48 * HOUR)

    def die(conn: Any, cursor: Any, sql: str, *rest: Any) -> None:
        if "failing_told = TRUE" in sql:
            raise KeyboardInterrupt

    event.listen(jobs.database.engine, "before_cursor_execute", die)
    with pytest.raises(KeyboardInterrupt):
        jobs.perform(BROKEN)
    event.remove(jobs.database.engine, "before_cursor_execute", die)
    assert len(jobs.alerts.told) == 1
    # Another series fails meanwhile, and the first one once more: the one is told of alone, the other not again.
    jobs.add(schedule=DAILY, failures_in_row=2, failing_since=datetime.now(UTC) - 47 * HOUR)
    (following,) = jobs.after(job)
    jobs.set(following.id, next_run_at=datetime.now(UTC) - HOUR)
    assert jobs.perform(BROKEN).counts["alerts"] == 1
    assert list(jobs.alerts.told.values()) == ["stuck: NIFYA: a job has failed 3 times in a row"] * 2
    assert {row.failing_told for row in jobs.after(job) if row.status == "pending"} == {True}
    assert jobs.perform(BROKEN).counts["alerts"] == 0


def test_a_job_by_its_id_runs_before_its_time(jobs: Jobs) -> None:
    """T1: a person wants it now, and its next time must not be skipped for that: a copy runs, once."""
    job = jobs.add(schedule=DAILY, ago=-2 * HOUR, created_by="ana")
    before = jobs.row(job)
    assert jobs.perform(WELL).counts["processed"] == 0
    for _ in range(2):
        job_runs.make_due(jobs.run(), job)
    assert jobs.perform(WELL).counts["completed"] == 1
    assert jobs.row(job) == before
    assert jobs.after(job) == []
    jobs.set(job, next_run_at=datetime.now(UTC) - HOUR)
    assert jobs.perform(WELL).counts["completed"] == 1
    assert len(jobs.after(job)) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"ago": -2 * HOUR},
        {"ago": HOUR, "schedule": DAILY, "retry_at": datetime(2099, 1, 1, tzinfo=UTC), "attempts": 1},
        {"ago": -2 * HOUR, "schedule": DAILY, "retry_at": datetime(2099, 1, 1, tzinfo=UTC), "attempts": 1},
    ],
    ids=["once", "waits for another try", "waits for another try before its time"],
)
def test_a_job_by_its_id_that_is_due_itself(jobs: Jobs, values: dict[str, Any]) -> None:
    """What runs but once is done then; what is late runs now, and not once more at its next try."""
    job = jobs.add(**values)
    planned = jobs.row(job).next_run_at
    job_runs.make_due(jobs.run(), job)
    assert jobs.perform(WELL).counts["completed"] == 1
    assert (jobs.row(job).status, jobs.row(job).next_run_at) == ("completed", planned)


def test_a_change_that_comes_too_late(jobs: Jobs) -> None:
    """Ruling 16: the statement itself changes no row that is worked on, whatever was read before."""
    job = jobs.add(schedule=DAILY)
    with jobs.database.transaction() as tx:
        job_runs.QUEUE.claim(tx, "a worker", 10)
        values = {"type": DIGEST, "data": "{}", "schedule": None, "next_run_at": datetime.now(UTC)}
        assert tx.value(statement(job_runs.PACKAGE, "update_job"), job_id=job, **values) is None


def test_two_changes_at_once_are_both_kept(jobs: Jobs) -> None:
    """R4: the second waits until the first is in, and starts from it."""
    job = jobs.add(schedule=DAILY, ago=-2 * HOUR)
    data = FOR_IT | {"userId": "ana"}
    at = datetime(2030, 1, 1, tzinfo=UTC)

    def other() -> None:
        with jobs.database.transaction() as tx:
            admin_jobs.change_job(tx, job, admin_jobs.JobChange(next_run_at=at))

    with jobs.database.transaction() as tx:
        admin_jobs.change_job(tx, job, admin_jobs.JobChange(data=data))
        thread = threading.Thread(target=other)
        thread.start()
        # It has begun, and would have read the job by now if nothing held it.
        thread.join(1)
        assert thread.is_alive()
    thread.join(30)
    assert (jobs.row(job).data, jobs.row(job).next_run_at) == (data, at)


def test_a_job_by_its_id_that_can_not_run(jobs: Jobs) -> None:
    """A run for nothing would look like a success; it says what is the matter instead."""
    with pytest.raises(BadInput, match="there is no job"):
        job_runs.make_due(jobs.run(), uuid.uuid4())
    job = jobs.add()
    jobs.perform(WELL)
    with pytest.raises(BadInput, match="is completed; only one that waits"):
        job_runs.make_due(jobs.run(), job)


def test_two_runs_at_once_share_the_jobs(jobs: Jobs) -> None:
    """A cron run and an event's may overlap: every job runs once."""
    for _ in range(150):
        jobs.add(schedule=DAILY)
    seen: list[int] = []

    def handler(run: Run, outside: Any, datas: Sequence[Any]) -> Sequence[None]:
        seen.append(len(datas))
        return [None] * len(datas)

    threads = [threading.Thread(target=jobs.perform, args=({PROCESS: handler},)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(seen) == 150


def test_the_subscription_is_the_one_that_the_handler_gets(jobs: Jobs) -> None:
    """The data arrive parsed: an id as an id."""
    got: list[Any] = []

    def handler(run: Run, outside: Any, datas: Sequence[Any]) -> Sequence[None]:
        got.extend(datas)
        return [None] * len(datas)

    jobs.add(data=FOR_IT | {"userId": "ana"})
    jobs.perform({PROCESS: handler})
    assert [(data.subscription_id, data.user_id) for data in got] == [(SUBSCRIPTION, "ana")]
