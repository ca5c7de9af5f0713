"""A small EcoComply for the console's pages: jobs, dead letters, notifications, clocks, scores, what is open."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from airflow.api_fastapi.auth.middlewares.refresh_token import JWTRefreshMiddleware
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine, insert, text

from console.app import create_app
from console.databases import Databases
from include.ecocomply.channels import Push, Subscription
from include.ecocomply.job_records.attempts import attempt, begin
from include.ecocomply.job_records.dag_runs import DagRun, TaskTry
from include.ecocomply.tables.base import METADATA
from include.errors import Permanent
from include.mail import Message
from include.platform.tables import RUN_SUMMARY
from include.run import EngineDatabase
from include.stored_message import pack
from tests.conftest import Databases as DatabaseMaker
from tests.console.conftest import OWN, token
from tests.console.sample import HOSTILE, HOSTILE_HTML, number, put
from tests.ecocomply.jobs_world import Records

HERE = {"origin": OWN, "sec-fetch-site": "same-origin"}
SECRET = "hunter2-of-the-sample"
RISK, REPORT = "ecocomply_risk_score_calculation", "ecocomply_report_generation"
CLOCKS = "ecocomply_update_compliance_clocks"
REFRESH = "ecocomply_refresh_compliance_dashboard"


@dataclass
class Desk:
    """The console over EcoComply; `letters` are the open dead letters by the name of their run."""

    app: FastAPI
    records: Records
    now: datetime
    letters: dict[str, UUID] = field(default_factory=dict)

    @property
    def engine(self) -> Engine:
        return self.records.engine

    @property
    def today(self) -> date:
        return self.now.date()

    def as_user(self, name: str | None, role: str = "VIEWER") -> TestClient:
        """Return a browser in which somebody is signed in, or nobody if `name` is None."""
        client = TestClient(self.app, base_url=OWN, follow_redirects=False)
        client.headers["accept"] = "text/html"
        if name is not None:
            client.cookies.set("_token", token(name, role))
        return client

    def add(self, table: str, *rows: Mapping[str, Any]) -> None:
        """Insert rows that need not have the same columns."""
        with self.engine.begin() as connection:
            for row in rows:
                connection.execute(insert(METADATA.tables[table]).values(**row))

    def dead(self, run_id: str, why: str, dag: str = RISK, **payload: Any) -> UUID:
        """Let a job fail for good; return its letter."""
        task = TaskTry(DagRun(dag, run_id), "work", 1)
        with pytest.raises(Permanent), attempt(self.records.run(), task, payload=payload):
            raise Permanent(why)
        (found,) = self.records.rows(
            "SELECT d.id FROM dead_letter_queue AS d JOIN background_jobs AS q ON q.id = d.job_id"
            " WHERE q.dag_run_id = :run AND d.resolved_at IS NULL",
            run=task.dag_run.key,
        )
        self.letters[run_id] = found.id
        return found.id

    def letter(self, letter_id: UUID) -> Any:
        """Return a letter with its job's state and turn."""
        (row,) = self.records.rows(
            "SELECT d.*, q.status::text AS job_status, q.scheduled_for, q.attempts FROM dead_letter_queue AS d"
            " JOIN background_jobs AS q ON q.id = d.job_id WHERE d.id = :id",
            id=letter_id,
        )
        return row

    def told(self, name: str, **columns: Any) -> UUID:
        """Add a notification of that name to Acme's owner."""
        given: dict[str, Any] = {
            "id": number(name), "user_id": self.records.owner, "company_id": self.records.company,
            "notification_type": "DEADLINE_WARNING_7D", "channel": "EMAIL", "subject": name,
            "body_text": f"About {name}.",
            "scheduled_for": self.now - timedelta(hours=1), "created_at": self.now - timedelta(hours=1),
        } | columns  # fmt: skip
        self.add("notifications", given)
        return given["id"]

    def claim(self, name: str, provider: str, message: Message, **columns: Any) -> UUID:
        """Add a claim of a notification, or of a digest."""
        batch = number(f"batch of {name}")
        run = {"id": batch, "provider": provider, "run_id": "scheduled__1", "claimed_at": self.now}
        self.add("email_batches", run)
        given = {
            "batch_id": batch,
            "position": 1,
            "company_id": self.records.company,
            "message": pack(message),
        }
        self.add("email_attempts", given | columns)
        return batch


@contextmanager
def desk_over(databases: DatabaseMaker) -> Generator[Desk]:
    """Make the databases, fill the sample in and mount the console over it."""
    now = datetime.now(UTC)
    with ExitStack() as stack:
        made: dict[str, Engine] = {}
        for system in ("ecocomply", "platform"):
            name, made[system] = databases.make(system)
            stack.callback(databases.drop, name, made[system])
        opened = Databases(
            {"ecocomply_db": made["ecocomply"].url, "almanac_db": made["platform"].url}.__getitem__
        )
        stack.callback(opened.close)
        app = FastAPI()
        app.mount("/almanac", create_app(opened))
        app.add_middleware(JWTRefreshMiddleware)
        desk = Desk(app, Records(EngineDatabase(made["ecocomply"])), now)
        desk.records.fill()
        _people(desk)
        _jobs(desk)
        _watched(desk)
        _notifications(desk)
        put(
            made["platform"],
            RUN_SUMMARY,
            {
                "dag_id": CLOCKS, "run_id": "scheduled__1", "job": "clocks", "as_of": now, "started_at": now,
                "state": "success", "counts": {"already_told": 3, "without_recipient": 1, "processed": 9},
            },
        )  # fmt: skip
        yield desk


def _people(desk: Desk) -> None:
    records = desk.records
    records.execute("UPDATE companies SET name = :name WHERE id = :id", name=HOSTILE, id=records.other)
    records.execute("UPDATE users SET full_name = :name WHERE id = :id", name=HOSTILE, id=records.stranger)
    records.execute("UPDATE users SET full_name = 'Olive Owner' WHERE id = :id", id=records.owner)
    desk.add("sites", {"id": number("evil site"), "company_id": records.other, "name": HOSTILE})
    desk.add("modules", {"id": number("module"), "module_code": "MODULE_1", "module_name": "Permits"})


def _jobs(desk: Desk) -> None:
    records = desk.records
    acme, other = str(records.company), str(records.other)
    desk.dead("run 1", "HTTP 503 from feed 17", company_id=acme)
    desk.dead("run 2", "HTTP 502 from feed 4", company_id=acme, api_key=SECRET)
    desk.dead("run 3", HOSTILE, REPORT, company_id=other, note=HOSTILE, of={"token": SECRET})
    with attempt(records.run(), TaskTry(DagRun(REFRESH, "scheduled__2"), "refresh", 1)) as job:
        job.complete({"rows": 2})
    working = begin(
        records.run(), TaskTry(DagRun(RISK, "scheduled__3"), "work", 1), payload={"company_id": acme}
    )
    working.progress(20, 45, "Processed 20/45 sites")
    silent = begin(records.run(), TaskTry(DagRun(REPORT, "scheduled__4"), "work", 1), payload={})
    records.execute(
        "UPDATE background_jobs SET progress = CAST(:progress AS jsonb), health_status = 'STALE' WHERE id = :id",
        progress='{"current": "many", "said": "<script>alert(1)</script>"}', id=silent.job_id,
    )  # fmt: skip
    records.execute(
        "UPDATE background_jobs SET company_id = :company WHERE id = :id", company=acme, id=working.job_id
    )


def _watched(desk: Desk) -> None:
    records, today, now = desk.records, desk.today, desk.now
    acme, evil = (records.company, records.site), (records.other, number("evil site"))
    for (company, site), summary in ((acme, "Sample the outfall"), (evil, HOSTILE)):
        of, whose = number(f"obligation {summary}"), {"company_id": company, "site_id": site}
        desk.add(
            "obligations",
            {
                **whose, "id": of, "summary": summary, "status": "OVERDUE", "frequency": "MONTHLY",
                "deadline_date": today - timedelta(days=2),
            },
        )  # fmt: skip
        due = number(f"deadline {summary}")
        desk.add(
            "deadlines",
            {**whose, "id": due, "obligation_id": of, "due_date": today - timedelta(days=2), "status": "OVERDUE"},
            {**whose, "obligation_id": of, "due_date": today + timedelta(days=3), "status": "DUE_SOON"},
            {**whose, "obligation_id": of, "due_date": today - timedelta(days=40), "status": "COMPLETED"},
        )  # fmt: skip
        desk.add(
            "evidence_gaps",
            {
                **whose, "obligation_id": of, "deadline_id": due, "gap_type": "NO_EVIDENCE",
                "severity": "CRITICAL", "detected_at": now,
            },
        )  # fmt: skip
        desk.add(
            "escalations",
            {
                **whose, "obligation_id": of, "entity_type": "OBLIGATION", "entity_id": of, "escalation_level": 2,
                "escalated_at": now, "escalation_reason": summary, "escalated_to": [records.owner],
            },
        )  # fmt: skip
        for n, (colour, days) in enumerate((("RED", -1), ("AMBER", 20), ("GREEN", 60), ("GREEN", 70))):
            desk.add(
                "compliance_clocks_universal",
                {
                    **whose, "entity_type": "OBLIGATION", "entity_id": of, "clock_type": f"{summary} {n}",
                    "target_date": today + timedelta(days=days), "days_remaining": days, "criticality": colour,
                    "status": "OVERDUE" if days < 0 else "ACTIVE", "module_id": number("module"),
                },
            )  # fmt: skip
        for ago in (0, 1, 2, 4, 40):
            score = 62.5 - ago
            desk.add(
                "risk_scores",
                {
                    "company_id": company, "site_id": site, "score_date": today - timedelta(days=ago),
                    "risk_score": score, "risk_band": "HIGH" if score > 50 else "LOW", "overdue_score": 80,
                    "evidence_gap_score": 40, "escalation_score": 60, "historical_score": 55.5,
                    "factors": {"overdue_items": 3, "note": summary}, "consecutive_high_days": 3,
                    "calculated_at": now,
                },
            )  # fmt: skip
    with desk.engine.begin() as connection:
        connection.execute(text("REFRESH MATERIALIZED VIEW compliance_clock_dashboard"))


def _notifications(desk: Desk) -> None:
    records, now = desk.records, desk.now
    hour = timedelta(hours=1)
    mail = Message(
        "EcoComply <no-reply@eco.test>", "owner-11@eco.test", "Due soon", "It is due.", HOSTILE_HTML
    )
    sent = desk.told(
        "sent", status="SENT", delivery_status="SENT", delivery_provider="ecocomply_email", sent_at=now
    )
    desk.claim("sent", "ecocomply_email", mail, notification_id=sent, outcome="accepted", answered_at=now)
    desk.told("off", status="CANCELLED", status_reason="the user wants none of this type by EMAIL")
    desk.told("held", status_reason="waits for the daily digest", priority="LOW")
    desk.told("no phone", channel="SMS", status="FAILED", status_reason="the user has no phone number")
    refused = desk.told(
        "refused", dedupe_key="k/1/EMAIL", status="FAILED", status_reason="refused at the third attempt: no such box",
        retry_count=3, created_at=now - 3 * hour,
    )  # fmt: skip
    desk.told("copy", dedupe_key="k/1/IN_APP", channel="IN_APP", status="DELIVERED", delivered_at=now)
    desk.claim(
        "refused", "ecocomply_email", mail, notification_id=refused, outcome="rejected", reason="no such box"
    )
    desk.told(
        "unknown",
        status="FAILED",
        outcome_unknown=True,
        status_reason="nobody knows whether it arrived: key expired",
    )
    desk.told(
        "again", status="RETRYING", status_reason="refused at attempt 1 of 3: full", retry_count=1,
        next_attempt_at=now + hour,
    )  # fmt: skip
    digest = number("digest")
    desk.add(
        "digests",
        {
            "id": digest, "company_id": records.company, "user_id": records.owner, "frequency": "DAILY",
            "period_start": desk.today, "status": "sent", "sent_at": now,
        },
    )  # fmt: skip
    desk.told("digested", status="DELIVERED", digest_id=digest, sent_at=now, delivered_at=now)
    desk.claim("digest", "ecocomply_email", mail, digest_id=digest, outcome="accepted")
    pushed = desk.told("pushed", channel="PUSH", status="SENT", sent_at=now)
    device = Subscription(endpoint="https://push.test/of-ada", p256dh="key", auth=SECRET)
    push = Push(title="Due soon", body="It is due.", url=None, subscriptions=(device,))
    desk.claim(
        "pushed", "ecocomply_push", Message("", "x", "Due soon", push.to_json()), notification_id=pushed
    )
    desk.add(
        "delivery_pauses",
        {"service": "ecocomply_sms", "paused_until": now + hour, "pause_reason": "quota is used up"},
    )
    desk.told("paused", channel="SMS")
    desk.told(
        "evil", user_id=records.stranger, company_id=records.other, subject=HOSTILE, body_text=HOSTILE,
        status="CANCELLED", status_reason=HOSTILE, notification_type=HOSTILE, action_url=HOSTILE,
    )  # fmt: skip


def words(html: str) -> str:
    """Return a page's text as a reader has it: no tags, no references, single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def row_of(html: str, holding: str) -> str:
    """Return the words of the one row of the page's tables that holds some markup or text."""
    (found,) = [row for row in re.findall(r"<tr>.*?</tr>", html, re.DOTALL) if holding in row]
    return words(found)


def pages(client: TestClient, url: str, pattern: str) -> tuple[list[str], int]:
    """Return what a pattern finds on a list's pages, one after another, and how many pages there are."""
    found, number_of = [], 0
    while url:
        page = client.get(url).text
        found += re.findall(pattern, page)
        number_of += 1
        following = re.search(r'href="([^"]*)" rel="next"', page)
        url = unescape(following[1]) if following else ""
    return found, number_of
