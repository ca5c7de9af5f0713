"""The health of jobs: what ran out of time is closed, what nobody works on any more is due again, or dead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError

from include.alerts import Alerts, RecordedAlerts
from include.ecocomply.access import as_service
from include.ecocomply.background_jobs import JOBS
from include.ecocomply.job_records import failures
from include.ecocomply.job_records.attempts import end_as_failed
from include.ecocomply.job_records.dag_runs import AirflowRuns, RecordedRuns, run_of_key, standing_of
from include.ecocomply.job_records.failures import PACKAGE, Burials, Fault, claim_of
from include.ecocomply.job_types import attempts_of
from include.effects import Effects
from include.isolation import each_chunk
from include.queues.table import LOST
from include.run import Run, Transaction, is_row_fault
from include.statements import statement

NAME = "jobHealth"
SETTINGS: dict[str, str | None] = {"ADMIN_ALERT_EMAIL": None}
QUEUES: tuple[str, ...] = ("background_jobs",)

STEP = "health"
UNRESPONSIVE = f"Job became unresponsive: {LOST}"
OUT_OF_TIME = "the run reached its time limit"


class Outside(NamedTuple):
    """Airflow, and the operators' ledger."""

    runs: AirflowRuns
    alerts: Alerts

    def in_preview(self, run: Run, effects: Effects) -> Outside:
        standing = standing_of(self.runs, [job.dag_run_id for job in _running(run)])
        alerts = RecordedAlerts(self.alerts, effects, run.settings["ADMIN_ALERT_EMAIL"])
        return Outside(RecordedRuns(standing, effects), alerts)


def close_timed_out(run: Run, outside: Outside) -> None:
    """End the jobs of runs that Airflow has ended because they took too long."""
    jobs = _running(run)
    run.count("processed", len(jobs))
    standing = standing_of(outside.runs, [job.dag_run_id for job in jobs])

    def close(tx: Transaction, job: Row[Any]) -> None:
        row = tx.row(
            statement(PACKAGE, "hold_running"), id=job.id, dag_run_id=job.dag_run_id, only_stale=False
        )
        if row is not None and end_as_failed(tx, row, Fault("TimeLimit", OUT_OF_TIME, STEP), Burials()):
            run.count("timed_out")
            run.count("failed")

    for job in jobs:
        named = run_of_key(job.dag_run_id)
        stands = None if named is None else standing.get(named.uncleared)
        if stands is not None and stands.timed_out and not stands.working:
            _one(run, job, close)


def mark_stale(run: Run, outside: Outside) -> None:
    """Mark what has been silent for five minutes and has no task that is running, queued or to be tried again."""
    silent = [job for job in _running(run) if job.is_silent]
    standing = standing_of(outside.runs, [job.dag_run_id for job in silent])
    stale = []
    for job in silent:
        named = run_of_key(job.dag_run_id)
        stands = None if named is None else standing.get(named.uncleared)
        if stands is not None and stands.working:
            run.count("slow")
            run.row_skipped(job.id, "a task of its run is at work, or will be")
        else:
            stale.append(job.id)

    def mark(tx: Transaction, ids: Sequence[UUID]) -> None:
        marked = tx.execute(
            statement(PACKAGE, "mark_stale"), ids=list(ids), lost_after=JOBS.lost_after.total_seconds()
        )
        run.count("stale", marked)

    each_chunk(as_service(run), stale, mark)


def recover_stale(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Let stale jobs be tried again after their delay; one without an attempt left is dead."""

    def recover(tx: Transaction, job: Row[Any]) -> None:
        row = tx.row(
            statement(PACKAGE, "hold_running"), id=job.id, dag_run_id=job.dag_run_id, only_stale=True
        )
        if row is None:
            return
        fault = Fault("StaleJob", UNRESPONSIVE, STEP)
        ended = failures.fail(tx, claim_of(row, attempts_of(row.job_type)), fault, Burials())
        run.count("failed" if ended else "recovered")

    for job in _running(run):
        if job.health_status == "STALE":
            _one(run, job, recover)


def tell_operators(run: Run, outside: Outside) -> None:
    """Tell the operators of jobs that died, are no company's, and had no run that the platform tells of."""
    failures.tell_operators(run, outside.alerts)


def _one(run: Run, job: Row[Any], change: Callable[[Transaction, Row[Any]], None]) -> None:
    try:
        with as_service(run).transaction() as tx:
            change(tx, job)
    except DBAPIError as error:
        if not is_row_fault(error):
            raise
        run.row_failed(job.id, error)


def _running(run: Run) -> Sequence[Row[Any]]:
    with as_service(run).transaction() as tx:
        return tx.rows(statement(PACKAGE, "running_jobs"), lost_after=JOBS.lost_after.total_seconds())


STEPS = (close_timed_out, mark_stale, recover_stale, tell_operators)
