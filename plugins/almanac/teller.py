"""One thread that tells operators of failed runs that could not tell of themselves.

A task that used up its attempts tells of itself. A run that reached its time limit and a process that was
killed can't. The scheduler hears of those and leaves them here; what failed while none was up, or could not be
told of at the time, a sweep finds. All go through the ledger under the tasks' own causes, so that each is told
once.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

from almanac.alerts import FailedTask, deliver_quietly, tell_run_failed

_LOG = logging.getLogger("almanac.alerts")
_SWEPT_BACK = timedelta(days=7)
_SWEEP = "sweep"
_TIMED_OUT = "timed_out"
# What Airflow says when a run fails, in words for a person; a sweep knows it no more.
_REASONS = {
    _TIMED_OUT: "reached its time limit",
    _SWEEP: "reached its time limit, or was ended by a person",
    "all_tasks_deadlocked": "could not go on: its tasks waited for each other",
}


class _Failed(NamedTuple):
    due: float
    dag_id: str
    run_id: str
    message: str


class Teller:
    """Tells of failed runs `grace` seconds late: a task that failed by itself tells of it better, and first.

    Sweeps at its start, every `sweep_every` seconds, and `again_after` seconds after something went wrong.
    """

    def __init__(self, *, grace: float = 15, sweep_every: float = 600, again_after: float = 30) -> None:
        self._grace = grace
        self._sweep_every = sweep_every
        self._again_after = again_after
        self._heard: queue.SimpleQueue[_Failed] = queue.SimpleQueue()
        self._swept_to: datetime | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def start(self) -> None:
        """Start the thread, if it does not run; it ends with its process."""
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="almanac teller", daemon=True)
                self._thread.start()

    def hear(self, dag_id: str, run_id: str, message: str) -> None:
        """Take note of a failed run; `message` is why, in Airflow's words. Waits for nothing."""
        self._heard.put(_Failed(time.monotonic() + self._grace, dag_id, run_id, message))
        self.start()

    def _work(self) -> None:
        sweep_at = time.monotonic() + self._grace
        waiting: _Failed | None = None
        while True:
            try:
                if waiting is None:
                    waiting = self._next(sweep_at)
                if waiting is None:
                    sweep_at = time.monotonic() + self._sweep_every
                    self._sweep()
                else:
                    time.sleep(max(0.0, waiting.due - time.monotonic()))
                    _tell_of(waiting)
                    waiting = None
                deliver_quietly()
            except Exception:
                # Whatever it is, the sweep tells of it when that is over.
                _LOG.exception(
                    "alerts: could not be put on the ledger; tried again in %.0f s", self._again_after
                )
                waiting = None
                sweep_at = time.monotonic() + self._again_after

    def _next(self, sweep_at: float) -> _Failed | None:
        try:
            return self._heard.get(timeout=max(0.0, sweep_at - time.monotonic()))
        except queue.Empty:
            return None

    def _sweep(self) -> None:
        """Tell of every run that failed since the last sweep; at first, of seven days back to the adoption."""
        from airflow.models.dagrun import DagRun  # noqa: PLC0415 - this thread alone asks Airflow's database
        from airflow.utils.state import DagRunState  # noqa: PLC0415 - as above
        from sqlalchemy import select  # noqa: PLC0415 - as above

        from hooks.postgres import database  # noqa: PLC0415 - heavy, and no DAG file needs it to be parsed
        from include.platform.alert_ledger import listening_since  # noqa: PLC0415 - as above

        # A task that has just failed by itself is given its time to tell.
        upto = datetime.now(UTC) - timedelta(seconds=self._grace)
        since = self._swept_to or datetime.now(UTC) - _SWEPT_BACK
        since = max(since, listening_since(database("almanac_db")))
        with _session() as session:
            failed = session.execute(
                select(DagRun.dag_id, DagRun.run_id).where(
                    DagRun.state == DagRunState.FAILED, DagRun.end_date >= since, DagRun.end_date < upto
                )
            ).all()
        for dag_id, run_id in failed:
            _tell_of(_Failed(0, dag_id, run_id, _SWEEP))
        self._swept_to = upto


TELLER = Teller()
"""The one of this process."""


def _tell_of(failed: _Failed) -> None:
    from airflow.models.dagrun import DagRun  # noqa: PLC0415 - this thread alone asks Airflow's database
    from airflow.models.taskinstance import TaskInstance  # noqa: PLC0415 - as above
    from airflow.utils.state import DagRunState, TaskInstanceState  # noqa: PLC0415 - as above
    from sqlalchemy import select  # noqa: PLC0415 - as above

    from hooks.postgres import database  # noqa: PLC0415 - heavy, and no DAG file needs it to be parsed
    from include.platform.summaries import RunKey, close_failed_run  # noqa: PLC0415 - as above

    with _session() as session:
        dag_run = session.scalar(
            select(DagRun).where(DagRun.dag_id == failed.dag_id, DagRun.run_id == failed.run_id)
        )
        if dag_run is None or dag_run.state != DagRunState.FAILED:
            # Deleted, or a person has started it over: there is nothing left to mend.
            return
        tasks = session.scalars(
            select(TaskInstance).where(
                TaskInstance.dag_id == failed.dag_id,
                TaskInstance.run_id == failed.run_id,
                TaskInstance.state == TaskInstanceState.FAILED,
            )
        ).all()
        told = [_failed_task(ti) for ti in tasks]
        as_of, attempt = dag_run.logical_date or dag_run.run_after, dag_run.clear_number
    for task in told:
        task.tell()
    if failed.message == _TIMED_OUT or not told:
        reason = _REASONS.get(failed.message, "failed, and no task of it did")
        tell_run_failed(failed.dag_id, failed.run_id, attempt, reason, _link(failed))
    close_failed_run(database("almanac_db"), RunKey(failed.dag_id, failed.run_id), as_of)


def _failed_task(ti: Any) -> FailedTask:
    reason = "the task failed and did not say why: its process was killed or lost, or a person ended it; see its log"
    return FailedTask(ti.dag_id, ti.run_id, ti.task_id, ti.try_number, ti.map_index, reason, ti.log_url)


def _session() -> Any:
    """Open a session of this thread's own: the scheduler's must not be committed by anybody else."""
    from airflow.utils.session import create_session  # noqa: PLC0415 - as above

    return create_session(scoped=False)


def _link(failed: _Failed) -> str:
    from airflow.configuration import conf  # noqa: PLC0415 - heavy, and workers never come here

    base = conf.get("api", "base_url", fallback="http://127.0.0.1:8080").rstrip("/")
    return f"{base}/dags/{quote(failed.dag_id, safe='')}/runs/{quote(failed.run_id, safe='')}"
