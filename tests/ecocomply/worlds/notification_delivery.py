"""Notifications of every channel, and of everything that can become of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from include.ecocomply.channels import Push, Pushed
from include.mail import Batch, Message
from tests.ecocomply.providers import LINKS
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

PARAMS = {"notification_id": None}
REFUSED = "refused@ecocomply.test"


def seed(connection: Connection, now: datetime) -> None:
    """Insert notifications that are to go out, to be settled otherwise, and to be left."""
    people(connection)
    for number, (user, channel, wanted) in enumerate(
        (
            (STRANGER, "EMAIL", {"frequency_preference": "DAILY_DIGEST"}),
            (MANAGER, "EMAIL", {"is_enabled": False}),
            (OWNER, None, {"frequency_preference": "IMMEDIATE"}),
        ),
        start=1,
    ):
        row = {"id": name("preference", number), "user_id": user, "notification_type": "EVIDENCE_REMINDER"}
        add(connection, "notification_preferences", row | {"channel": channel} | wanted)
    for number in (1, 2):
        endpoint = f"https://push.test/{number}"
        row = {"id": name("push", number), "user_id": ADMIN, "endpoint": endpoint, "p256dh": "p", "auth": "a"}
        add(connection, "push_subscriptions", row)
    hour = timedelta(hours=1)
    notification = {
        "company_id": COMPANY, "notification_type": "EVIDENCE_REMINDER", "body_text": f"There is none. {HOSTILE}",
        "scheduled_for": now - hour, "created_at": now - hour, "entity_type": "obligation", "priority": "NORMAL",
    }  # fmt: skip
    sent = {"status": "SENT", "delivery_status": "SENT", "sent_at": now - hour, "status_reason": "taken"}
    rows: tuple[dict[str, Any], ...] = (
        {"user_id": STAFF, "channel": "EMAIL", "priority": "HIGH"},
        {"user_id": OWNER, "channel": "EMAIL"},
        {"user_id": ADMIN, "channel": "EMAIL", "priority": "URGENT"},
        {"user_id": ADMIN, "channel": "EMAIL", "recipient_email": REFUSED},
        {"user_id": MANAGER, "channel": "SMS", "priority": "URGENT"},
        {"user_id": MANAGER, "channel": "SMS", "priority": "CRITICAL", "recipient_phone": "+44 7700 900 999"},
        {"user_id": ADMIN, "channel": "PUSH"},
        {"user_id": ADMIN, "channel": "PUSH", "priority": "LOW"},
        {"user_id": STAFF, "channel": "IN_APP"},
        {"user_id": STRANGER, "channel": "IN_APP", "company_id": OTHER},
        {"user_id": STRANGER, "channel": "EMAIL", "company_id": OTHER},
        {"user_id": MANAGER, "channel": "EMAIL"},
        {"user_id": STAFF, "channel": "SMS"},
        {"user_id": STAFF, "channel": "EMAIL", "scheduled_for": now + 30 * 24 * hour},
        {"user_id": STAFF, "channel": "EMAIL", **sent},
    )
    for number, row in enumerate(rows, start=1):
        own = {"id": name("notification", number), "subject": f"Evidence Required {number}"}
        add(connection, "notifications", notification | own | row)


@dataclass
class PushesInMail:
    """Push messages among the mails, as a preview shows them: by how many devices they go to."""

    mail: FakeMail
    in_flight: int = 1

    @property
    def key_lifetime(self) -> timedelta:
        return self.mail.key_lifetime

    def in_time(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        return iter(batches)

    def send(self, key: str, push: Push) -> Pushed:
        message = Message("", f"{len(push.subscriptions)} devices", push.title, push.body)
        (answer,) = self.mail.send([Batch(key, (message,))])
        return Pushed(answer.outcomes[0])


def world(now: datetime) -> World:
    """Return a world in which all channels go through one provider with keys, and one address is refused."""
    mail = FakeMail(refuse={REFUSED}, default_sender="EcoComply <hello@ecocomply.test>")
    return World(mail, FakeAlerts(), FakeLab([]), FakeStorage())


def outside(job: Any, around: World) -> Any:
    """Return the job's collaborators."""
    return job.Outside(around.mail, around.mail, PushesInMail(around.mail), LINKS, around.alerts)
