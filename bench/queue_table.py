"""A queue table for the benchmarks, as a system's migration would make it, and the loops over it."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from multiprocessing.synchronize import Event
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
from sqlalchemy import Column, Connection, Engine, Integer, MetaData, Table, Text

from include.columns import identity, instant
from include.engines import make_engine
from include.errors import Permanent
from include.queues.drain import Done, Limits, Outcome, drain
from include.queues.engine import Claim, Queue
from include.queues.schema import audit_table, claim_columns, guard_statements, queue_indexes
from include.queues.table import QueueTable, Words, doubling
from include.run import EngineDatabase, Run
from include.statements import statement

QUEUE = QueueTable(
    name="bench_queue",
    words=Words(due="pending", claimed="processing", done="completed", failed="failed"),
    due="next_run_at",
    error="last_error",
    channel="bench_queue",
    priority="priority",
    started="started_at",
    finished="completed_at",
    delays=doubling(30, 3600, 5),
    attempt_limit=5,
)

_METADATA = MetaData()
_TABLE = Table(
    QUEUE.name, _METADATA, identity(), Column("job_type", Text),
    Column("status", Text, nullable=False, server_default="pending"),
    Column("priority", Integer, server_default="0"), Column("attempts", Integer, server_default="0"),
    Column("last_error", Text), instant("next_run_at"), instant("started_at"), instant("completed_at"),
    *claim_columns(), *queue_indexes(QUEUE),
)  # fmt: skip
audit_table(_METADATA)

_CHUNK = 100


def install(connection: Connection) -> None:
    """Make the table with its guard and its audit trail."""
    _METADATA.create_all(connection)
    for definition in guard_statements(QUEUE):
        connection.execute(definition)


def add_due(connection: Connection, jobs: int) -> None:
    """Insert rows that are due."""
    connection.execute(statement("bench", "add_queue_rows").clause, {"jobs": jobs})


def add_finished(connection: Connection, jobs: int) -> None:
    """Insert rows that are done; the guard would not let them in as such."""
    connection.exec_driver_sql(f"ALTER TABLE {QUEUE.name} DISABLE TRIGGER USER")
    connection.execute(statement("bench", "add_finished_rows").clause, {"jobs": jobs})
    connection.exec_driver_sql(f"ALTER TABLE {QUEUE.name} ENABLE TRIGGER USER")


def work_off(engine: Engine, chunk: int = _CHUNK, run_id: str = "bench") -> int:
    """Drain the queue with work that does nothing, and return how many rows were claimed."""
    run = Run(
        job="bench", run_id=run_id, as_of=datetime.now(UTC), zone=ZoneInfo("UTC"), db=EngineDatabase(engine)
    )
    return drain(run, Queue(QUEUE), do_nothing, limits=Limits(chunk=chunk))


def do_nothing(run: Run, claims: Sequence[Claim]) -> Sequence[Outcome]:  # noqa: ARG001 - the engine's form
    """Do no work: what is left is the engine's own time."""
    return [Done(claim) for claim in claims]


def by_hand(url: str) -> None:
    """Do what a careful hand would: claim 100, complete them, and write both to the audit trail, two commits."""
    claim = statement("bench", "hand_claim").clause.text
    complete = statement("bench", "hand_complete").clause.text
    with psycopg.connect(url) as connection:
        while True:
            with connection.transaction():
                rows = connection.execute(_driver_form(claim), {"owner": "hand"}).fetchall()
            if not rows:
                return
            with connection.transaction():
                connection.execute(_driver_form(complete), {"keys": [row[0] for row in rows]})


def _driver_form(text: str) -> bytes:
    return text.replace(":owner", "%(owner)s").replace(":keys", "%(keys)s").encode()


def work_off_in_processes(url: str, processes: int, jobs: int) -> float:
    """Drain with several worker processes that start together; return the seconds until the last one is through."""
    context = multiprocessing.get_context("spawn")
    start, done = context.Event(), context.Queue()
    ready = [context.Event() for _ in range(processes)]
    workers = [context.Process(target=_worker, args=(url, one, start, done)) for one in ready]
    for worker in workers:
        worker.start()
    for one in ready:
        one.wait()
    began = time.perf_counter()
    start.set()
    claimed = sum(done.get() for _ in workers)
    seconds = time.perf_counter() - began
    for worker in workers:
        worker.join()
    if claimed != jobs:
        raise Permanent(f"bench: {claimed} jobs claimed, not {jobs}")
    return seconds


def _worker(url: str, ready: Event, start: Event, done: Any) -> None:
    engine = make_engine(url)
    with engine.connect() as connection:
        connection.exec_driver_sql("SELECT 1")
    ready.set()
    start.wait()
    done.put(work_off(engine))
    engine.dispose()
