"""What tests of the records of jobs work on: rows as an application makes them, an Airflow, and deaths."""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import Engine, Row, event, text

from include.ecocomply.job_records.attempts import attempt
from include.ecocomply.job_records.dag_runs import DagRun, NotReady, RunStanding, TaskTry
from include.errors import Permanent, Refused
from include.run import EngineDatabase, Run
from tests.fakes.world import FakeAlerts, FakeLab, FakeMail, FakeStorage, Tick, World, no_tick

DAG = "ecocomply_risk_score_calculation"
LIVE = RunStanding(live=True, working=True)
IDLE = RunStanding(live=True, working=False)
OVER = RunStanding(live=False, working=False)
TIMED_OUT = RunStanding(live=False, working=False, timed_out=True)


@dataclass
class FakeAirflow:
    """Runs by their ids, how each stands, and with which conf each was started. `refuse` and `missing` name DAGs."""

    tick: Tick = no_tick
    runs: dict[DagRun, RunStanding] = field(default_factory=dict)
    started: dict[DagRun, Mapping[str, Any]] = field(default_factory=dict)
    refuse: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    asked: int = 0

    def standing(self, runs: Collection[DagRun]) -> Mapping[DagRun, RunStanding]:
        self.asked += 1
        return {run: self.runs[run] for run in runs if run in self.runs}

    def start(self, dag_id: str, run_id: str, conf: Mapping[str, Any]) -> None:
        self.tick("start before")
        if dag_id in self.refuse:
            raise Refused(f"airflow: {dag_id} takes no such param")
        if dag_id in self.missing:
            raise NotReady(f"airflow: {dag_id} was not found")
        run = DagRun(dag_id, run_id)
        if run not in self.runs:
            self.runs[run] = LIVE
            self.started[run] = dict(conf)
        self.tick("start after")

    def is_over(self, standing: RunStanding = OVER) -> None:
        """Let every run end so."""
        self.runs = dict.fromkeys(self.runs, standing)


@dataclass
class WorldWithRuns(World):
    """What the platform's own jobs reach beyond their database: Airflow, and the operators' ledger."""

    runs: FakeAirflow = field(default_factory=FakeAirflow)

    def die_by(self, tick: Tick) -> None:
        super().die_by(tick)
        self.runs.tick = tick

    def state(self) -> Mapping[str, Any]:
        """Return what the world has seen, without a run's as-of, the moment of its start, and ids of new letters."""
        started = {
            run.key: {name: value for name, value in conf.items() if name != "as_of"}
            for run, conf in self.runs.started.items()
        }
        return {**super().state(), "started": started, "alerts": sorted(self.alerts.told.values())}


def world_with_runs(runs: Mapping[DagRun, RunStanding]) -> WorldWithRuns:
    """Return a world in which Airflow has these runs."""
    return WorldWithRuns(
        FakeMail(), FakeAlerts(), FakeLab([]), FakeStorage(), runs=FakeAirflow(runs=dict(runs))
    )


def outside_with_runs(job: Any, around: WorldWithRuns) -> Any:
    """Return what a job that asks Airflow is handed."""
    return job.Outside(around.runs, around.alerts)


@dataclass
class Records:
    """A database of EcoComply's with two companies, and what tests do to its jobs.

    `owner`, `admin` and `staff` are of `company`, `stranger` is the owner of `other`; `consultant` is of `other`
    and has `company` for a client.
    """

    database: EngineDatabase
    company: UUID = field(default_factory=lambda: UUID(int=1))
    other: UUID = field(default_factory=lambda: UUID(int=2))
    site: UUID = field(default_factory=lambda: UUID(int=3))
    owner: UUID = field(default_factory=lambda: UUID(int=11))
    admin: UUID = field(default_factory=lambda: UUID(int=12))
    staff: UUID = field(default_factory=lambda: UUID(int=13))
    stranger: UUID = field(default_factory=lambda: UUID(int=14))
    consultant: UUID = field(default_factory=lambda: UUID(int=15))

    @property
    def engine(self) -> Engine:
        return self.database.engine

    def fill(self) -> None:
        """Insert the companies and their users."""
        self.execute(
            "INSERT INTO companies (id, name) VALUES (:company, 'Acme'), (:other, 'Other')",
            company=self.company, other=self.other,
        )  # fmt: skip
        self.execute(
            "INSERT INTO sites (id, company_id, name) VALUES (:site, :company, 'Works')",
            site=self.site, company=self.company,
        )  # fmt: skip
        people = (
            (self.owner, self.company, "OWNER"), (self.admin, self.company, "ADMIN"),
            (self.staff, self.company, "STAFF"), (self.stranger, self.other, "OWNER"),
            (self.consultant, self.other, "CONSULTANT"),
        )  # fmt: skip
        for user, company, role in people:
            self.execute(
                "INSERT INTO users (id, company_id, email) VALUES (:id, :company, :email)",
                id=user, company=company, email=f"{role.lower()}-{user.int}@eco.test",
            )  # fmt: skip
            self.execute(
                "INSERT INTO user_roles (user_id, company_id, role) VALUES (:id, :company, :role)",
                id=user, company=company, role=role,
            )  # fmt: skip
        self.execute(
            "INSERT INTO consultant_client_assignments (consultant_id, company_id, status)"
            " VALUES (:consultant, :company, 'ACTIVE')",
            consultant=self.consultant, company=self.company,
        )  # fmt: skip

    def forget(self) -> None:
        """Delete every job and what came of it; companies and users stay."""
        for table in ("notifications", "audit_logs", "dead_letter_queue", "background_jobs", "queue_audit"):
            self.execute(f"DELETE FROM {table}")

    def run(self, **fields: Any) -> Run:
        """Return a run as of now."""
        given: dict[str, Any] = {
            "job": "job",
            "run_id": "run",
            "as_of": datetime.now(UTC),
            "zone": ZoneInfo("UTC"),
            "db": self.database,
            "settings": {"ADMIN_ALERT_EMAIL": "ops@eco.test"},
        }
        return Run(**(given | fields))

    def add(self, job_type: str = "RISK_SCORE_CALCULATION", **columns: Any) -> UUID:
        """Insert a job as an application does, due a minute ago, and return its id."""
        given: dict[str, Any] = {"job_type": job_type, "scheduled_for": ago(minutes=1)} | columns
        if "payload" in given:
            given["payload"] = json.dumps(given["payload"])
        names, binds = ", ".join(given), ", ".join(f":{name}" for name in given)
        statement = f"INSERT INTO background_jobs ({names}) VALUES ({binds}) RETURNING id"
        with self.engine.begin() as connection:
            return connection.execute(text(statement), given).scalar_one()

    def execute(self, statement: str, **binds: Any) -> int:
        with self.engine.begin() as connection:
            return connection.execute(text(statement), binds).rowcount

    def rows(self, statement: str, **binds: Any) -> list[Row[Any]]:
        with self.engine.connect() as connection:
            return list(connection.execute(text(statement), binds).all())

    def job(self, job_id: UUID | None = None) -> Row[Any]:
        """Return a job's row; without an id the only one."""
        (row,) = self.rows("SELECT * FROM background_jobs WHERE id = coalesce(:id, id)", id=job_id)
        return row

    def letters(self) -> list[Row[Any]]:
        return self.rows("SELECT * FROM dead_letter_queue ORDER BY created_at, id")

    def entries(self, action: str) -> list[Row[Any]]:
        return self.rows(
            "SELECT * FROM audit_logs WHERE action_type = :action ORDER BY created_at, id", action=action
        )

    def notified(self) -> set[UUID]:
        return {row.user_id for row in self.rows("SELECT user_id FROM notifications")}

    def age(self, by: timedelta) -> None:
        """Let every claim and every start be older."""
        self.execute(
            "UPDATE background_jobs SET heartbeat_at = heartbeat_at - :by, started_at = started_at - :by"
            " WHERE status = 'RUNNING'",
            by=by,
        )

    def due(self) -> None:
        """Let what waits for another try be due."""
        self.execute("UPDATE background_jobs SET scheduled_for = now() WHERE status = 'PENDING'")


def ago(**of: float) -> datetime:
    """Return an instant in the past."""
    return datetime.now(UTC) - timedelta(**of)


def scheduled(
    number: int = 1,
    *,
    dag: str = "ecocomply_risk_score_calculation",
    task: str = "calculate",
    cleared: int = 0,
) -> TaskTry:
    """Return a try of a task of a run by the clock."""
    return TaskTry(DagRun(dag, "scheduled__2026-11-27T04:00:00+00:00", cleared), task, number)


def dead(records: Records, run_id: str = "scheduled__1", **payload: Any) -> UUID:
    """Let a job fail for good; return the letter."""
    task = TaskTry(DagRun(DAG, run_id), "work", 1)
    with suppress(Permanent), attempt(records.run(), task, payload=payload):
        raise Permanent(f"{run_id} is bad")
    (found,) = records.rows(
        "SELECT d.id FROM dead_letter_queue AS d JOIN background_jobs AS q ON q.dead_letter_queue_id = d.id"
        " WHERE q.dag_run_id = :run",
        run=task.dag_run.key,
    )
    return found.id


class Killed(BaseException):
    """The process is gone: from here on it does nothing more."""


@contextmanager
def dies_at(engine: Engine, number: int, airflow: FakeAirflow | None = None) -> Generator[list[str]]:
    """End the process at an event, a statement, a commit or a call outside, and let nothing happen after it."""
    events: list[str] = []

    def tick(what: str) -> None:
        events.append(what)
        if number and len(events) >= number:
            raise Killed(what)

    def statement(conn: Any, cursor: Any, sql: str, *rest: Any) -> None:
        tick(sql.split("\n", maxsplit=1)[0])

    def commit(conn: Any) -> None:
        tick("commit")

    event.listen(engine, "before_cursor_execute", statement)
    event.listen(engine, "commit", commit)
    if airflow is not None:
        airflow.tick = tick
    try:
        yield events
    finally:
        event.remove(engine, "before_cursor_execute", statement)
        event.remove(engine, "commit", commit)
        if airflow is not None:
            airflow.tick = no_tick
