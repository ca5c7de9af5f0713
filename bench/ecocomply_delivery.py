"""EcoComply's notifications: a full queue delivered against one by one, and telling people against a bare INSERT."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime

import httpx
from sqlalchemy import Connection, Engine

from bench import by_hand
from bench.databases import Databases
from bench.measure import Comparison, Goal, by_turns, seconds_of
from bench.provider import API_KEY, open_provider
from bench.quiet import Quiet
from hooks.connections import Access
from hooks.email_outbox import OutboxMail
from hooks.email_resend import ResendMail
from include.ecocomply import ZONE, notification_delivery
from include.ecocomply.access import ServiceDatabase, act_as_service
from include.ecocomply.channels import PushesToOutbox, TextsToOutbox
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import ASSIGNEE
from include.ecocomply.unsubscribe_links import UnsubscribeLinks
from include.errors import Permanent
from include.isolation import CHUNK, chunks
from include.job import perform
from include.run import EngineDatabase, Run, Transaction
from include.statements import statement

_SENDER = "EcoComply <hello@ecocomply.example>"
_URL = "https://app.ecocomply.example"
_USERS = 100
_PEOPLE, _CHANNELS = 2, 2
"""Whom a notice is usually for: an assignee and a manager, in the application and by mail."""
_COMPANY = uuid.UUID(int=1)
_SITE = uuid.UUID(int=2)


@dataclass(frozen=True, slots=True)
class Size:
    """How many mails are due, how many of them the baseline sends, how many rows tell people; timed how often."""

    mails: int
    one_by_one: int
    told: int
    rounds: int
    latency_ms: float = 50


FULL = Size(mails=10_000, one_by_one=200, told=100_000, rounds=3)
TINY = Size(mails=60, one_by_one=10, told=200, rounds=2, latency_ms=5)


def measure(databases: Databases, size: Size) -> list[Comparison]:
    """Time a delivery run against row by row, and `tell` against one INSERT of as many rows."""
    full = databases.template(lambda connection: _fill(connection, size.mails), system="ecocomply")
    delivered = Comparison(
        f"{size.mails:,} EcoComply notifications delivered",
        job=f"a request a mail, 100 in flight, from the first look to the last recorded row, answers after "
        f"{size.latency_ms:g} ms",
        limit=f"one row at a time: look, POST, record; {size.one_by_one} sent, extrapolated",
        goal=Goal.AT_LEAST,
        goal_ratio=60,
        scale=size.mails / size.one_by_one,
    )

    def deliver() -> float:
        with databases.copy(full) as engine, open_provider(size.latency_ms) as url:
            return seconds_of(lambda: _deliver(engine, url, size.mails))

    def one_by_one() -> float:
        with databases.copy(full) as engine, open_provider(size.latency_ms) as url:
            return seconds_of(lambda: _one_by_one(engine, url, size.one_by_one))

    by_turns(delivered, deliver, one_by_one, size.rounds)
    databases.drop(full)
    empty = databases.template(lambda connection: _fill(connection, 0), system="ecocomply")
    told = [_told(databases, empty, size, shared) for shared in (False, True)]
    databases.drop(empty)
    return [delivered, *told]


def _told(databases: Databases, empty: str, size: Size, shared: bool) -> Comparison:  # noqa: FBT001 - one of two
    """Time `tell` against one INSERT of the rows that it makes, which lie ready."""
    notices = size.told // (_PEOPLE * _CHANNELS) if shared else size.told
    with databases.copy(empty) as engine:
        mark = by_hand.mark_of(engine)
        _tell(engine, notices, size.told, shared=shared)
        written = by_hand.written_since(engine, mark)
        ready = databases.template_of(empty, lambda target: by_hand.make_ready(engine, target, mark))
    by_hand.must_be("rows that people are told by", written, {"notifications": size.told})
    whom = f"{_PEOPLE} people by {_CHANNELS} channels" if shared else "one person by one channel"
    compared = Comparison(
        f"{size.told:,} EcoComply notifications, each notice to {whom}",
        job=f"tell: worded, recipients and channels found, once a key; {CHUNK:,} notices a statement, a commit each",
        limit="one INSERT … SELECT of the same rows, and a commit",
        goal=Goal.AT_MOST,
        goal_ratio=1.3,
    )

    def telling() -> float:
        with databases.copy(empty) as engine:
            return seconds_of(lambda: _tell(engine, notices, size.told, shared=shared))

    def bare() -> float:
        with databases.copy(ready) as engine:
            return seconds_of(lambda: _insert(engine, size.told))

    by_turns(compared, telling, bare, size.rounds)
    databases.drop(ready)
    return compared


def _fill(connection: Connection, mails: int) -> None:
    act_as_service(Transaction(connection))
    connection.execute(statement("bench", "add_ecocomply_people").clause, {"people": _USERS})
    connection.execute(statement("bench", "add_ecocomply_mail").clause, {"people": _USERS, "mails": mails})


def _run(engine: Engine, job: str) -> Run:
    return Run(
        job=job,
        run_id="bench",
        as_of=datetime.now(UTC),
        zone=ZONE,
        db=ServiceDatabase(EngineDatabase(engine)),
        params={},
        settings={"APP_URL": _URL, "PUBLIC_URL": _URL, "ADMIN_ALERT_EMAIL": None},
    )


def _deliver(engine: Engine, url: str, mails: int) -> None:
    extra = {"from": _SENDER, "batch_size": 1}
    mail = ResendMail(Access("bench", "almanac_email", url, None, None, None, API_KEY, extra))
    unused = OutboxMail(Access("bench", "almanac_email", None, None, None, None, None, {"from": _SENDER}))
    outside = notification_delivery.Outside(
        mail, TextsToOutbox(unused), PushesToOutbox(unused), UnsubscribeLinks(b"k" * 32), Quiet()
    )
    run = _run(engine, notification_delivery.NAME)
    perform(notification_delivery, run, outside)
    if run.counts["sent"] != mails:
        raise Permanent(f"bench: {run.counts['sent']} mails sent, not {mails}")


def _one_by_one(engine: Engine, url: str, mails: int) -> None:
    """Do what the specification's job does with each notification, before the next."""
    database = ServiceDatabase(EngineDatabase(engine))
    headers = {"Authorization": f"Bearer {API_KEY}"}
    with httpx.Client(base_url=url, headers=headers, trust_env=False) as http:
        for _ in range(mails):
            with database.transaction() as tx:
                row = tx.row(statement("bench", "next_ecocomply_mail"))
            if row is None:
                raise Permanent("bench: no notification is left")
            body = {
                "from": _SENDER, "to": [row.email], "subject": row.subject, "text": row.body_text,
                "html": row.body_html,
            }  # fmt: skip
            answer = http.post("/emails", json=body)
            with database.transaction() as tx:
                provider_id = answer.raise_for_status().json()["id"]
                tx.execute(statement("bench", "ecocomply_mail_sent"), id=row.id, provider_id=provider_id)


def _tell(engine: Engine, notices: int, rows: int, *, shared: bool) -> None:
    run = _run(engine, "bench")
    due = date(2027, 1, 31)
    for some in chunks(range(notices), CHUNK):
        made = [
            Notice(
                kind="evidence_reminder",
                company_id=_COMPANY,
                site_id=_SITE,
                entity_id=uuid.UUID(int=number + 1_000),
                recipients=ASSIGNEE,
                named=_people(number, _PEOPLE if shared else 1),
                channels=() if shared else ("EMAIL",),
                counts_toward=due,
                values={"obligation": f"Stack test {number}", "site": "Leeds", "due_date": due},
            )
            for number in some
        ]
        with run.transaction() as tx:
            tell(run, tx, made)
    by_hand.must_be("notifications made", run.counts["notifications"], rows)


def _people(number: int, people: int) -> list[uuid.UUID]:
    return [uuid.UUID(int=100_000 + (number + place) % _USERS) for place in range(people)]


def _insert(engine: Engine, rows: int) -> None:
    with ServiceDatabase(EngineDatabase(engine)).transaction() as tx:
        by_hand.must_be("rows inserted", tx.execute(statement("bench", "tell_ecocomply_ready")), rows)
