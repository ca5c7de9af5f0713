"""The smallest ArcVest in which every branch of every job has a row, and the world around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from include.arcvest.queue_worker import SilentBell
from tests.arcvest import pipeline_world, worker_world
from tests.arcvest.application_world import FakeApplication
from tests.arcvest.pipeline_world import FakeModels
from tests.arcvest.worker_world import FakeFeeds, FakeMailbox
from tests.dags.states import EVERYTHING
from tests.fakes.world import FakeAlerts, FakeLab, FakeMail, FakeStorage, Tick, World

SETTINGS: Mapping[str, str | None] = {
    "ADMIN_ALERT_EMAIL": "ops@arcvest.test",
    **worker_world.SETTINGS,
}
PARAMS: Mapping[str, Any] = {
    "slots": 1,
    "idea_id": None,
}
BOOKKEEPING: Mapping[str, set[str]] = {
    # A claim that was lost counts, and is due again at an instant of its own.
    "job_queue": {"attempts", "next_run_at", "claimed_by"},
    "queue_audit": {"id", EVERYTHING},
    "sync_slots": {"attempts", "answer"},
}
"""Columns that count attempts, or number rows, and so differ after a repeat."""

DAYLESS: set[str] = set()
"""DAGs that do the same whatever the day: they work on what waits."""

NAMES: set[str] = set()
"""Texts by which rows are known outside: copies of a row differ in them."""


def unit(table: str, row: Mapping[str, Any]) -> Any:
    """Return what stands or falls together: a batch keeps its order, so that one of its jobs holds up others."""
    return row.get("correlation_id") or row["id"]


def time_passes(connection: Connection) -> None:
    """Let the claims of this test's run grow old; let the delay go by after which a lost one is due again.

    The attempt that it cost is given back, since the activity log tells of attempts.
    """
    connection.execute(
        text(
            "UPDATE job_queue SET heartbeat_at = heartbeat_at - interval '1 hour' "
            "WHERE status = 'processing' AND claimed_by LIKE 'run 1 %'"
        )
    )
    connection.execute(
        text(
            "CREATE OR REPLACE FUNCTION delay_goes_by() RETURNS trigger LANGUAGE plpgsql AS $$ "
            "BEGIN NEW.next_run_at := OLD.next_run_at; NEW.last_error := OLD.last_error; "
            "NEW.attempts := OLD.attempts - 1; RETURN NEW; END $$"
        )
    )
    connection.execute(
        text(
            "CREATE OR REPLACE TRIGGER delay_goes_by BEFORE UPDATE ON job_queue FOR EACH ROW "
            "WHEN (OLD.claimed_by LIKE 'run 1 %' AND NEW.status = 'pending' "
            "AND OLD.heartbeat_at < now() - interval '10 minutes') EXECUTE FUNCTION delay_goes_by()"
        )
    )


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all times are relative to `now`."""
    # The guard lets in none but pending jobs; these, and their copies, have come some way.
    connection.execute(text("ALTER TABLE job_queue DISABLE TRIGGER queue_guard_inserts"))
    worker_world.add_jobs(connection, now)
    worker_world.add_ideas(connection, now)
    pipeline_world.seed(connection, now)


@dataclass
class ArcVestWorld(World):
    """What ArcVest's jobs reach beyond their database."""

    feeds: FakeFeeds = field(default_factory=lambda: FakeFeeds({}))
    mailbox: FakeMailbox = field(default_factory=lambda: FakeMailbox([]))
    models: FakeModels = field(default_factory=FakeModels)
    application: FakeApplication = field(default_factory=FakeApplication)
    bell: SilentBell = field(default_factory=SilentBell)

    def die_by(self, tick: Tick) -> None:
        super().die_by(tick)
        self.feeds.tick = self.mailbox.tick = self.models.tick = tick
        self.application.tick = tick

    def state(self) -> Mapping[str, Any]:
        return {**super().state(), "application": dict(self.application.done)}


def world(now: datetime) -> ArcVestWorld:
    """Return the world around the seeded database."""
    return ArcVestWorld(
        mail=FakeMail(),
        alerts=FakeAlerts(),
        lab=FakeLab([]),
        storage=FakeStorage(),
        feeds=FakeFeeds(worker_world.feed_answers(now)),
        mailbox=FakeMailbox(worker_world.letters(now)),
    )


def grow(around: ArcVestWorld, copies: int) -> None:
    """Let the world outside know of every copy of a row what it knows of the first."""


def outside(job: Any, around: ArcVestWorld) -> Any:
    """Return a job's collaborators from the world, by the names that it gives them."""
    fields = getattr(job.Outside, "_fields", ())
    return job.Outside(**{field: getattr(around, field) for field in fields})
