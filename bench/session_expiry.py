"""Session expiry against the two bare updates that it can't do without."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from sqlalchemy import Connection, Engine

from bench.databases import Databases
from bench.measure import Comparison, Goal, by_turns, seconds_of
from include.as_of import local_date
from include.clearpath import ZONE, session_expiry
from include.errors import Permanent
from include.job import NothingOutside, perform
from include.run import EngineDatabase, Run
from include.statements import statement

_GRACE_DAYS = 90


@dataclass(frozen=True, slots=True)
class Size:
    """How many sessions there are, how many of them are to expire, and how often it is timed."""

    sessions: int
    overdue: int
    rounds: int


FULL = Size(sessions=1_000_000, overdue=100_000, rounds=5)
TINY = Size(sessions=1_000, overdue=100, rounds=2)


def measure(databases: Databases, size: Size) -> list[Comparison]:
    """Time the job, both updates in one transaction, and the job's rerun that finds nothing."""
    now = datetime.now(UTC)
    template = databases.template(lambda connection: fill(connection, now, size.sessions, size.overdue))
    numbers = f"{size.overdue:,} of {size.sessions:,}"
    first = Comparison(
        f"session expiry, {numbers}",
        job="the job: sessions expired and their mail cancelled in chunks of 1,000, each its own transaction",
        limit="both bare UPDATEs in one transaction, same indexes",
        goal=Goal.AT_MOST,
        goal_ratio=1.3,
    )
    again = Comparison(
        f"session expiry again, {numbers}",
        job="the rerun that finds nothing",
        limit="the first run",
        goal=Goal.AT_MOST,
        goal_ratio=0.1,
    )

    def job() -> float:
        with databases.copy(template) as engine:
            seconds = seconds_of(lambda: expire(engine, now, size.overdue))
            again.limit_seconds.append(seconds)
            again.job_seconds.append(seconds_of(lambda: expire(engine, now, 0)))
            return seconds

    def bare() -> float:
        with databases.copy(template) as engine:
            return seconds_of(lambda: _bare(engine, now))

    by_turns(first, job, bare, size.rounds)
    databases.drop(template)
    return [first, again]


def fill(connection: Connection, now: datetime, sessions: int, overdue: int) -> None:
    """Put sessions and their mail into an empty database: every n-th session is past its grace period."""
    today = local_date(now, ZONE)
    binds = {"sessions": sessions, "overdue": overdue, "people": max(1, sessions // 3), "today": today}
    for name in ("add_users", "add_sessions", "add_results", "add_session_mail"):
        connection.execute(statement("bench", name).clause, binds | {"last_day": last_day(now)})


def expire(engine: Engine, now: datetime, expected: int) -> Run:
    """Run the job; raise Permanent if it expires another number of sessions than `expected`."""
    run = Run(
        job=session_expiry.NAME,
        run_id="bench",
        as_of=now,
        zone=ZONE,
        db=EngineDatabase(engine),
        params={"grace_days": _GRACE_DAYS},
    )
    perform(session_expiry, run, NothingOutside())
    if run.counts["expired"] != expected:
        raise Permanent(f"bench: {run.counts['expired']} sessions expired, not {expected}")
    return run


def _bare(engine: Engine, now: datetime) -> None:
    with EngineDatabase(engine).transaction() as tx:
        tx.execute(statement("bench", "expire_bare"), last_day=last_day(now))
        tx.execute(statement("bench", "cancel_bare"), as_of_day=local_date(now, ZONE))


def last_day(now: datetime) -> date:
    """Return the first day that is not yet past the grace period."""
    return local_date(now, ZONE) - timedelta(days=_GRACE_DAYS)
