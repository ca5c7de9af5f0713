"""`scheduled_jobs` as the queue engine sees it, with what the admin API lets a person do."""

from __future__ import annotations

from include.queues.table import QueueTable, Words

CHANNEL = "nifya_scheduled_jobs"

JOBS = QueueTable(
    name="scheduled_jobs",
    words=Words(due="pending", claimed="processing", done="completed", failed="failed"),
    # The planned time stays, since the next run is counted from it; a later try waits for the other.
    due="next_run_at",
    again="retry_at",
    error="error",
    channel=CHANNEL,
    kind="type",
    started="last_run_at",
    finished="finished_at",
    updated="updated_at",
    delays=(60, 300),
    attempt_limit=3,
    people_may=frozenset({"retry"}),
)
