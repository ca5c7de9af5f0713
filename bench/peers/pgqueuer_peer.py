"""pgqueuer, tuned: uvloop, batches of 100, its indexes as it installs them. `pgqueuer_peer.py DSN WHAT JOBS`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import QueueManager
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

_TOGETHER = 1_000


async def main(dsn: str, what: str, jobs: int) -> float:
    """Do one thing with so many jobs and return its seconds: install, one_by_one, bulk or work."""
    connection = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(connection))
    began = time.perf_counter()
    match what:
        case "install":
            await queries.install()
        case "one_by_one":
            for _ in range(jobs):
                await queries.enqueue("job", b"x")
        case "bulk":
            for _ in range(jobs // _TOGETHER):
                await queries.enqueue(["job"] * _TOGETHER, [b"x"] * _TOGETHER, [0] * _TOGETHER)
        case "work":
            await _work(queries)
    seconds = time.perf_counter() - began
    await connection.close()
    return seconds


async def _work(queries: Queries) -> None:
    manager = QueueManager(queries)

    @manager.entrypoint("job")
    async def job(found: object) -> None:
        pass

    await manager.run(dequeue_timeout=timedelta(seconds=1), batch_size=100, mode=QueueExecutionMode.drain)


if __name__ == "__main__":
    uvloop.install()
    sys.stdout.write(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
