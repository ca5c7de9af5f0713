"""LeadMetrics' queues, as the console shows them."""

from __future__ import annotations

from include.leadmetrics.tables import TASK_QUEUE
from include.queues.watched import WatchedQueue

TITLE = "LeadMetrics"

QUEUE_TABLES = (WatchedQueue(table=TASK_QUEUE, dags=("leadmetrics_scheduled_tasks",), created="createdAt"),)
