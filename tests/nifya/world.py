"""The smallest NIFYA in which every branch of every job has a row, and the world around it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert

from include.as_of import local_date
from include.errors import Outage, Refused
from include.nifya import ZONE, tables
from include.nifya.gazettes import Content
from tests.dags.states import EVERYTHING
from tests.fakes.world import FakeAlerts, FakeLab, FakeMail, FakeStorage, Tick, World, no_tick
from tests.nifya import jobs_world

SETTINGS: Mapping[str, str | None] = {
    "ADMIN_ALERT_EMAIL": "ops@nifya.test",
    "nifya_app_url": "https://app.nifya.test/notifications",
    "nifya_links_url": "https://almanac.nifya.test/nifya",
}
PARAMS: Mapping[str, Any] = {"subscription_id": None, "hour_of_day": "09", "job_id": None}
BOOKKEEPING = {
    # A claim that was lost is one more try, and its reason stays on the row.
    "scheduled_jobs": {"attempts", "retry_at", "error"},
    "queue_audit": {EVERYTHING, "id"},
    # A question that was asked twice may have failed twice.
    "parser_breakers": {"failures", "open_until"},
}
"""Columns that count attempts, and so differ after a repeat."""

time_passes = jobs_world.time_passes
"""What a killed run held is taken back, and due."""

DAYLESS: set[str] = set()
"""DAGs that do the same whatever the day: they work on what waits."""

NAMES = {"email"}
"""Texts by which rows are known outside: copies of a row differ in them."""

HOSTILE = '<a href="https://evil.test">Reset</a> & Co'
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def unit(table: str, row: Mapping[str, Any]) -> Any:
    """Return what stands or falls together: a user with the digest, or a subscription with its status."""
    return row["id"] if table == "users" else row.get("subscription_id") or row.get("user_id") or row["id"]


def name(kind: str, number: int) -> uuid.UUID:
    """Return a stable id, so that two seeded databases hold the same rows."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"nifya/{kind}/{number}")


def insert_rows(connection: Connection, table: Any, rows: list[dict[str, Any]]) -> None:
    """Insert rows that need not have the same columns; what one leaves out gets its default."""
    for row in rows:
        connection.execute(insert(table), [row])


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows; all times are relative to `now`."""
    _users(connection, now)
    _subscriptions(connection, now)
    _notifications(connection, now)
    jobs_world.seed_jobs(connection, now, {n: name("subscription", n) for n in range(1, 9)})


def _users(connection: Connection, now: datetime) -> None:
    old = {"created_at": now - timedelta(days=5), "digest_hour": 9}
    users: list[dict[str, Any]] = [
        {"id": "ana", "email": "ana@nifya.test", "name": HOSTILE, "last_digest_at": now - timedelta(days=4)},
        {"id": "bea", "email": "bea@nifya.test", "name": "Bea Ñ", "timezone": "America/Winnipeg"},
        {"id": "refused", "email": "refused@nifya.test"},
        {"id": "settled", "email": "settled@nifya.test", "last_digest_at": now},
        {"id": "evening", "email": "evening@nifya.test", "digest_hour": 18},
        {"id": "stopped", "email": "stopped@nifya.test", "digests_stopped_at": now - timedelta(days=1)},
        {"id": "quiet", "email": "quiet@nifya.test"},
        {"id": "nowhere", "email": None},
        {"id": "martian", "email": "martian@nifya.test", "timezone": "Mars/Olympus"},
        {"id": "again", "email": "again@nifya.test", "last_digest_at": now},
    ]
    insert_rows(connection, tables.USERS, [old | user for user in users])


def _subscriptions(connection: Connection, now: datetime) -> None:
    old = {"created_at": now - timedelta(days=4), "type_id": "boe", "prompts": ["becas"]}
    subscriptions: list[dict[str, Any]] = [
        {"user_id": "ana", "name": "Becas"},
        {"user_id": "bea", "prompts": ["becas", "energía"]},
        {"user_id": "ana", "type_id": "doga"},
        {"user_id": "refused", "type_id": "borme"},
        {"user_id": "bea", "active": False},
        {"user_id": "bea", "prompts": []},
        {"user_id": "bea", "prompts": ["refused"]},
        {"user_id": "quiet"},
    ]
    rows = [old | row | {"id": name("subscription", n)} for n, row in enumerate(subscriptions, start=1)]
    insert_rows(connection, tables.SUBSCRIPTIONS, rows)
    ran = {"last_run_at": now - timedelta(days=3)}
    processing: list[dict[str, Any]] = [
        {"subscription": 1, "status": "completed", "last_success_at": now - timedelta(days=3), **ran},
        {"subscription": 3, "status": "failed", "failures_in_row": 2, "error": "HTTP 500", **ran},
        {"subscription": 4, "status": "pending"},
        {"subscription": 8, "status": "completed", "last_run_at": now + timedelta(hours=1)},
    ]
    insert_rows(
        connection,
        tables.SUBSCRIPTION_PROCESSING,
        [
            {k: v for k, v in row.items() if k != "subscription"}
            | {"id": name("processing", n), "subscription_id": name("subscription", row["subscription"])}
            for n, row in enumerate(processing, start=1)
        ],
    )


def _notifications(connection: Connection, now: datetime) -> None:
    insert_rows(
        connection,
        tables.DIGESTS,
        [
            {
                "id": name("digest", 1),
                "unsubscribe_token": name("token", 1),
                "user_id": "again",
                "due_at": now - timedelta(hours=1),
                "status": "failed",
                "retry_count": 1,
                "next_attempt_at": now - timedelta(minutes=5),
            },
            {
                "id": name("digest", 2),
                "unsubscribe_token": name("token", 2),
                "user_id": "bea",
                "due_at": now - timedelta(days=9),
                "status": "sent",
            },
        ],
    )
    of = [
        ("ana", 1, {"title": HOSTILE, "source_url": "https://www.boe.es/1", "content": "MINISTERIO"}),
        ("ana", 1, {"title": "Orden", "source_url": "https://www.boe.es/2"}),
        ("ana", 1, {"title": "Read", "source_url": "https://www.boe.es/3", "read": True}),
        ("bea", 2, {"title": "Becas", "source_url": "https://www.boe.es/today"}),
        ("bea", 2, {"title": "Told", "source_url": "https://www.boe.es/4", "digest_id": name("digest", 2)}),
        ("bea", 2, {"title": "History", "source_url": "https://www.boe.es/5", "past_at_adoption": True}),
        ("refused", 4, {"title": "One", "source_url": "https://www.boe.es/6"}),
        ("settled", 1, {"title": "Later", "source_url": "https://www.boe.es/7"}),
        ("evening", 1, {"title": "Later", "source_url": "https://www.boe.es/8"}),
        ("stopped", 1, {"title": "Never", "source_url": "https://www.boe.es/9"}),
        ("nowhere", 1, {"title": "Where", "source_url": "https://www.boe.es/10"}),
        ("martian", 1, {"title": "When", "source_url": "https://www.boe.es/11"}),
        ("again", 1, {"title": "Again", "source_url": "https://www.boe.es/12", "digest_id": name("digest", 1)}),
    ]  # fmt: skip
    insert_rows(
        connection,
        tables.NOTIFICATIONS,
        [
            {
                "id": name("notification", n),
                "user_id": user,
                "subscription_id": name("subscription", subscription),
                "created_at": now - timedelta(hours=n),
                **said,
            }
            for n, (user, subscription, said) in enumerate(of, start=1)
        ],
    )


@dataclass
class FakeGazettes:
    """Gazettes that publish what they are given, a day each; a prompt is a word of a title."""

    published: Mapping[str, Sequence[tuple[date, Content]]]
    tick: Tick = no_tick
    down: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    asked: list[tuple[str, Sequence[str], date, date]] = field(default_factory=list)

    def new_content(self, parser: str, prompts: Sequence[str], since: date, until: date) -> Sequence[Content]:
        self.tick("gazette before")
        self.asked.append((parser, tuple(prompts), since, until))
        self.tick("gazette after")
        if parser in self.down:
            raise Outage(f"gazette {parser} answered HTTP 500")
        if self.refused & set(prompts):
            raise Refused(f"gazette {parser} answered HTTP 400")
        return [
            content
            for day, content in self.published.get(parser, ())
            if since <= day <= until and any(p.lower() in content.title.lower() for p in prompts)
        ]


def content(title: str, url: str) -> Content:
    """Return a content with the least that it needs."""
    return Content(title, "MINISTERIO DE CULTURA", url, {"department": "MINISTERIO DE CULTURA"})


@dataclass
class NifyaWorld(World):
    """What NIFYA's jobs reach beyond their database."""

    gazettes: FakeGazettes = field(default_factory=lambda: FakeGazettes({}))

    def die_by(self, tick: Tick) -> None:
        super().die_by(tick)
        self.gazettes.tick = tick

    def state(self) -> Mapping[str, Any]:
        """Return what the world has seen, with the random tokens of links made equal."""
        seen = dict(super().state())
        seen["mail"] = [tuple(_UUID.sub("<token>", part) for part in mail) for mail in seen["mail"]]
        return seen


def world(now: datetime) -> NifyaWorld:
    """Return the world around the seeded database: a gazette that publishes, one that is down, a refused address."""
    today = local_date(now, ZONE)
    days = [today - timedelta(days=n) for n in range(6)]
    return NifyaWorld(
        mail=FakeMail(refuse={"refused@nifya.test"}, default_sender="NIFYA <hola@nifya.test>"),
        alerts=FakeAlerts(),
        lab=FakeLab([]),
        storage=FakeStorage(),
        gazettes=FakeGazettes(
            {
                "boe": [
                    (days[0], content("Becas de hoy", "https://www.boe.es/today")),
                    (days[1], content("Energía y becas", "https://www.boe.es/yesterday")),
                    (days[3], content(f"Energía {HOSTILE}", "https://www.boe.es/before")),
                    (days[5], content("Becas de antes", "https://www.boe.es/too-old")),
                ]
            },
            down={"doga"},
            refused={"refused"},
        ),
    )


def grow(around: NifyaWorld, copies: int) -> None:
    """Let the world outside know of every copy of a row what it knows of the first: it is the same gazette."""


def outside(job: Any, around: NifyaWorld) -> Any:
    """Return a job's collaborators from the world, by the names that it gives them."""
    fields = getattr(job.Outside, "_fields", ())
    return job.Outside(**{field: getattr(around, field) for field in fields})
