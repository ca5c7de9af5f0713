"""Notifications, and the queue from which the application's own workers take them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from include.effects import Effects
from include.mail import Accepted, Outcome

QUEUE_NAME = "notifications__email"
"""The BullMQ queue that the application's workers read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One notification; `dedupe_key` is unique for ever, `data` holds what the template needs.

    A `reminder` is due only while its session is still on its way.
    """

    dedupe_key: str
    tenant_id: str
    template_slug: str
    recipient: str
    data: Mapping[str, Any]
    reminder: bool = False

    def job_data(self) -> dict[str, Any]:
        """Return what a job of the queue holds."""
        return {
            "tenantId": self.tenant_id,
            "recipient": self.recipient,
            "templateSlug": self.template_slug,
            "dedupeKey": self.dedupe_key,
            **self.data,
        }


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job for the queue: its id is the notification's dedupe key, so that it can be added twice and is one."""

    notification_id: uuid.UUID
    job_id: str
    data: Mapping[str, Any]


class NotificationQueue(Protocol):
    """A BullMQ queue. `remembers` is how long it knows a job at least, so that adding it again adds nothing."""

    remembers: timedelta

    def check(self) -> None:
        """Raise Outage if the queue is out of reach."""
        ...

    def add(self, jobs: Sequence[QueuedJob]) -> Sequence[Outcome]:
        """Add jobs, and return an outcome for each: Accepted, or Deferred. Never raises for what Redis does."""
        ...


class RecordedQueue:
    """A preview's queue: takes every job, adds none, and asks nothing of Redis."""

    def __init__(self, real: NotificationQueue, effects: Effects) -> None:
        self._effects = effects
        self.remembers = real.remembers

    def check(self) -> None:
        """Take it to be well."""

    def add(self, jobs: Sequence[QueuedJob]) -> Sequence[Outcome]:
        for job in jobs:
            self._effects.message(job.data["recipient"], job.data["templateSlug"])
        return [Accepted(job.job_id) for job in jobs]
