"""Runs of DAGs, as a task asks Airflow about them and starts them: by the Task SDK, without a connection."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from include.ecocomply.job_records.dag_runs import DagRun, NotReady, RunStanding
from include.errors import Outage, Refused
from include.isolation import chunks

SERVICE = "airflow"

# They stand in a URL.
_RUNS_ASKED = 100
_LIVE = ["queued", "running"]
_WORKING = frozenset(
    {"running", "queued", "scheduled", "restarting", "up_for_retry", "up_for_reschedule", "deferred"}
)
_FAILED = frozenset({"failed", "upstream_failed"})


class TaskSdkRuns:
    """Airflow as the task that runs here may ask it; satisfies include.ecocomply.job_records.dag_runs.AirflowRuns."""

    def standing(self, runs: Collection[DagRun]) -> Mapping[DagRun, RunStanding]:
        by_dag: dict[str, list[str]] = defaultdict(list)
        for run in runs:
            by_dag[run.dag_id].append(run.run_id)
        return {
            DagRun(dag_id, run_id): stands
            for dag_id, run_ids in sorted(by_dag.items())
            for some in chunks(sorted(run_ids), _RUNS_ASKED)
            for run_id, stands in _standing(dag_id, list(some))
        }

    def start(self, dag_id: str, run_id: str, conf: Mapping[str, Any]) -> None:
        from airflow.sdk.execution_time.comms import TriggerDagRun  # noqa: PLC0415 - not at parse time
        from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS  # noqa: PLC0415 - as above

        with _errors(f"{dag_id}, run {run_id}"):
            # A run of that id that is there already is an answer, not an error.
            SUPERVISOR_COMMS.send(TriggerDagRun(dag_id=dag_id, run_id=run_id, conf=dict(conf)))


def _standing(dag_id: str, run_ids: list[str]) -> Iterator[tuple[str, RunStanding]]:
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance  # noqa: PLC0415 - not at parse time

    def number(of: list[str], states: list[str]) -> int:
        return RuntimeTaskInstance.get_dr_count(dag_id, run_ids=of, states=states)

    with _errors(dag_id):
        tasks = RuntimeTaskInstance.get_task_states(dag_id, run_ids=run_ids)
        known = [run_id for run_id in run_ids if run_id in tasks]
        live = number(known, _LIVE) if known else 0
        for run_id in known:
            states = set(tasks[run_id].values())
            is_live = live == len(known) or (live > 0 and number([run_id], _LIVE) > 0)
            yield (
                run_id,
                RunStanding(
                    live=is_live,
                    working=bool(states & _WORKING),
                    # Airflow skips what a run that took too long had not done; else no run fails without a task.
                    timed_out=not is_live
                    and "skipped" in states
                    and not states & _FAILED
                    and number([run_id], ["failed"]) > 0,
                ),
            )


@contextmanager
def _errors(what: str) -> Generator[None]:
    from airflow.sdk.exceptions import AirflowRuntimeError  # noqa: PLC0415 - not at parse time

    try:
        yield
    except AirflowRuntimeError as error:
        detail = error.error.detail or {}
        says = detail.get("detail")
        said = says.get("detail") if isinstance(says, dict) else says
        reason, message = (
            (said.get("reason"), said.get("message")) if isinstance(said, dict) else (None, said)
        )
        text = f"airflow: {what}: {message or detail.get('message') or error.error.error.value}"
        status = detail.get("status_code")
        if status == HTTPStatus.NOT_FOUND or reason in ("import_errors", "denied_run_type"):
            raise NotReady(text) from None
        if status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
            raise Refused(text) from None
        raise Outage(text, service=SERVICE) from None
