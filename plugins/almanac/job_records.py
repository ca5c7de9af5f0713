"""The row that every run of an EcoComply job has in `background_jobs`, kept while the run's tasks go.

The catalogue `include.ecocomply.job_types` says which DAGs' runs have one; for all others this does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from include.ecocomply.job_types import DAGS
from include.run import Run

if TYPE_CHECKING:
    from include.ecocomply.job_records.attempts import JobAttempt


class CalledOff(AirflowSkipException):
    """A person called the job off before it began, or between two tries: its tasks show as skipped."""


MakeRun = Callable[[], Run]


@contextmanager
def recorded(context: Mapping[str, Any], make_run: MakeRun) -> Generator[Run | None]:
    """Let one try of a task be an attempt of its run's job: its row is there, kept alive, and told of a failure.

    Yields the run as the try has it: under the claims of the user who asked (unless the job is the platform's own),
    its progress in the row; None where the DAG's runs have no row. Raises CalledOff if a person has called the job
    off; the attempt's own errors are those of `include.ecocomply.job_records.attempts.attempt`.
    """
    if context["dag_run"].dag_id not in DAGS:
        yield None
        return
    run = make_run()
    with _attempt(context, run) as held:
        yield _as_asked(run, held)


def complete(
    context: Mapping[str, Any], make_run: MakeRun, summarise: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """End the job with what `summarise` returns, and return that; without a row it is called all the same."""
    if context["dag_run"].dag_id not in DAGS:
        return summarise()
    from include.ecocomply.job_records.attempts import JobCompleted  # noqa: PLC0415 - not at parse time

    try:
        with _attempt(context, make_run()) as held:
            line = summarise()
            held.complete(line)
            return line
    except JobCompleted:
        # The try before was killed after the row's end, and before Airflow heard of its own.
        return summarise()


@contextmanager
def _attempt(context: Mapping[str, Any], run: Run) -> Generator[JobAttempt]:
    from include.ecocomply.job_records.attempts import JobCancelled, attempt  # noqa: PLC0415 - not at parse time
    from include.ecocomply.job_records.dag_runs import DagRun, TaskTry  # noqa: PLC0415 - as above
    from include.ecocomply.job_records.dispatch import payload_of  # noqa: PLC0415 - as above

    dag_run, ti = context["dag_run"], context["ti"]
    task = TaskTry(
        DagRun(dag_run.dag_id, dag_run.run_id, dag_run.clear_number or 0), ti.task_id, ti.try_number
    )
    try:
        with attempt(run, task, payload=payload_of(DAGS[dag_run.dag_id], run.params)) as held:
            run.log.info(
                "job attempt: job=%s jobId=%s attempt=%d task=%s",
                held.dag.job_type,
                held.job_id,
                held.claim.attempt,
                ti.task_id,
            )
            yield held
    except JobCancelled as called_off:
        raise CalledOff(str(called_off)) from called_off


def _as_asked(run: Run, held: JobAttempt) -> Run:
    from include.ecocomply.access import as_asked  # noqa: PLC0415 - not at parse time

    told = replace(run, progress=held.progress)
    return as_asked(told, held.dag, held.created_by)
