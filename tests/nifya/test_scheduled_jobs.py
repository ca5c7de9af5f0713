"""The scheduler with its real handlers: subscriptions are processed, digests go out, outages wait."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, insert, select

from include.as_of import local_date
from include.job import perform
from include.mail import Deferred
from include.nifya import ZONE, scheduled_jobs, tables
from include.preview import preview
from include.run import Database, EngineDatabase, Run
from tests.fakes.world import FakeAlerts, FakeMail
from tests.nifya import world
from tests.nifya.conftest import DAILY, DIGEST, PROCESS, SUBSCRIPTION, Jobs


class Scheduler:
    """Jobs with the gazettes, the mail and the ledger that they reach."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        today = local_date(datetime.now(UTC), ZONE)
        published = [(today, world.content("Beca de hoy", "https://www.boe.es/today"))]
        self.gazettes = world.FakeGazettes({"boe": published})
        self.mail = FakeMail(default_sender="NIFYA <hola@nifya.test>")
        self.alerts = FakeAlerts()
        self.outside = scheduled_jobs.Outside(self.gazettes, self.mail, self.alerts)
        # The user's hour was crossed since there is the user.
        jobs.execute("UPDATE users SET created_at = now() - interval '3 days'")

    def run(self, database: Database | None = None, **params: Any) -> Run:
        return Run(
            job=scheduled_jobs.NAME, run_id="run 1", as_of=datetime.now(UTC), zone=ZONE,
            db=database or self.jobs.database, params={"job_id": None} | params,
            settings=dict(world.SETTINGS),
        )  # fmt: skip

    def perform(self, **params: Any) -> Run:
        run = self.run(**params)
        perform(scheduled_jobs, run, self.outside)
        return run

    def titles(self) -> list[str]:
        with self.engine.connect() as connection:
            return list(connection.execute(select(tables.NOTIFICATIONS.c.title)).scalars())

    @property
    def engine(self) -> Engine:
        return self.jobs.database.engine


@pytest.fixture
def scheduler(database_of: Callable[..., EngineDatabase]) -> Scheduler:
    """Return a scheduler over a database of the test's own."""
    return Scheduler(Jobs(database_of("nifya")))


def test_what_is_new_is_in_the_digest_of_the_same_run(scheduler: Scheduler) -> None:
    """Both due at nine: the digest comes after the content, whichever job is the older one."""
    digest = scheduler.jobs.add(DIGEST, data={"hourOfDay": "09"}, schedule=DAILY, ago=timedelta(hours=2))
    process = scheduler.jobs.add(PROCESS, schedule=DAILY)
    run = scheduler.perform()
    assert scheduler.titles() == ["Beca de hoy"]
    assert [message.to for message in scheduler.mail.delivered] == ["ana@example.test"]
    assert "Beca de hoy" in scheduler.mail.delivered[0].text
    assert (run.counts["processed"], run.counts["completed"], run.counts["failed"]) == (2, 2, 0)
    assert (run.counts["newNotifications"], run.counts["sent"]) == (1, 1)
    for job in (digest, process):
        assert (scheduler.jobs.row(job).status, len(scheduler.jobs.after(job))) == ("completed", 1)


def test_content_comes_first_across_chunks(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """At nine more jobs are due than one chunk holds; the digest, though the oldest, waits for all content."""
    monkeypatch.setattr("include.nifya.job_runs.CHUNK", 2)
    scheduler.jobs.add(DIGEST, ago=timedelta(hours=2))
    scheduler.jobs.add(DIGEST, data={"hourOfDay": 4})
    for _ in range(3):
        scheduler.jobs.add("reticulate-splines", ago=timedelta(hours=1))
    scheduler.jobs.add(PROCESS)
    assert scheduler.perform().counts["completed"] == 3
    assert ["Beca de hoy" in message.text for message in scheduler.mail.delivered] == [True]


def test_a_gazette_that_is_down(scheduler: Scheduler) -> None:
    """S3: HTTP 500 is tried again later; the subscription's status says why meanwhile, and content is not lost."""
    scheduler.gazettes.down.add("boe")
    job = scheduler.jobs.add()
    assert scheduler.perform().counts["retried"] == 1
    row = scheduler.jobs.row(job)
    assert (row.status, row.error) == ("pending", "gazette boe answered HTTP 500")
    scheduler.gazettes.down.clear()
    scheduler.jobs.set(job, retry_at=datetime.now(UTC))
    assert scheduler.perform().counts["completed"] == 1
    assert scheduler.titles() == ["Beca de hoy"]


def test_mail_that_can_not_go_out(scheduler: Scheduler) -> None:
    """E1: an outage of the provider is no failure of the job; the digest goes out in the first run that can send it."""
    scheduler.jobs.add()
    scheduler.perform()
    scheduler.mail.down = Deferred("HTTP 503", certain=True)
    job = scheduler.jobs.add(DIGEST)
    for _ in range(5):
        assert scheduler.perform().state == "deferred"
    assert (scheduler.jobs.row(job).status, scheduler.mail.delivered) == ("completed", [])
    assert list(scheduler.alerts.outages) == ["nifya_email"]
    scheduler.mail.down = None
    run = scheduler.perform()
    assert (run.state, run.counts["sent"], len(scheduler.mail.delivered)) == ("success", 1, 1)
    assert scheduler.perform().counts["sent"] == 0


def test_a_quota_that_is_used_up(scheduler: Scheduler) -> None:
    """E3: nothing is asked of the provider before its reset; then the next run sends, though no job is due."""
    scheduler.jobs.add()
    scheduler.jobs.add(DIGEST)
    reset = datetime.now(UTC) + timedelta(hours=1)
    scheduler.mail.down = Deferred("429 daily quota", certain=False, retry_at=reset, quota=True)
    for _ in range(4):
        scheduler.perform()
    assert scheduler.mail.requests == 1
    scheduler.mail.down = None
    scheduler.jobs.execute("UPDATE mail_pauses SET paused_until = now() - interval '1 s'")
    assert scheduler.perform().counts["sent"] == 1
    assert len(scheduler.mail.delivered) == 1


def test_a_rejected_digest_is_tried_again_by_the_runs_that_follow(scheduler: Scheduler) -> None:
    """Three tries, 15 minutes apart, are an hour's work and not three days'."""
    scheduler.mail.refuse.add("ana@example.test")
    scheduler.jobs.add()
    scheduler.jobs.add(DIGEST)
    requests = []
    for _ in range(4):
        scheduler.perform()
        scheduler.perform()
        requests.append(scheduler.mail.requests)
        scheduler.jobs.execute("UPDATE digests SET next_attempt_at = next_attempt_at - interval '15 minutes'")
    assert requests == [1, 2, 3, 3]


def test_one_parser_that_is_down_stops_no_other_subscription(scheduler: Scheduler) -> None:
    """Rulings 6 and NIFYA: after five failures a parser is left alone, and the other gazette's jobs are done."""
    scheduler.gazettes.down.add("doga")
    with scheduler.engine.begin() as connection:
        connection.execute(
            insert(tables.SUBSCRIPTIONS),
            [
                {"id": world.name("of doga", n), "user_id": "ana", "type_id": "doga", "prompts": ["beca"]}
                for n in range(8)
            ],
        )
    for n in range(8):
        scheduler.jobs.add(data={"subscriptionId": str(world.name("of doga", n))})
    good = scheduler.jobs.add()
    run = scheduler.perform()
    assert (run.counts["completed"], run.counts["retried"]) == (1, 8)
    assert scheduler.jobs.row(good).status == "completed"
    assert sum(asked[0] == "doga" for asked in scheduler.gazettes.asked) == 5


def test_a_job_by_its_id(scheduler: Scheduler) -> None:
    """The param of a manual run: the job runs before its time, and its preview shows just that; its time stays."""
    job = scheduler.jobs.add(schedule=DAILY, ago=-timedelta(days=2))
    assert scheduler.perform().counts["processed"] == 0

    def make_run(database: Database) -> Run:
        return scheduler.run(database, job_id=str(job))

    job_module: Any = scheduled_jobs
    shown = preview(scheduler.engine, job_module, make_run, scheduler.outside)
    assert shown["counts"]["completed"] == 1
    assert scheduler.titles() == []
    assert scheduler.perform(job_id=str(job)).counts["completed"] == 1
    assert scheduler.titles() == ["Beca de hoy"]
    assert (scheduler.jobs.row(job).status, scheduler.jobs.row(job).attempts) == ("pending", 0)


def test_an_explicit_as_of_narrows(scheduler: Scheduler) -> None:
    """Ruling 1: what fell due after the as-of that a person gave stays; without one the database's clock decides."""
    early = scheduler.jobs.add(ago=timedelta(hours=3))
    late = scheduler.jobs.add(ago=timedelta(minutes=5))
    run = scheduler.run()
    run.as_of, run.as_of_given = datetime.now(UTC) - timedelta(hours=1), True
    perform(scheduled_jobs, run, scheduler.outside)
    assert (scheduler.jobs.row(early).status, scheduler.jobs.row(late).status) == ("completed", "pending")
    run = scheduler.run()
    run.as_of = datetime.now(UTC) - timedelta(days=9)
    perform(scheduled_jobs, run, scheduler.outside)
    assert scheduler.jobs.row(late).status == "completed"
    with scheduler.engine.connect() as connection:
        seen = connection.execute(select(tables.SUBSCRIPTION_PROCESSING.c.last_run_at)).scalar_one()
    assert datetime.now(UTC) - seen < timedelta(minutes=1)
    assert scheduler.gazettes.asked[-1][3] == local_date(datetime.now(UTC), ZONE)


def test_an_explicit_as_of_narrows_the_sending(scheduler: Scheduler) -> None:
    """Ruling 1: a digest that fell due after the as-of that a person gave is left to the next run."""
    scheduler.jobs.add()
    scheduler.jobs.add(DIGEST)
    scheduler.mail.down = Deferred("HTTP 503", certain=True)
    scheduler.perform()
    scheduler.mail.down = None
    run = scheduler.run()
    run.as_of, run.as_of_given = datetime.now(UTC) - timedelta(days=2), True
    perform(scheduled_jobs, run, scheduler.outside)
    assert scheduler.mail.delivered == []
    scheduler.perform()
    assert len(scheduler.mail.delivered) == 1


def test_the_tries_of_a_job_are_one_run(scheduler: Scheduler) -> None:
    """Ruling NIFYA: three failed runs in a row; a job that was tried three times is one of them."""
    scheduler.gazettes.down.add("boe")
    job = scheduler.jobs.add(schedule=DAILY)
    in_row = []
    for _ in range(3):
        scheduler.perform()
        with scheduler.engine.connect() as connection:
            in_row.append(
                connection.execute(select(tables.SUBSCRIPTION_PROCESSING.c.failures_in_row)).scalar()
            )
        scheduler.jobs.execute(
            "UPDATE scheduled_jobs SET retry_at = now() WHERE status = 'pending' AND retry_at IS NOT NULL"
        )
    assert scheduler.jobs.row(job).status == "failed"
    assert in_row == [0, 0, 1]


def test_an_owner_that_is_not(scheduler: Scheduler) -> None:
    """A job in another user's name brings nothing to anybody, and fails at once."""
    job = scheduler.jobs.add(data={"subscriptionId": str(SUBSCRIPTION), "userId": "eva"}, schedule=DAILY)
    assert scheduler.perform().counts["failed"] == 1
    assert "is not of user 'eva'" in scheduler.jobs.row(job).error
    assert scheduler.titles() == []
    assert len(scheduler.jobs.after(job)) == 1
