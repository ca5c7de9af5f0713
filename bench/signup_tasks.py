"""LeadMetrics' due tasks, everything included, against the queue engine's own time for the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, Engine

from bench.databases import Databases
from bench.measure import Comparison, Goal, by_turns, seconds_of
from bench.queue_table import do_nothing
from bench.quiet import Quiet
from include.errors import Permanent
from include.job import perform
from include.leadmetrics import ZONE, scheduled_tasks
from include.leadmetrics.tables import TASKS
from include.queues.drain import Limits, drain
from include.run import EngineDatabase, Run
from include.statements import statement


@dataclass(frozen=True, slots=True)
class Size:
    """How many tasks are due, and how often they are timed."""

    tasks: int
    rounds: int


FULL = Size(tasks=10_000, rounds=3)
TINY = Size(tasks=60, rounds=1)


def measure(databases: Databases, size: Size) -> list[Comparison]:
    """Time the job's steps, up to a committed notification a task, and a drain that does nothing but finish."""
    template = databases.template(lambda connection: _fill(connection, size.tasks), system="leadmetrics")
    compared = Comparison(
        f"{size.tasks:,} due LeadMetrics tasks",
        job=f"the job, chunks of {scheduled_tasks.MAX_TASKS}: payload checked, registration looked up, "
        "notification in the outbox",
        limit="the engine alone on the same rows: claim, complete, audit",
        goal=Goal.AT_MOST,
        goal_ratio=2,
    )

    def job() -> float:
        with databases.copy(template) as engine:
            return seconds_of(lambda: _job(engine, size.tasks))

    def alone() -> float:
        with databases.copy(template) as engine:
            return seconds_of(lambda: _alone(engine, size.tasks))

    by_turns(compared, job, alone, size.rounds)
    databases.drop(template)
    return [compared]


def _fill(connection: Connection, tasks: int) -> None:
    for name in ("add_signup_sessions", "add_signup_tasks"):
        connection.execute(statement("bench", name).clause, {"tasks": tasks})


def _job(engine: Engine, expected: int) -> None:
    run = _run(engine)
    perform(scheduled_tasks, run, scheduled_tasks.Outside(queue=None, mail=None, alerts=Quiet()))
    if run.counts["enqueued"] != expected:
        raise Permanent(f"bench: {run.counts['enqueued']} notifications, not {expected}")


def _alone(engine: Engine, expected: int) -> None:
    done = drain(_run(engine), TASKS, do_nothing, limits=Limits(chunk=scheduled_tasks.MAX_TASKS))
    if done != expected:
        raise Permanent(f"bench: {done} tasks claimed, not {expected}")


def _run(engine: Engine) -> Run:
    return Run(
        job=scheduled_tasks.NAME,
        run_id="bench",
        as_of=datetime.now(UTC),
        zone=ZONE,
        db=EngineDatabase(engine),
        params={"max_tasks": scheduled_tasks.MAX_TASKS},
        settings=scheduled_tasks.SETTINGS,
    )
