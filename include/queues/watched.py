"""A queue as people look after it: which table of which system, and the DAGs that work it through."""

from __future__ import annotations

from dataclasses import dataclass

from include.queues.table import QueueTable


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedQueue:
    """One queue of one system.

    A system lists its own as `QUEUE_TABLES` in `include/<system>/queues.py`, where the console finds them, beside
    its name for people as `TITLE`; its database is behind the connection `<system>_db`. Who may read the runs of
    all `dags` may look at the queue, who may trigger them all may change it, as far as the table's `people_may`
    goes. `created` is the column with the instant at which a row was enqueued.
    """

    table: QueueTable
    dags: tuple[str, ...]
    created: str | None = None
