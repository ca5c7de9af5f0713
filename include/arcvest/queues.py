"""ArcVest's queues, as the console shows them."""

from __future__ import annotations

from include.arcvest.jobs import JOBS
from include.queues.watched import WatchedQueue

TITLE = "ArcVest"

QUEUE_TABLES = (
    WatchedQueue(table=JOBS, dags=("arcvest_queue_worker", "arcvest_content_pipeline"), created="created_at"),
)
