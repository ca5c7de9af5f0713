"""How `background_jobs` is a queue of the engine's."""

from __future__ import annotations

from datetime import timedelta

from include.queues.table import QueueTable, Words

JOBS = QueueTable(
    name="background_jobs",
    words=Words(due="PENDING", claimed="RUNNING", done="COMPLETED", failed="FAILED", cancelled="CANCELLED"),
    due="scheduled_for",
    error="error_message",
    channel="ecocomply_background_jobs",
    max_attempts="max_attempts",
    priority="urgency",
    tenant="company_id",
    kind="job_type",
    started="started_at",
    finished="completed_at",
    updated="updated_at",
    dedupe="dedupe_key",
    delays=(2, 4),
    attempt_limit=3,
    lost_after=timedelta(minutes=5),
    people_may=frozenset({"cancel", "retry"}),
)
