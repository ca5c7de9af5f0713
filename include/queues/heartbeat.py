"""Heartbeats from a thread with a connection of its own: work that holds the worker up does not stop them."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from include.queues.engine import Queue
from include.run import Run, row_error

BEATS_PER_LIFE = 4
"""How often a claim is renewed before it would count as lost: some may go missing."""


@contextmanager
def beating(run: Run, queue: Queue, owner: str, every: timedelta | None = None) -> Generator[set[Any]]:
    """Keep the owner's claims alive until the end.

    Yields a set that a first heartbeat fills and each further one renews: the keys that are still held. In a
    preview there is nothing to keep alive, since nobody else sees its claims.
    """
    held: set[Any] = set()
    if run.preview:
        yield held
        return
    seconds = (every or queue.table.lost_after / BEATS_PER_LIFE).total_seconds()
    done = threading.Event()

    def beat() -> None:
        while not done.wait(seconds):
            try:
                with run.transaction() as tx:
                    found = queue.heartbeat(tx, owner)
            except Exception as error:  # noqa: BLE001 - a heart that stopped would give live claims away
                run.log.warning("%s: no heartbeat: %s", queue.table.name, row_error(error))
                continue
            held.clear()
            held.update(found)

    heart = threading.Thread(target=beat, name=f"heartbeat of {queue.table.name}", daemon=True)
    heart.start()
    try:
        yield held
    finally:
        done.set()
        heart.join()
