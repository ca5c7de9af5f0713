"""The queue engine against a careful hand, against pgqueuer and procrastinate, and against itself when it is hard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, text

from bench import queue_table
from bench.databases import Databases
from bench.measure import Comparison, Goal, by_turns, seconds_of
from bench.peers_environment import seconds as peer_seconds
from bench.queue_table import QUEUE
from include.errors import Permanent
from include.queues.engine import Queue
from include.run import EngineDatabase

_TOGETHER = 1_000


@dataclass(frozen=True, slots=True)
class Size:
    """How many jobs are worked off, how many of them the slower peers get, and how often each is timed."""

    jobs: int
    few: int
    finished: int
    churn: int
    rounds: int


FULL = Size(jobs=20_000, few=2_000, finished=5_000_000, churn=60_000, rounds=3)
TINY = Size(jobs=400, few=100, finished=1_000, churn=400, rounds=1)


def measure(databases: Databases, size: Size) -> list[Comparison]:
    """Time the engine and its limits by turns."""
    empty = databases.template(queue_table.install, system=None)
    due = databases.template(lambda connection: _with_due(connection, size.jobs), system=None)
    few = databases.template(lambda connection: _with_due(connection, size.few), system=None)
    peers = {
        peer: databases.template(lambda connection: None, system=None)  # noqa: ARG005 - made by the peer
        for peer in ("pgqueuer", "procrastinate")
    }

    chunks = f"{size.jobs:,} jobs, chunks of 100"

    def ours(template: str, work: Callable[[Engine], object]) -> float:
        with databases.copy(template) as engine:
            return seconds_of(lambda: work(engine))

    def theirs(peer: str, what: str, jobs: int) -> float:
        with databases.copy(peers[peer]) as engine:
            url = _plain(engine)
            peer_seconds(peer, url, "install", 0, 0)
            if what == "work":
                peer_seconds(peer, url, "bulk", jobs, 0)
                with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                    connection.execute(text("VACUUM (ANALYZE)"))
            return peer_seconds(peer, url, what, jobs, 1)

    def drained(jobs: int, chunk: int = 100) -> Callable[[Engine], None]:
        def work(engine: Engine) -> None:
            done = queue_table.work_off(engine, chunk)
            if done != jobs:
                raise Permanent(f"bench: {done} jobs done, not {jobs}")

        return work

    def in_processes(processes: int) -> float:
        with databases.copy(due) as engine:
            url = engine.url.render_as_string(hide_password=False)
            return queue_table.work_off_in_processes(url, processes, size.jobs)

    found = [
        by_turns(
            _at_least("one worker against pgqueuer", 1.5, chunks, "pgqueuer, batches of 100"),
            lambda: ours(due, drained(size.jobs)),
            lambda: theirs("pgqueuer", "work", size.jobs),
            size.rounds,
        ),
        by_turns(
            _at_least(
                "one worker against procrastinate", 35, f"{size.jobs:,} jobs, chunks of 100",
                f"procrastinate, {size.few:,} jobs, extrapolated", scale=size.jobs / size.few,
            ),
            lambda: ours(due, drained(size.jobs)),
            lambda: theirs("procrastinate", "work", size.few),
            size.rounds,
        ),
        by_turns(
            _at_least("share of a loop by hand", 0.7, chunks, "claim, complete and audit by hand"),
            lambda: ours(due, drained(size.jobs)),
            lambda: ours(due, lambda engine: queue_table.by_hand(_plain(engine))),
            size.rounds,
        ),
        by_turns(
            _at_least("two workers against one", 1.6, f"{size.jobs:,} jobs, two processes", "one process"),
            lambda: in_processes(2),
            lambda: in_processes(1),
            size.rounds,
        ),
        by_turns(
            _at_least("a commit per job against procrastinate", 1.4, f"{size.few:,} jobs", "procrastinate"),
            lambda: ours(few, drained(size.few, chunk=1)),
            lambda: theirs("procrastinate", "work", size.few),
            size.rounds,
        ),
        by_turns(
            _at_least("enqueue one by one against pgqueuer", 2, f"{size.few:,} rows, a commit each", "pgqueuer"),
            lambda: ours(empty, lambda engine: _enqueue(engine, size.few, 1)),
            lambda: theirs("pgqueuer", "one_by_one", size.few),
            size.rounds,
        ),
        by_turns(
            _at_least("enqueue in bulk against pgqueuer", 2.5, f"{size.jobs:,} rows, 1,000 each", "pgqueuer"),
            lambda: ours(empty, lambda engine: _enqueue(engine, size.jobs, _TOGETHER)),
            lambda: theirs("pgqueuer", "bulk", max(size.jobs, _TOGETHER)),
            size.rounds,
        ),
        _beside_finished(databases, size, due, drained(size.jobs), ours),
        _with_a_snapshot(databases, size, due, drained),
    ]  # fmt: skip
    for template in (empty, due, few, *peers.values()):
        databases.drop(template)
    return found


def _beside_finished(
    databases: Databases,
    size: Size,
    due: str,
    work: Callable[[Engine], None],
    ours: Callable[[str, Callable[[Engine], object]], float],
) -> Comparison:
    def fill(connection: Connection) -> None:
        queue_table.install(connection)
        queue_table.add_finished(connection, size.finished)
        queue_table.add_due(connection, size.jobs)

    full = databases.template(fill, system=None)
    found = by_turns(
        Comparison(
            "a job beside finished rows", f"{size.jobs:,} jobs beside {size.finished:,} finished rows",
            "the same without any", Goal.AT_MOST, 1.10,
        ),
        lambda: ours(full, work),
        lambda: ours(due, work),
        size.rounds,
    )  # fmt: skip
    databases.drop(full)
    return found


def _with_a_snapshot(
    databases: Databases, size: Size, due: str, drained: Callable[[int], Callable[[Engine], None]]
) -> Comparison:
    """Time the same jobs before, and after 60,000 others were done while an old snapshot kept all dead rows."""
    compared = _at_least(
        "a job while a snapshot is held", 0.9,
        f"{size.jobs:,} jobs after {size.churn:,} others, under one held snapshot", "the same jobs before",
    )  # fmt: skip
    for _ in range(size.rounds):
        with databases.copy(due) as engine:
            compared.limit_seconds.append(seconds_of(lambda engine=engine: drained(size.jobs)(engine)))
            with engine.connect().execution_options(isolation_level="REPEATABLE READ") as holder:
                holder.execute(text("SELECT count(*) FROM bench_queue"))
                for jobs in (size.churn, size.jobs):
                    with engine.begin() as connection:
                        queue_table.add_due(connection, jobs)
                    seconds = seconds_of(lambda engine=engine, jobs=jobs: drained(jobs)(engine))
                compared.job_seconds.append(seconds)
    return compared


def _with_due(connection: Connection, jobs: int) -> None:
    queue_table.install(connection)
    queue_table.add_due(connection, jobs)


def _enqueue(engine: Engine, jobs: int, together: int) -> None:
    queue = Queue(QUEUE)
    database = EngineDatabase(engine)
    for start in range(0, jobs, together):
        rows = [{"job_type": "job"} for _ in range(min(together, jobs - start))]
        with database.transaction() as tx:
            queue.enqueue(tx, rows)


def _at_least(name: str, goal: float, job: str, limit: str, scale: float = 1) -> Comparison:
    return Comparison(name, job, limit, Goal.AT_LEAST, goal, scale)


def _plain(engine: Engine) -> str:
    return engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
