"""NIFYA's queues, as the console shows them."""

from __future__ import annotations

from include.nifya.job_queue import JOBS
from include.queues.watched import WatchedQueue

TITLE = "NIFYA"

QUEUE_TABLES = (WatchedQueue(table=JOBS, dags=("nifya_scheduled_jobs",), created="created_at"),)
