"""EcoComply's queues, as the console shows them."""

from __future__ import annotations

from include.ecocomply.background_jobs import JOBS
from include.queues.watched import WatchedQueue

TITLE = "EcoComply"

QUEUE_TABLES = (WatchedQueue(table=JOBS, dags=("ecocomply_job_dispatcher",), created="created_at"),)
