"""What the worlds of both digests share: readers, what waits for them, and mail."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from tests.ecocomply.world import (
    ADMIN,
    COMPANY,
    HOSTILE,
    MANAGER,
    OTHER,
    OWNER,
    STAFF,
    STRANGER,
    add,
    name,
    people,
)
from tests.fakes.world import FakeAlerts, FakeLab, FakeMail, FakeStorage, World

_TOKEN = re.compile(r"/digests/[0-9a-f-]{36}")


class DigestWorld(World):
    """A world that compares the mails without the random tokens of their links."""

    def state(self) -> Mapping[str, Any]:
        seen = dict(super().state())
        seen["mail"] = [tuple(_TOKEN.sub("/digests/…", part) for part in mail) for mail in seen["mail"]]
        return seen


def seed(connection: Connection, now: datetime, wanted: str) -> None:
    """Insert four readers, and somebody who wants the digest of another frequency."""
    people(connection)
    other = "WEEKLY_DIGEST" if wanted == "DAILY_DIGEST" else "DAILY_DIGEST"
    readers = ((STAFF, wanted), (OWNER, wanted), (STRANGER, wanted), (MANAGER, wanted), (ADMIN, other))
    for number, (user, frequency) in enumerate(readers, start=1):
        preference = {"id": name("preference", number), "user_id": user, "channel": "EMAIL"}
        kind = {"notification_type": "EVIDENCE_REMINDER", "frequency_preference": frequency}
        add(connection, "notification_preferences", preference | kind)
    hour = timedelta(hours=1)
    rows: tuple[tuple[Any, float, dict[str, Any]], ...] = (
        (STAFF, 1, {}),
        (STAFF, 80, {"priority": "LOW"}),
        (STAFF, 30, {"priority": "HIGH"}),
        (STAFF, 30, {"channel": "IN_APP"}),
        (OWNER, 30, {}),
        (MANAGER, 30, {}),
        (STRANGER, 30, {"company_id": OTHER}),
        (ADMIN, 30, {}),
    )
    for number, (user, age, more) in enumerate(rows, start=1):
        at = now - age * hour
        row = {
            "id": name("notification", number), "user_id": user, "company_id": COMPANY, "channel": "EMAIL",
            "notification_type": "EVIDENCE_REMINDER", "subject": f"Evidence Required {number}", "body_text": HOSTILE,
            "priority": "NORMAL", "created_at": at, "scheduled_for": at,
        }  # fmt: skip
        add(connection, "notifications", row | more)


def world(now: datetime) -> World:
    """Return a world in which mail goes out."""
    mail = FakeMail(default_sender="EcoComply <hello@ecocomply.test>")
    return DigestWorld(mail, FakeAlerts(), FakeLab([]), FakeStorage())


def outside(job: Any, around: World) -> Any:
    """Return the jobs' collaborators."""
    return job.Outside(around.mail, around.alerts)


def unit(table: str, row: Mapping[str, Any]) -> Any:
    """Return what stands or falls together: what waits for one person."""
    return row["user_id"] if table in ("notifications", "digests") else row["id"]
