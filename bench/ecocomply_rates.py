"""How many rows a second EcoComply's jobs of judgement work through: one process, which never waits beside Postgres."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.databases import Databases
from bench.ecocomply_data import RATES
from bench.ecocomply_jobs import run_of
from bench.measure import Comparison, Goal, by_turns, seconds_of
from bench.provider import API_KEY, open_provider
from bench.quiet import Quiet
from hooks.connections import Access
from hooks.email_resend import ResendMail
from include.ecocomply import (
    auto_validate_consignment_notes,
    consultant_client_sync,
    cross_sell_trigger_detection,
    digest_delivery_daily,
    execute_pending_recurrence_triggers,
    process_trigger_conditions,
)
from include.errors import Permanent
from include.job import Job, NothingOutside, perform
from include.mail_sending import Outside

_SENDER = "EcoComply <hello@ecocomply.example>"


@dataclass(frozen=True, slots=True)
class Rated:
    """A job, the count of what it works through, and how many seconds the specification gives it for one."""

    job: Job
    params: Mapping[str, Any]
    counted: str
    what: str
    seconds: float
    mails: bool = False


JOBS: Mapping[str, Rated] = {
    "cross_sell_trigger_detection": Rated(
        cross_sell_trigger_detection,
        {"company_id": None, "document_id": None, "process_recent_only": True},
        "processed",
        "documents",
        1,
    ),
    "consultant_client_sync": Rated(
        consultant_client_sync, {"consultant_id": None, "sync_type": "FULL"}, "clients_synced", "clients", 1
    ),
    "auto_validate_consignment_notes": Rated(
        auto_validate_consignment_notes, {"company_id": None, "batch_size": 50}, "processed", "notes", 2
    ),
    "process_trigger_conditions": Rated(
        process_trigger_conditions,
        {"event_type": None, "event_data": None, "company_id": None, "event_id": None},
        "processed",
        "triggers",
        1,
    ),
    "execute_pending_recurrence_triggers": Rated(
        execute_pending_recurrence_triggers,
        {"company_id": None, "batch_size": 100},
        "processed",
        "triggers",
        1,
    ),
    "digest_delivery_daily": Rated(digest_delivery_daily, {}, "sent", "digests", 1, mails=True),
}


@dataclass(frozen=True, slots=True)
class Size:
    """How many companies there are, each with a dozen documents, notes and three triggers; timed how often."""

    companies: int
    rounds: int


FULL = Size(companies=2_000, rounds=3)
TINY = Size(companies=14, rounds=1)


def measure(databases: Databases, size: Size) -> list[Comparison]:
    """Time each job on all that waits for it; the limit is the specification's, or a second where it has none."""
    now = datetime.now(UTC)
    day = now.date() - timedelta(days=1)
    template = databases.template(
        lambda connection: RATES.fill(connection, size.companies, day), system="ecocomply"
    )
    found = [_rate(databases, rated, template, now, size.rounds) for rated in JOBS.values()]
    databases.drop(template)
    return found


def _rate(databases: Databases, rated: Rated, template: str, now: datetime, rounds: int) -> Comparison:
    numbers: list[int] = []

    def job() -> float:
        with databases.copy(template) as engine, open_provider(0) as url:
            run = run_of(rated.job, rated.params, engine, now)
            outside = _mailing(url) if rated.mails else NothingOutside()
            seconds = seconds_of(lambda: perform(rated.job, run, outside))
            if not run.counts[rated.counted] or run.counts["failed"]:
                raise Permanent(f"bench: {rated.job.NAME} had no {rated.what}, or some failed: {run.counts}")
            numbers.append(run.counts[rated.counted])
            return seconds

    def floor() -> float:
        return numbers[-1] * rated.seconds if numbers else 0

    compared = Comparison(
        rated.job.NAME,
        job="all that waits, by one process",
        limit=f"{rated.seconds:g} s for each, by the specification's table or our own",
        goal=Goal.AT_LEAST,
        goal_ratio=1,
    )
    # How many there are is known by the first run alone.
    job()
    by_turns(compared, job, floor, rounds)
    rate = numbers[-1] / sorted(compared.job_seconds)[len(compared.job_seconds) // 2]
    compared.name = f"{rated.job.NAME}: {rate:,.0f} {rated.what} a second and core, of {numbers[-1]:,}"
    return compared


def _mailing(url: str) -> Outside:
    access = Access("bench", "almanac_email", url, None, None, None, API_KEY, {"from": _SENDER})
    return Outside(ResendMail(access), Quiet())
