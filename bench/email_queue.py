"""A full mail queue, in batches and singly, against the specification's job that sends one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import httpx
from sqlalchemy import Connection, Engine, Row

from bench.databases import Databases
from bench.measure import Comparison, Goal, by_turns, seconds_of
from bench.provider import API_KEY, open_provider
from bench.quiet import Quiet
from hooks.connections import Access
from hooks.email_resend import ResendMail
from include.as_of import local_date
from include.clearpath import ZONE, email_queue_dispatch
from include.clearpath.mail_templates import SequencedValues, sequenced
from include.errors import Permanent
from include.job import perform
from include.run import EngineDatabase, Run
from include.statements import statement

_SENDER = "ClearPath RD <hello@clearpath.example>"
_APP_URL = "https://app.clearpath.example"
_NODE_LIMIT = 50


@dataclass(frozen=True, slots=True)
class Size:
    """How many mails are due, how many of them the baseline sends, and how often it is timed."""

    mails: int
    one_by_one: int
    rounds: int
    latency_ms: float = 50


FULL = Size(mails=10_000, one_by_one=200, rounds=3)
TINY = Size(mails=60, one_by_one=10, rounds=2, latency_ms=5)


def measure(databases: Databases, size: Size) -> list[Comparison]:
    """Time the job's steps over the whole queue, in batches of 100 and of 1, and the baseline over a part."""
    template = databases.template(lambda connection: _fill(connection, size.mails))
    form = Comparison(
        "",
        job="",
        limit=f"one row at a time: look, render, POST, record; {size.one_by_one} sent, extrapolated",
        goal=Goal.AT_LEAST,
        goal_ratio=0,
        scale=size.mails / size.one_by_one,
    )
    steps = f"from claim to last recorded row, answers after {size.latency_ms:g} ms"
    in_batches = replace(
        form,
        name=f"{size.mails:,} mails in batches",
        job=f"batches of 100, {steps}",
        goal_ratio=200,
        job_seconds=[],
        limit_seconds=[],
    )
    singly = replace(
        form,
        name=f"{size.mails:,} mails singly",
        job=f"a request a mail, {steps}",
        goal_ratio=60,
        job_seconds=[],
        limit_seconds=[],
    )

    def dispatch(batch_size: int) -> float:
        with databases.copy(template) as engine, open_provider(size.latency_ms) as url:
            extra = {"from": _SENDER, "batch_size": batch_size}
            mail = ResendMail(Access("bench", "almanac_email", url, None, None, None, API_KEY, extra))
            return seconds_of(lambda: _dispatch(engine, mail, size.mails))

    def one_by_one() -> float:
        with databases.copy(template) as engine, open_provider(size.latency_ms) as url:
            return seconds_of(lambda: _one_by_one(engine, url, size.one_by_one))

    by_turns(in_batches, lambda: dispatch(100), one_by_one, size.rounds)
    by_turns(singly, lambda: dispatch(1), one_by_one, size.rounds)
    databases.drop(template)
    return [in_batches, singly]


def _fill(connection: Connection, mails: int) -> None:
    for name in ("add_users", "add_due_sessions", "add_due_mail"):
        connection.execute(statement("bench", name).clause, {"people": mails, "mails": mails})


def _dispatch(engine: Engine, mail: ResendMail, mails: int) -> None:
    run = Run(
        job=email_queue_dispatch.NAME,
        run_id="bench",
        as_of=datetime.now(UTC),
        zone=ZONE,
        db=EngineDatabase(engine),
        params={"batch_limit": mails},
        settings={"APP_URL": _APP_URL, "ADMIN_ALERT_EMAIL": None},
    )
    perform(email_queue_dispatch, run, email_queue_dispatch.Outside(mail, Quiet()))
    if run.counts["sent"] != mails:
        raise Permanent(f"bench: {run.counts['sent']} mails sent, not {mails}")


def _one_by_one(engine: Engine, url: str, mails: int) -> None:
    """Do what the specification's Node job does: 50 rows a look, then all of one row before the next."""
    database = EngineDatabase(engine)
    headers = {"Authorization": f"Bearer {API_KEY}"}
    sent = 0
    with httpx.Client(base_url=url, headers=headers, trust_env=False) as http:
        while sent < mails:
            with database.transaction() as tx:
                due = tx.rows(statement("bench", "node_due"), limit=min(_NODE_LIMIT, mails - sent))
            for row in due:
                with database.transaction() as tx:
                    wanted = tx.row(statement("bench", "node_row"), id=row.id)
                if wanted is None or wanted.sent_before:
                    raise Permanent(f"bench: mail {row.id} is not to be sent")
                answer = http.post("/emails", json=_message(wanted))
                with database.transaction() as tx:
                    tx.execute(
                        statement("bench", "node_sent"),
                        id=row.id,
                        provider_id=answer.raise_for_status().json()["id"],
                    )
                sent += 1


def _message(row: Row[Any]) -> dict[str, object]:
    today = datetime.now(UTC)
    mail = sequenced(
        row.email_type,
        SequencedValues(
            full_name=row.full_name,
            address=row.address,
            kit_serial_number=row.kit_serial_number,
            activated_on=local_date(row.activated_at, ZONE),
            expected_completion_date=row.expected_completion_date,
            today=local_date(today, ZONE),
            session_url=f"{_APP_URL}/sessions/{row.test_session_id}",
            app_url=_APP_URL,
        ),
    )
    return {"from": _SENDER, "to": [row.email], "subject": mail.subject, "text": mail.text, "html": mail.html}
