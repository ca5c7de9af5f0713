"""What the content pipeline finds in ArcVest's small world: an idea with its job, one left behind, the models."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert

from include.arcvest import tables
from include.arcvest.models import Question, Reply, Vendor
from include.arcvest.stand_in import StandIn
from tests.arcvest.worker_world import name
from tests.fakes.world import Tick, no_tick


def seed(connection: Connection, now: datetime) -> None:
    """Insert one idea to write up, with its job, and one that was left in processing."""
    idea = {"source": "news", "summary": "The bank & co", "created_at": now - timedelta(days=1)}
    ideas: list[dict[str, Any]] = [
        {"id": name("idea", 70), "title": "Selected", "status": "selected", "updated_at": now},
        {
            "id": name("idea", 71),
            "title": "Stuck",
            "status": "processing",
            "updated_at": now - timedelta(hours=1),
        },
    ]
    for row in ideas:
        url = f"https://news.test/{row['title']}"
        connection.execute(insert(tables.IDEA_QUEUE).values(**idea, **row, url=url))
    connection.execute(
        insert(tables.JOB_QUEUE).values(
            id=name("job", 70),
            job_type="process_pipeline",
            payload={"idea_id": str(name("idea", 70))},
            next_run_at=now - timedelta(minutes=1),
        )
    )


@dataclass
class FakeModels:
    """The stand-in, with what happens before and after each answer."""

    tick: Tick = no_tick

    def check(self, vendor: Vendor) -> None:
        """Have every key."""

    def ask(self, question: Question) -> Reply:
        self.tick("model before")
        reply = StandIn().ask(question)
        self.tick("model after")
        return reply
