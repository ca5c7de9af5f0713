"""procrastinate, with its psycopg connector. `procrastinate_peer.py DSN WHAT JOBS CONCURRENCY`."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time

from procrastinate import App, PsycopgConnector

logging.disable(logging.CRITICAL)


async def main(dsn: str, what: str, jobs: int, concurrency: int) -> float:
    """Do one thing with so many jobs and return its seconds: install, bulk or work."""
    app = App(connector=PsycopgConnector(conninfo=dsn))

    @app.task(name="job")
    async def job() -> None:
        pass

    async with app.open_async():
        began = time.perf_counter()
        match what:
            case "install":
                await app.schema_manager.apply_schema_async()
            case "bulk":
                await job.batch_defer_async(*({} for _ in range(jobs)))
            case "work":
                await app.run_worker_async(wait=False, concurrency=concurrency, install_signal_handlers=False)
        return time.perf_counter() - began


if __name__ == "__main__":
    asked = sys.argv
    sys.stdout.write(json.dumps(asyncio.run(main(asked[1], asked[2], int(asked[3]), int(asked[4])))))
