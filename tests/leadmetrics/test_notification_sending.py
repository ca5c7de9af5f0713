"""Notifications go out once, into the application's queue or as mail, wherever a run is killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine, event, text

from include.errors import Outage
from include.job import perform
from include.leadmetrics import notification_sending, scheduled_tasks, tables
from include.leadmetrics.mail_templates import SLUGS
from include.leadmetrics.notifications import QueuedJob
from include.mail import Accepted, Deferred, Outcome
from include.preview import preview
from include.run import Database, EngineDatabase, Run
from tests.leadmetrics.redis_server import RedisServer, redis_server
from tests.leadmetrics.rows import ALERT, EARLY, LATE, Rows
from tests.leadmetrics.world import time_passes

__all__ = ["redis_server"]

HOUR = timedelta(hours=1)


class Killed(BaseException):
    """The process is gone."""


@dataclass
class FakeQueue:
    """BullMQ in memory: a job that is known is not added again; `down` says how it fails."""

    tick: Callable[[str], None] = lambda what: None
    remembers: timedelta = timedelta(hours=47)
    down: Deferred | None = None
    jobs: list[QueuedJob] = field(default_factory=list)
    asked: int = 0

    def check(self) -> None:
        self.tick("check")
        if self.down is not None and self.down.certain:
            raise Outage(self.down.reason)

    def add(self, jobs: Sequence[QueuedJob]) -> Sequence[Outcome]:
        self.tick("add before")
        self.asked += 1
        if self.down is not None:
            return [self.down] * len(jobs)
        known = {job.job_id for job in self.jobs}
        self.jobs += [job for job in jobs if job.job_id not in known]
        self.tick("add after")
        return [Accepted(job.job_id) for job in jobs]


@pytest.fixture
def queue(rows: Rows) -> FakeQueue:
    """Let the connection to the application's queue exist."""
    rows.queue = FakeQueue()
    return rows.queue


def standing(rows: Rows) -> dict[str, str]:
    """Return the notifications' statuses by key."""
    return {row.dedupe_key: row.status for row in rows.outbox()}


def test_the_queue_goes_before_mail(rows: Rows, queue: FakeQueue) -> None:
    """With Redis, the application's workers deliver: the job's id is the key, and no mail goes out."""
    rows.task(EARLY, rows.session(id="abc"))
    run = rows.perform()
    assert [(job.job_id, job.data["templateSlug"]) for job in queue.jobs] == [
        ("signup-reminder-early__abc", "signup-reminder-early")
    ]
    assert standing(rows) == {"signup-reminder-early__abc": "queued"}
    assert (run.counts["sent"], rows.mail.requests) == (1, 0)


def killed_at(die_at: int, rows: Rows, queue: FakeQueue) -> list[str]:
    """Run the job and end the process at one event; return what happened until then."""
    events: list[str] = []

    def tick(what: str) -> None:
        events.append(what)
        if len(events) == die_at:
            raise Killed(what)

    def statement(conn: Any, cursor: Any, sql: str, *rest: Any) -> None:
        tick(sql.split("\n", maxsplit=1)[0])

    def commit(conn: Any) -> None:
        tick("commit")

    queue.tick = tick
    event.listen(rows.db.engine, "before_cursor_execute", statement)
    event.listen(rows.db.engine, "commit", commit)
    try:
        rows.perform()
    except Killed:
        rows.db.engine.dispose()
    finally:
        queue.tick = lambda what: None
        event.remove(rows.db.engine, "before_cursor_execute", statement)
        event.remove(rows.db.engine, "commit", commit)
    return events


def test_killed_anywhere_on_the_way_to_the_queue(rows: Rows, queue: FakeQueue) -> None:
    """E1, ruling 3: killed at every statement, commit and call and run again, each job is there once."""

    def set_anew() -> None:
        for table in reversed(tables.METADATA.sorted_tables):
            rows.execute(f'DELETE FROM "{table.name}"')
        queue.jobs.clear()
        session = rows.session(id="abc")
        rows.notification(SLUGS[1], rows.session(id="another"))
        for kind in (EARLY, ALERT):
            rows.task(kind, session)

    set_anew()
    clean = killed_at(0, rows, queue)
    jobs = sorted(job.job_id for job in queue.jobs)
    assert len(jobs) == 3
    assert len(clean) > 20
    for die_at in range(1, len(clean) + 1):
        set_anew()
        killed_at(die_at, rows, queue)
        with rows.db.engine.begin() as connection:
            time_passes(connection)
        rows.perform()
        assert sorted(job.job_id for job in queue.jobs) == jobs, f"after {clean[die_at - 1]}"
        assert set(standing(rows).values()) == {"queued"}, f"after {clean[die_at - 1]}"
        assert {row.status for row in rows.all(tables.SCHEDULED_TASK)} == {"completed"}


def test_a_run_that_was_killed_over_a_real_redis(rows: Rows, redis_server: RedisServer) -> None:
    """E1: the job was added and taken, the run died before it wrote so: the next run's job is no second one."""
    bull = redis_server.bull()

    class Dies:
        remembers = bull.remembers
        check = staticmethod(bull.check)

        def add(self, jobs: Sequence[QueuedJob]) -> Sequence[Outcome]:
            bull.add(jobs)
            raise Killed

    for kind in (EARLY, LATE, ALERT):
        rows.task(kind, rows.session())
    rows.queue = Dies()
    with redis_server.worker(forgets=True) as worker:
        with pytest.raises(Killed):
            rows.perform()
        assert len(worker.given(3)) == 3
        assert set(standing(rows).values()) == {"pending"}
        rows.queue = bull
        rows.perform()
        assert set(standing(rows).values()) == {"queued"}
        assert len(worker.given(3)) == 3


@pytest.mark.parametrize("certain", [True, False], ids=["before", "in the middle"])
def test_redis_is_away(rows: Rows, queue: FakeQueue, certain: bool) -> None:  # noqa: FBT001 - a case
    """An outage is nobody's failure: the tasks are done, the jobs wait, one alert tells of it until it is over."""
    queue.down = Deferred("connection refused", certain=certain)
    task = rows.task()
    for _ in range(2):
        run = rows.perform()
        assert run.state == "deferred"
        assert set(standing(rows).values()) == {"pending"}
        assert rows.alerts.outages == {"leadmetrics_redis": "connection refused"}
    assert rows.one(task).status == "completed"
    queue.down = None
    assert rows.perform().state == "success"
    assert (len(queue.jobs), rows.alerts.outages) == (1, {})


@pytest.mark.parametrize("by_queue", [True, False])
def test_a_registration_that_goes_on_at_the_last_moment(rows: Rows, queue: FakeQueue, by_queue: bool) -> None:  # noqa: FBT001 - a case
    """Ruling 16: what the run saw is asked again where the reminder is handed over; the next run calls it off."""
    rows.queue = queue if by_queue else None
    rows.notification(SLUGS[0], rows.session(id="abc"))
    run = rows.run()
    notification_sending.cancel_overtaken(run)
    rows.execute("""UPDATE registration_session SET "currentStage" = 'complete'""")
    if by_queue:
        notification_sending.to_queue(run, queue, rows.alerts)
    else:
        notification_sending.by_mail(run, rows.mail, rows.alerts)
    assert (queue.jobs, rows.mail.delivered) == ([], [])
    rows.perform()
    assert [row.status for row in rows.outbox()] == ["cancelled"]


def test_what_redis_may_have_forgotten(rows: Rows, queue: FakeQueue) -> None:
    """Ruling 3: begun, never confirmed, and so old that its id protects no more: a person decides."""
    old, young = datetime.now(UTC) - timedelta(hours=48), datetime.now(UTC) - timedelta(hours=46)
    for session, begun in (("old", old), ("young", young)):
        rows.notification(SLUGS[2], session, sink="redis", begun_at=begun)
    run = rows.perform()
    assert standing(rows) == {
        "signup-alert-internal__old": "unknown",
        "signup-alert-internal__young": "queued",
    }
    assert [job.job_id for job in queue.jobs] == ["signup-alert-internal__young"]
    assert run.counts["unknown"] == 1
    rows.perform()
    assert standing(rows)["signup-alert-internal__old"] == "unknown"


def test_a_sink_that_is_gone(rows: Rows) -> None:
    """What Redis may have is not mailed as well when the connection goes away; what it surely has not is."""
    rows.notification(SLUGS[2], "begun", sink="redis", begun_at=datetime.now(UTC))
    rows.notification(SLUGS[2], "fresh")
    run = rows.perform()
    assert standing(rows) == {
        "signup-alert-internal__begun": "pending",
        "signup-alert-internal__fresh": "sent",
    }
    assert "notifications that wait for redis, which may have them: 1" in run.notes


def test_one_bad_row_on_the_way_to_the_queue(rows: Rows, queue: FakeQueue) -> None:
    """Ruling 6: a row that the database refuses to change is counted, and every other job is added."""
    bad = rows.notification(SLUGS[2], "a")
    for session in "bcd":
        rows.notification(SLUGS[2], session)
    rows.execute(
        "CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'this row is bad' USING ERRCODE = '23514'; END $$"
    )
    rows.execute(
        "CREATE TRIGGER bad BEFORE UPDATE ON notification_outbox FOR EACH ROW "
        f"WHEN (OLD.id = '{bad}') EXECUTE FUNCTION bad()"
    )
    run = rows.perform()
    assert (run.counts["sent"], run.counts["failed"], len(queue.jobs)) == (3, 1, 3)


def test_a_preview_adds_nothing(rows: Rows, queue: FakeQueue) -> None:
    """Ruling 9: it shows the jobs that a run would add, asks nothing of Redis, and changes nothing."""
    rows.task(EARLY, rows.session(id="abc"))

    def make_run(db: Database) -> Run:
        run = rows.run()
        run.db, run.preview = db, True
        return run

    shown = preview(rows.db.engine, scheduled_tasks, make_run, rows.outside())
    assert shown["messages"]["shown"] == [{"to": "abc@example.test", "subject": "signup-reminder-early"}]
    assert (queue.asked, queue.jobs, rows.outbox()) == (0, [], [])
    assert rows.perform().counts["sent"] == 1


@pytest.mark.parametrize("by_queue", [True, False], ids=["queue", "mail"])
def test_no_transaction_is_open_at_any_call(rows: Rows, by_queue: bool) -> None:  # noqa: FBT001 - a case
    """R5: while Redis or the provider is asked, no session of the database stands in a transaction."""
    watched: list[tuple[str, int]] = []
    watcher = create_engine(rows.db.engine.url)

    def watch(what: str) -> None:
        with watcher.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            number = connection.execute(
                text(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND pid <> pg_backend_pid() AND (state LIKE 'idle in transaction%' OR state = 'active')"
                )
            ).scalar_one()
        watched.append((what, number))

    if by_queue:
        rows.queue = FakeQueue(tick=watch)
    else:
        rows.mail.tick = rows.alerts.tick = watch
    for _ in range(3):
        rows.task()
    rows.perform()
    watcher.dispose()
    assert len(watched) >= 2
    assert [what for what, number in watched if number] == []


def test_two_runs_side_by_side_send_once(rows: Rows, queue: FakeQueue) -> None:
    """R4: what one run has begun, another that overlaps it does not add to."""
    rows.task()
    run = rows.run()
    outside = rows.outside()
    scheduled_tasks.run_due_tasks(run, outside)
    with (
        EngineDatabase(rows.db.engine).alone(scheduled_tasks.ALONE),
        pytest.raises(Exception, match="another run"),
    ):
        scheduled_tasks.send_notifications(run, outside)
    for _ in range(2):
        scheduled_tasks.send_notifications(run, outside)
    assert (len(queue.jobs), queue.asked) == (1, 1)


def test_a_mail_that_was_begun_and_never_answered(rows: Rows) -> None:
    """E1: the provider has it, the run died; sent again under the same key it is the same mail, once."""
    rows.task(ALERT, "s", payload={"sessionId": "s", "email": "a@b.test"})

    def dies(what: str) -> None:
        if what == "mail after":
            raise Killed

    rows.mail.tick = dies
    with pytest.raises(Killed):
        rows.perform()
    rows.db.engine.dispose()
    rows.mail.tick = lambda what: None
    run = rows.perform()
    assert (len(rows.mail.delivered), rows.mail.requests) == (1, 2)
    assert (run.counts["sent"], set(standing(rows).values())) == (1, {"sent"})


def test_the_steps_are_the_specifications(rows: Rows) -> None:
    """Poll, claim, execute and mark are one step for each chunk; then what they made goes out."""
    assert [step.__name__ for step in scheduled_tasks.STEPS] == [
        "run_due_tasks",
        "send_notifications",
        "report_queue",
    ]
    rows.task()
    run = rows.run()
    perform(scheduled_tasks, run, rows.outside())
    with rows.db.engine.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM notification_outbox")).scalar_one() == 1
