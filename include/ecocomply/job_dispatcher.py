"""The dispatcher: rows that an application inserted start their DAGs, each its one run, or fail with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError

from include.alerts import Alerts, RecordedAlerts
from include.ecocomply.access import as_service, companies_seen
from include.ecocomply.job_records import failures
from include.ecocomply.job_records.dag_runs import (
    AirflowRuns,
    DagRun,
    NotReady,
    RecordedRuns,
    RunStanding,
    standing_of,
)
from include.ecocomply.job_records.dispatch import Start, decide, next_run_id
from include.ecocomply.job_records.failures import DISPATCH, PACKAGE, Burials, Fault
from include.effects import Effects
from include.errors import BadInput, Permanent
from include.isolation import chunks
from include.run import Run, is_row_fault
from include.statements import statement

NAME = "jobDispatcher"
SETTINGS: dict[str, str | None] = {"ADMIN_ALERT_EMAIL": None}
QUEUES: tuple[str, ...] = ("background_jobs",)

CHUNK = 100


class Outside(NamedTuple):
    """Airflow, and the operators' ledger."""

    runs: AirflowRuns
    alerts: Alerts

    def in_preview(self, run: Run, effects: Effects) -> Outside:
        jobs = [job for ids in chunks(_due(run), CHUNK) for job in _jobs(run, ids)]
        standing = standing_of(self.runs, [job.dag_run_id for job in jobs])
        alerts = RecordedAlerts(self.alerts, effects, run.settings["ADMIN_ALERT_EMAIL"])
        return Outside(RecordedRuns(standing, effects), alerts)


def start_due_jobs(run: Run, outside: Outside) -> None:
    """Start a run for every waiting job that is due and has no live one: the most urgent first, companies in turn."""
    due = _due(run)
    if run.params.get("job_id") is not None and not due:
        _say_why_not(run)
    users: dict[UUID, frozenset[UUID]] = {}
    for ids in chunks(due, CHUNK):
        jobs = _jobs(run, ids)
        standing = standing_of(outside.runs, [job.dag_run_id for job in jobs])
        run.count("processed", len(jobs))
        for job in jobs:
            try:
                _start(run, outside, job, standing, users)
            except DBAPIError as error:
                if not is_row_fault(error):
                    raise
                run.row_failed(job.id, error)


def tell_operators(run: Run, outside: Outside) -> None:
    """Tell the operators of jobs that were refused and are no company's."""
    failures.tell_operators(run, outside.alerts)


def _start(
    run: Run,
    outside: Outside,
    job: Row[Any],
    standing: Mapping[DagRun, RunStanding],
    users: dict[UUID, frozenset[UUID]],
) -> None:
    run_id = next_run_id(job, standing)
    if run_id is None:
        run.count("skipped")
        run.row_skipped(job.id, "a run of it is live")
        return
    try:
        start = decide(job, _companies(run, job.created_by, users), job.now)
    except BadInput as error:
        _refuse(run, job, error)
        return
    # Committed before Airflow hears of it: whoever comes after a kill starts this run, and no second.
    if not _named(run, job, DagRun(start.dag.dag_id, run_id), start):
        run.count("skipped")
        run.row_skipped(job.id, "another has started it, or it was called off")
        return
    try:
        outside.runs.start(start.dag.dag_id, run_id, start.conf)
    except Permanent as error:
        _refuse(run, job, error)
        return
    except NotReady as error:
        # It waits; the next dispatcher starts this very run.
        run.row_failed(job.id, error)
        return
    run.count("started")


def _named(run: Run, job: Row[Any], dag_run: DagRun, start: Start) -> bool:
    with as_service(run).transaction() as tx:
        return (
            tx.execute(
                statement(PACKAGE, "name_run"),
                id=job.id,
                dag_run_id=dag_run.key,
                as_of=start.as_of,
                named_before=job.dag_run_id,
            )
            > 0
        )


def _refuse(run: Run, job: Row[Any], error: Permanent) -> None:
    with as_service(run).transaction() as tx:
        failures.refuse(tx, job, Fault.of(error, DISPATCH), Burials(), f"{run.run_id} {DISPATCH}")
    run.row_failed(job.id, error)


def _companies(run: Run, user_id: UUID | None, users: dict[UUID, frozenset[UUID]]) -> frozenset[UUID] | None:
    if user_id is None:
        return None
    if user_id not in users:
        with as_service(run).transaction() as tx:
            users[user_id] = companies_seen(tx, user_id)
    return users[user_id]


def _due(run: Run) -> Sequence[UUID]:
    with as_service(run).transaction() as tx:
        rows = tx.rows(
            statement(PACKAGE, "due_jobs"), job_id=run.params.get("job_id"), not_after=run.due_limit
        )
    return [row.id for row in rows]


def _jobs(run: Run, ids: Sequence[UUID]) -> Sequence[Row[Any]]:
    with as_service(run).transaction() as tx:
        return tx.rows(statement(PACKAGE, "jobs_to_start"), ids=list(ids))


def _say_why_not(run: Run) -> None:
    given = run.params["job_id"]
    with as_service(run).transaction() as tx:
        row = tx.row(statement(PACKAGE, "one_job"), id=given)
    if row is None:
        raise BadInput(f"job_id: there is no job {given}")
    run.note(f"Job {given} is {row.status}: there is nothing to start")


STEPS = (start_due_jobs, tell_operators)
