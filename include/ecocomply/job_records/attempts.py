"""A job's row while its run is at work: opened or claimed, kept alive, and ended, by whoever holds it alone.

A try of a task is an attempt of the row. The tasks of a run go one after another and hand the row on to each other
as it is; a try after one that failed, or that was killed, counts one attempt more. What comes from a try that no
longer holds the row is refused, and rolled back with all that stands beside it.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError

from include.ecocomply.access import as_service
from include.ecocomply.background_jobs import JOBS
from include.ecocomply.job_records import failures
from include.ecocomply.job_records.dag_runs import DagRun, TaskTry, starts_for_a_job, try_of_owner
from include.ecocomply.job_records.failures import PACKAGE, Burials, Fault, claim_of
from include.ecocomply.job_types import DAGS, JobDag
from include.errors import AlmanacError, BadInput, Busy, Permanent
from include.queues.engine import Claim, Queue, StaleClaim
from include.queues.heartbeat import beating
from include.queues.table import LOST
from include.run import Run, Transaction, is_row_fault, row_error
from include.statements import statement

IDS_KEPT = 100
"""How many ids of rows that were worked on a dead letter shows."""


class JobEnded(Permanent):
    """The job has come to its end: no further try may work on it."""


class JobCompleted(JobEnded):
    """The job is done: the try before was killed after the row's end."""


class JobCancelled(JobEnded):
    """A person called the job off before its run began, or between two tries."""


class Job(Protocol):
    """What a step may say of the job that it works for."""

    def progress(
        self,
        current: int,
        total: int,
        said: str | None = None,
        *,
        ids: Sequence[Any] = (),
        counts: Mapping[str, int] | None = None,
    ) -> None:
        """Say that `current` of `total` is done. `ids` and `counts` stand in the dead letter, should it fail."""
        ...

    def hold(self, tx: Transaction) -> None:
        """See that the job is still its own, at the end of a transaction of the service's that wrote for it.

        Until the transaction ends nobody takes the job away, and no heartbeat gets through. Raises StaleClaim if it
        is another's by now.
        """
        ...


class UnrecordedJob:
    """For a preview, which has no row."""

    def progress(
        self,
        current: int,
        total: int,
        said: str | None = None,
        *,
        ids: Sequence[Any] = (),
        counts: Mapping[str, int] | None = None,
    ) -> None:
        """Say nothing."""

    def hold(self, tx: Transaction) -> None:
        """Hold nothing."""


@dataclass(slots=True)
class JobAttempt:
    """One attempt of a job, as one try of a task holds it. `alerts` are those of its failure for good."""

    run: Run
    dag: JobDag
    task: TaskTry
    claim: Claim
    alerts: list[failures.FailureAlert] = field(default_factory=list)
    _kept: dict[str, Any] = field(default_factory=dict)

    @property
    def job_id(self) -> UUID:
        return self.claim.key

    @property
    def created_by(self) -> UUID | None:
        """The user whose claims the job works under; None: it is the service's."""
        return self.claim.row.created_by

    def progress(
        self,
        current: int,
        total: int,
        said: str | None = None,
        *,
        ids: Sequence[Any] = (),
        counts: Mapping[str, int] | None = None,
    ) -> None:
        kept: dict[str, Any] = {**self._kept, "current": current, "total": total}
        if said is not None:
            kept["said"] = said
        if counts:
            kept["counts"] = {**kept.get("counts", {}), **counts}
        if ids:
            known = [*kept.get("ids", []), *map(str, ids)]
            kept["ids"] = list(dict.fromkeys(known))[:IDS_KEPT]
        with self.run.transaction() as tx:
            if not tx.execute(
                statement(PACKAGE, "keep_progress"), progress=json.dumps(kept), **self._holder()
            ):
                raise StaleClaim(JOBS.name, [self.claim.key])
        self._kept = kept
        self.run.log.info(
            "job progress: job=%s jobId=%s current=%d total=%d%s",
            self.dag.job_type,
            self.claim.key,
            current,
            total,
            f" {said}" if said else "",
        )

    def hold(self, tx: Transaction) -> None:
        if tx.value(statement(PACKAGE, "hold_job"), **self._holder()) is None:
            raise StaleClaim(JOBS.name, [self.claim.key])

    def complete(self, result: Mapping[str, Any]) -> None:
        """End the job as done. Raises StaleClaim if it is another's by now, and writes nothing then."""
        with self.run.transaction() as tx:
            tx.execute(
                statement(PACKAGE, "keep_result"), id=self.claim.key, result=json.dumps(result, default=str)
            )
            tx.execute(
                statement(PACKAGE, "resolve_letters_of_job"),
                job_id=self.claim.key,
                notes="It was tried again, and completed.",
            )
            Queue(JOBS).complete(tx, [self.claim])

    def fail(self, error: BaseException) -> bool:
        """Write that the attempt failed, and say whether that was the job's end."""
        fault = Fault.of(error, self.task.task_id)
        burials = Burials()
        with self.run.transaction() as tx:
            ended = failures.fail(tx, self.claim, fault, burials, permanent=is_permanent(error))
        self.alerts += burials.alerts
        return ended

    def _holder(self) -> dict[str, Any]:
        return {"id": self.claim.key, "attempt": self.claim.attempt, "owner": self.claim.owner}


def is_permanent(error: BaseException) -> bool:
    """Say whether another attempt would give the same answer."""
    return isinstance(error, Permanent) or (isinstance(error, DBAPIError) and is_row_fault(error))


@contextmanager
def attempt(
    run: Run,
    task: TaskTry,
    *,
    payload: Mapping[str, Any] | None = None,
    created_by: UUID | None = None,
    heartbeat: timedelta | None = None,
) -> Generator[JobAttempt]:
    """Work on a run's job in one try of a task: its row is there, kept alive, and told of a failure.

    The row of a run that none was there for gets `payload` and `created_by`. What comes out of it is the error that
    went in, or JobEnded where the job's attempts are used up, so that Airflow tries no more. Raises JobCancelled if
    the job was called off, JobEnded if it is at its end, StaleClaim if a later try has it, Busy if a worker of the
    application's own does.
    """
    begun = begin(run, task, payload=payload or {}, created_by=created_by)
    shortest = min(begun.dag.heartbeat, begun.claim.row.heartbeat_interval_seconds)
    every = heartbeat or timedelta(seconds=max(1, shortest))
    with beating(begun.run, Queue(JOBS), task.owner, every):
        try:
            yield begun
        except BaseException as error:
            if _fail(begun, error) and not is_permanent(error):
                raise JobEnded(
                    f"job {begun.job_id}: its attempts are used up, the last ended by: {row_error(error)}"
                ) from error
            raise


def _fail(begun: JobAttempt, error: BaseException) -> bool:
    """Tell the row of a failure. Where that fails too, the next try finds the row held by this one, and counts it."""
    try:
        return begun.fail(error)
    except (AlmanacError, DBAPIError) as also:
        begun.run.log.warning(
            "job %s: its failure is not recorded: %s", begun.job_id, row_error(also), exc_info=error
        )
        return False


def begin(
    run: Run, task: TaskTry, *, payload: Mapping[str, Any], created_by: UUID | None = None
) -> JobAttempt:
    """Open, claim or take over the row of a run for one try of a task. Raises as `attempt` does."""
    dag = DAGS.get(task.dag_run.dag_id)
    if dag is None:
        raise BadInput(f"job records: {task.dag_run.dag_id} is no DAG of the catalogue")
    service = as_service(run)
    burials = Burials()
    with service.transaction() as tx:
        row = _row_of(service, tx, task, dag, payload, created_by)
        claimed = _claimed(service, tx, task, dag, row, burials)
    if claimed is None:
        raise JobEnded(f"job {row.id}: its attempts are used up, the last was killed")
    claim = claim_of(claimed, dag.attempts)
    return JobAttempt(service, dag, task, claim, _kept=dict(claimed.progress or {}))


def close_failed(run: Run, dag_run: DagRun, reason: str, step: str) -> list[failures.FailureAlert]:
    """End a run's job as failed if it is still open, whatever attempts it has left: the run itself is over.

    One that a worker of the application's own is at is left to that worker.
    """
    service = as_service(run)
    burials = Burials()
    with service.transaction() as tx:
        row = tx.row(statement(PACKAGE, "job_of_run"), keys=dag_run.keys)
        if row is not None and (row.status != JOBS.words.claimed or try_of_owner(row.claimed_by)):
            end_as_failed(tx, row, Fault("RunFailed", reason, step), burials)
    return burials.alerts


def end_as_failed(tx: Transaction, row: Row[Any], fault: Fault, burials: Burials) -> bool:
    """End an open row as failed for good, and say whether it was open. The row is locked."""
    if row.status == JOBS.words.claimed:
        return failures.fail(tx, claim_of(row, 1), fault, burials, permanent=True)
    if row.status == JOBS.words.due:
        failures.refuse(tx, row, fault, burials, fault.step)
        return True
    return False


def _row_of(
    run: Run,
    tx: Transaction,
    task: TaskTry,
    dag: JobDag,
    payload: Mapping[str, Any],
    created_by: UUID | None,
) -> Row[Any]:
    """Return the row of a run, locked; a new one where the run, or what was cleared of it, has none that is open."""
    dag_run = task.dag_run
    row = tx.row(statement(PACKAGE, "job_of_run"), keys=dag_run.keys)
    if row is None and starts_for_a_job(dag_run.run_id):
        raise BadInput(f"{dag_run.dag_id}: run {dag_run.run_id} is for a job that names no such run")
    ended_before = row is not None and row.status not in (JOBS.words.due, JOBS.words.claimed)
    if row is not None and not (ended_before and row.dag_run_id != dag_run.key):
        return row
    # The application's row of a cleared run says what the new one is for.
    tx.execute(
        statement(PACKAGE, "insert_job"),
        job_type=dag.job_type,
        payload=json.dumps(dict(payload) if row is None else row.payload, default=str),
        created_by=created_by if row is None else row.created_by,
        company_id=None if row is None else row.company_id,
        priority=0 if row is None else row.priority,
        max_retries=dag.attempts - 1 if row is None else row.max_retries,
        timeout_seconds=dag.timeout,
        heartbeat_interval_seconds=dag.heartbeat,
        dag_run_id=dag_run.key,
        as_of=run.as_of if row is None else row.as_of,
    )
    opened = tx.row(statement(PACKAGE, "job_of_run"), keys=dag_run.keys)
    if opened is None:
        raise BadInput(f"job records: another row has the dedupe key {dag_run.key}")
    return opened


def _claimed(
    run: Run, tx: Transaction, task: TaskTry, dag: JobDag, row: Row[Any], burials: Burials
) -> Row[Any] | None:
    """Return the row as this try holds it; None if the try before was killed, and was its last."""
    if row.status == JOBS.words.claimed:
        held = try_of_owner(row.claimed_by)
        if held is None:
            raise Busy(f"job {row.id}: a worker of the application's own is at it")
        same = (held.dag_run, held.task_id) == (task.dag_run, task.task_id)
        if not same or held.number == task.number:
            return _take(tx, "take_over_job", task, row, run)
        if held.number > task.number:
            raise StaleClaim(JOBS.name, [row.id])
        lost = Fault("LostAttempt", LOST, task.task_id)
        if failures.fail(tx, claim_of(row, dag.attempts), lost, burials):
            return None
        row = tx.row(statement(PACKAGE, "one_job"), id=row.id) or row
    elif row.status == JOBS.words.cancelled:
        raise JobCancelled(f"job {row.id}: it was called off")
    elif row.status == JOBS.words.done:
        raise JobCompleted(f"job {row.id}: it is {row.status} already")
    elif row.status != JOBS.words.due:
        raise JobEnded(f"job {row.id}: it is {row.status} already")
    return _take(tx, "claim_job", task, row, run)


def _take(tx: Transaction, how: str, task: TaskTry, row: Row[Any], run: Run) -> Row[Any] | None:
    binds = {"as_of": run.as_of} if how == "claim_job" else {}
    return tx.row(statement(PACKAGE, how), id=row.id, owner=task.owner, dag_run_id=task.dag_run.key, **binds)
