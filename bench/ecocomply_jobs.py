"""EcoComply's set-based jobs against the same work by hand, against their own rerun, and what memory they take."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine

from bench import by_hand, ecocomply_peak
from bench.databases import Databases
from bench.ecocomply_data import DATA
from bench.measure import Comparison, Goal, by_turns, seconds_of
from include.ecocomply import (
    ZONE,
    auto_create_renewal_workflows,
    auto_transition_corrective_actions,
    check_regulator_response_deadlines,
    check_runtime_exceedances,
    deadline_alert,
    detect_breaches_and_alerts,
    evidence_expiry_tracking,
    evidence_gap_detection,
    evidence_reminder,
    flag_pending_runtime_validations,
    monitor_corrective_action_items,
    monitoring_schedule,
    permit_renewal_reminder,
    process_escalations,
    recurring_task_generation,
    refresh_compliance_dashboard,
    review_queue_escalation,
    risk_score_calculation,
    run_hour_monitoring,
    sampling_schedule,
    update_compliance_clocks,
    update_sla_breach_timers,
)
from include.ecocomply.access import ServiceDatabase
from include.errors import Permanent
from include.job import Job, NothingOutside, perform
from include.run import EngineDatabase, Run
from include.statements import statement

_MOST_REWRITTEN, _ELSEWHERE = 0.1, 1.05


@dataclass(frozen=True, slots=True)
class Timed:
    """A job with the params that its DAG has by default, and its main table.

    `rewrites` says that a first run changes most of the main table, so that a rerun has next to nothing to do.
    `by_ids` are the statements whose rows by hand too are named, since a param narrows them beforehand.
    """

    job: Job
    table: str
    params: Mapping[str, Any]
    rewrites: bool = False
    by_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows a main table has, and how many for a memory to compare with; timed how often.

    `jobs` are those that are timed, `memory_of` those whose memory is measured: all, if none is named.
    """

    rows: int
    few: int
    one_by_one: int
    rounds: int
    jobs: tuple[str, ...] = ()
    memory_of: tuple[str, ...] = ()


def _all(**params: Any) -> dict[str, Any]:
    return {"company_id": None} | params


JOBS: Mapping[str, Timed] = {
    "update_compliance_clocks": Timed(
        update_compliance_clocks,
        "compliance_clocks_universal",
        _all(site_id=None, module_id=None, batch_size=1_000),
        rewrites=True,
    ),
    "monitoring_schedule": Timed(
        monitoring_schedule, "obligations", _all(site_id=None, force_recalculate=False)
    ),
    "deadline_alert": Timed(deadline_alert, "deadlines", _all(site_id=None, trigger_source=None)),
    "evidence_reminder": Timed(evidence_reminder, "obligations", _all(site_id=None)),
    "evidence_gap_detection": Timed(
        evidence_gap_detection, "deadlines", _all(look_ahead_days=30), by_ids=("open_gaps",)
    ),
    "evidence_expiry_tracking": Timed(evidence_expiry_tracking, "evidence_items", {}),
    "recurring_task_generation": Timed(recurring_task_generation, "recurring_tasks", {}, rewrites=True),
    "sampling_schedule": Timed(
        sampling_schedule, "parameters", _all(site_id=None, parameter_id=None, force_generate=False)
    ),
    "run_hour_monitoring": Timed(
        run_hour_monitoring,
        "run_hour_records",
        _all(generator_id=None, check_monthly=True, check_annual=True),
    ),
    "check_runtime_exceedances": Timed(
        check_runtime_exceedances,
        "runtime_monitoring",
        _all(generator_id=None, batch_size=100),
        rewrites=True,
    ),
    "flag_pending_runtime_validations": Timed(
        flag_pending_runtime_validations, "runtime_monitoring", _all(pending_threshold_hours=24)
    ),
    "risk_score_calculation": Timed(risk_score_calculation, "deadlines", _all(site_id=None)),
    "process_escalations": Timed(
        process_escalations, "deadlines", _all(obligation_category=None, batch_size=500)
    ),
    "update_sla_breach_timers": Timed(update_sla_breach_timers, "deadlines", _all(batch_size=500)),
    "detect_breaches_and_alerts": Timed(detect_breaches_and_alerts, "deadlines", _all(batch_size=500)),
    "review_queue_escalation": Timed(review_queue_escalation, "review_queue_items", _all()),
    "auto_create_renewal_workflows": Timed(
        auto_create_renewal_workflows, "documents", _all(advance_notice_days=90)
    ),
    "check_regulator_response_deadlines": Timed(
        check_regulator_response_deadlines, "permit_workflows", _all(), rewrites=True
    ),
    "permit_renewal_reminder": Timed(
        permit_renewal_reminder, "documents", _all(site_id=None, reminder_days=[90, 30, 7])
    ),
    "monitor_corrective_action_items": Timed(
        monitor_corrective_action_items, "corrective_action_items", _all(batch_size=200)
    ),
    "auto_transition_corrective_actions": Timed(
        auto_transition_corrective_actions, "corrective_action_items", _all()
    ),
    "refresh_compliance_dashboard": Timed(
        refresh_compliance_dashboard, "compliance_clocks_universal", {"refresh_mode": "CONCURRENT"}
    ),
}

MILLION = Size(rows=1_000_000, few=10_000, one_by_one=3_000, rounds=3)
FULL = replace(MILLION, rows=100_000)
# One of each way of working: at once, told alone, changed and told, by a batch of its own.
_SOME = (
    "update_compliance_clocks",
    "deadline_alert",
    "process_escalations",
    "check_runtime_exceedances",
)
TINY = Size(rows=600, few=200, one_by_one=20, rounds=1, jobs=_SOME, memory_of=_SOME[:1])


def measure(databases: Databases, size: Size) -> list[Comparison]:
    """Time every job, a main table after the other, so that one template serves all jobs of a table."""
    now = datetime.now(UTC)
    found: list[Comparison] = []
    asked = {name: JOBS[name] for name in size.jobs or JOBS}
    for table in dict.fromkeys(timed.table for timed in asked.values()):
        template = _template(databases, table, size.rows, now)
        of_table = {name: timed for name, timed in asked.items() if timed.table == table}
        for name, timed in of_table.items():
            found += _measure_one(databases, name, timed, template, now, size)
        if "update_compliance_clocks" in of_table:
            found.append(_one_by_one(databases, template, now, size))
        if measured := [name for name in of_table if name in (size.memory_of or JOBS)]:
            small = _template(databases, table, size.few, now)
            found += [_memory(databases, name, template, small, now) for name in measured]
            databases.drop(small)
        databases.drop(template)
    return found


def _template(databases: Databases, table: str, rows: int, now: datetime) -> str:
    # Of the day before, so that the jobs do what a day brings.
    day = now.date() - timedelta(days=1)
    return databases.template(lambda connection: DATA[table].fill(connection, rows, day), system="ecocomply")


def _measure_one(
    databases: Databases, name: str, timed: Timed, template: str, now: datetime, size: Size
) -> list[Comparison]:
    with databases.copy(template) as engine:
        rows = f"{by_hand.rows_of(engine, timed.table):,} {timed.table}"
        mark = by_hand.mark_of(engine)
        asked = by_hand.asked_by(timed.job, _run(timed, engine, now), engine, NothingOutside())
        written = by_hand.written_since(engine, mark)
        ready = databases.template_of(template, lambda target: by_hand.make_ready(engine, target, mark))
    first = Comparison(
        f"{name}, {rows}",
        job=f"the job, {sum(written.values()):,} rows written",
        limit="its statements, each once for all rows, told by an INSERT of ready rows, in one transaction",
        goal=Goal.AT_MOST,
        goal_ratio=1.3,
    )
    again = Comparison(
        f"{name} again, {rows}",
        job="the rerun on the same day, that writes nothing",
        limit="the first run",
        goal=Goal.AT_MOST,
        goal_ratio=_MOST_REWRITTEN if timed.rewrites else _ELSEWHERE,
    )

    def job() -> float:
        with databases.copy(template) as engine:
            seconds = seconds_of(lambda: perform(timed.job, _run(timed, engine, now), NothingOutside()))
            after = by_hand.mark_of(engine)
            again.limit_seconds.append(seconds)
            again.job_seconds.append(
                seconds_of(lambda: perform(timed.job, _run(timed, engine, now), NothingOutside()))
            )
            by_hand.must_be(f"rows that the rerun of {name} wrote", by_hand.written_since(engine, after), {})
            return seconds

    def hand() -> float:
        with databases.copy(ready) as engine:
            before = by_hand.mark_of(engine)
            seconds = seconds_of(lambda: by_hand.work(engine, asked, timed.by_ids))
            by_hand.must_be(
                f"rows that {name} writes by hand", by_hand.written_since(engine, before), written
            )
            return seconds

    by_turns(first, job, hand, size.rounds)
    databases.drop(ready)
    return [first, again]


def _memory(databases: Databases, name: str, template: str, small: str, now: datetime) -> Comparison:
    compared = Comparison(
        f"{name}, memory",
        job="megabytes by which a process of its own grows at its peak",
        limit="the same with few rows",
        goal=Goal.AT_MOST,
        goal_ratio=1.5,
        unit="MB",
    )
    for sizes, taken in ((template, compared.job_seconds), (small, compared.limit_seconds)):
        with databases.copy(sizes) as engine:
            taken.append(_peak(engine, name, now))
    return compared


def _peak(engine: Engine, name: str, now: datetime) -> float:
    """Return by how many megabytes a child process grows while it runs a job; at least one."""
    url = engine.url.render_as_string(hide_password=False)
    said = subprocess.run(
        [sys.executable, "-m", ecocomply_peak.__name__, name, now.isoformat()],
        input=url,
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode:
        raise Permanent(f"bench: {name} failed in a process of its own: {said.stderr[-500:]}")
    return max(1.0, float(said.stdout))


def _one_by_one(databases: Databases, template: str, now: datetime, size: Size) -> Comparison:
    timed = JOBS["update_compliance_clocks"]
    with databases.copy(template) as engine:
        rows = by_hand.rows_of(engine, timed.table)
    number = min(size.one_by_one, rows)
    compared = Comparison(
        f"clocks at once, {rows:,}",
        job="the job, its reminders included",
        limit=f"a batch read, then an UPDATE and a COMMIT a clock, nobody reminded; {number:,}, extrapolated",
        goal=Goal.AT_LEAST,
        goal_ratio=60,
        scale=rows / number,
    )

    def job() -> float:
        with databases.copy(template) as engine:
            return seconds_of(lambda: perform(timed.job, _run(timed, engine, now), NothingOutside()))

    def one_by_one() -> float:
        with databases.copy(template) as engine:
            return seconds_of(lambda: _clock_by_clock(engine, now, number))

    return by_turns(compared, job, one_by_one, size.rounds)


def _clock_by_clock(engine: Engine, now: datetime, number: int) -> None:
    database, after, done = ServiceDatabase(EngineDatabase(engine)), None, 0
    while done < number:
        with database.transaction() as tx:
            batch = tx.rows(statement("bench", "clocks_to_recalculate"), after=after, limit=1_000)
        if not batch:
            raise Permanent(f"bench: {done} clocks run, not {number}")
        after = batch[-1].id
        for row in batch[: number - done]:
            days = (row.target_date - now.date()).days
            band = next(one for one in update_compliance_clocks.BANDS if one.most is None or days <= one.most)
            with database.transaction() as tx:
                tx.execute(
                    statement("bench", "recalculate_one_clock"),
                    id=row.id, days=days, criticality=band.criticality, status=band.status,
                )  # fmt: skip
        done += len(batch)


def _run(timed: Timed, engine: Engine, now: datetime) -> Run:
    return run_of(timed.job, timed.params, engine, now)


def run_of(job: Job, params: Mapping[str, Any], engine: Engine, now: datetime) -> Run:
    """Return a run of a job as the service, whose warnings nobody reads."""
    quiet = logging.getLogger("almanac.bench")
    quiet.setLevel(logging.ERROR)
    return Run(
        job=job.NAME,
        run_id="bench",
        as_of=now,
        zone=ZONE,
        db=ServiceDatabase(EngineDatabase(engine)),
        params=dict(params),
        settings=dict(job.SETTINGS),
        log=quiet,
    )
