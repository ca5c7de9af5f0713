"""What an operator does and sees: runs asked for over the API, summaries, alerts, mail."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import httpx
from sqlalchemy import select, text

from include.platform.tables import ALERT, PREVIEW, RUN_SUMMARY
from stack.api import FINISHED, Airflow
from stack.demo import params_of
from tests.dags.every import dag_files
from tests.live import LiveStack

DAG_IDS = tuple(file.dag_id for file in dag_files())
CLEARPATH_IDS = tuple(file.dag_id for file in dag_files() if file.system == "clearpath")
OTHER_IDS = tuple(dag_id for dag_id in DAG_IDS if dag_id not in CLEARPATH_IDS)
Found = TypeVar("Found")


class Run(NamedTuple):
    """One run of one DAG."""

    dag_id: str
    run_id: str


def until(what: str, look: Callable[[], Found | None], within: float = 60, every: float = 0.1) -> Found:
    """Return the first answer of `look` that is true; fail with `what` after `within` seconds."""
    deadline = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {within:.0f} s: {what}"
        time.sleep(every)


@dataclass
class Desk:
    """One operator at one stack. Runs are asked for over the API; what came of them is read wherever it is."""

    stack: LiveStack
    alert_folder: Path
    _api: Airflow | None = field(default=None)

    @property
    def api(self) -> Airflow:
        return self.stack.api("operator")

    @property
    def admin(self) -> Airflow:
        return self.stack.api("admin")

    def ask(self, dag_id: str, conf: Mapping[str, Any] | None = None, **fields: Any) -> httpx.Response:
        """Ask for a run as a person may, and return the answer whatever it is; params that it wants are given."""
        body = {"logical_date": None, "conf": self._whole(dag_id, conf)} | fields
        return self.api.call("POST", f"/api/v2/dags/{dag_id}/dagRuns", json=body)

    def start(self, dag_id: str, conf: Mapping[str, Any] | None = None, **fields: Any) -> Run:
        """Ask for a run, which must be granted; params that the DAG wants are those of the demo."""
        return Run(dag_id, self.api.trigger(dag_id, self._whole(dag_id, conf), **fields))

    def _whole(self, dag_id: str, conf: Mapping[str, Any] | None) -> dict[str, Any]:
        # The tests' own DAGs want nothing.
        wanted = params_of(self.stack.home, dag_id) if dag_id in DAG_IDS else {}
        return {**wanted, **(conf or {})}

    def states(self, runs: Iterable[Run]) -> dict[Run, str]:
        """Return the runs' states, from Airflow's database: polling it spares the API server."""
        with self.stack.database("airflow").connect() as connection:
            rows = connection.execute(
                text("SELECT dag_id, run_id, state FROM dag_run WHERE run_id = ANY (:ids)"),
                {"ids": [run.run_id for run in runs]},
            )
            return {Run(row.dag_id, row.run_id): row.state for row in rows}

    def ended(self, *runs: Run, within: float = 120) -> dict[Run, str]:
        """Wait until all of these runs have ended, and return their states."""

        def look() -> dict[Run, str] | None:
            found = self.states(runs)
            return found if len(found) == len(runs) and set(found.values()) <= FINISHED else None

        return until(f"the end of {runs}", look, within)

    def succeed(self, *runs: Run, within: float = 120) -> None:
        """Wait until all of these runs have ended well."""
        states = self.ended(*runs, within=within)
        assert set(states.values()) == {"success"}, {
            run: state for run, state in states.items() if state != "success"
        }

    def idle(self, *dag_ids: str, within: float = 120) -> None:
        """Wait until none of these DAGs has a run that is at work, waits, or is asked for by an event."""
        until(f"no run of {dag_ids}", lambda: self.is_idle(*dag_ids), within)

    def is_idle(self, *dag_ids: str) -> bool:
        """Say whether none of these DAGs has such a run. What a paused one has goes on when it is let go."""
        with_work = text(
            "SELECT (SELECT count(*) FROM dag_run WHERE dag_id = d.dag_id AND state IN ('queued', 'running'))"
            " + (SELECT count(*) FROM asset_dag_run_queue WHERE target_dag_id = d.dag_id) AS waiting"
            " FROM dag AS d WHERE d.dag_id = ANY (:ids) AND NOT d.is_paused"
        )
        with self.stack.database("airflow").connect() as connection:
            return sum(connection.execute(with_work, {"ids": list(dag_ids)}).scalars()) == 0

    def others_since(self, moment: datetime, dag_ids: Sequence[str], than: Iterable[Run]) -> list[str]:
        """Return the runs of these DAGs, without those of `than`, that came to be after `moment`."""
        made = text(
            "SELECT run_id FROM dag_run"
            " WHERE dag_id = ANY (:ids) AND queued_at > :moment AND NOT run_id = ANY (:known)"
        )
        binds = {"ids": list(dag_ids), "moment": moment, "known": [run.run_id for run in than]}
        with self.stack.database("airflow").connect() as connection:
            return list(connection.execute(made, binds).scalars())

    def tasks(self, run: Run) -> dict[str, dict[str, Any]]:
        """Return the run's tasks by id, as the API tells of them."""
        return {task["task_id"]: task for task in self.api.tasks(*run)}

    def tries(self, run: Run, task_id: str) -> list[dict[str, Any]]:
        """Return every attempt of a task, first to last."""
        path = f"/api/v2/dags/{run.dag_id}/dagRuns/{quote(run.run_id, safe='')}/taskInstances/{task_id}/tries"
        answer = self.api.call("GET", path)
        assert answer.is_success, answer.text
        return sorted(answer.json()["task_instances"], key=lambda one: one["try_number"])

    def summary(self, run: Run) -> Mapping[str, Any]:
        """Return what the run left in the platform's own database."""
        row = self._summary(run)
        assert row is not None, f"{run} left no summary"
        return row

    def closed(self, run: Run, within: float = 60) -> Mapping[str, Any]:
        """Wait until the summary of a run that could not close it itself is closed, and return it."""

        def look() -> Mapping[str, Any] | None:
            row = self._summary(run)
            return row if row is not None and row["ended_at"] is not None else None

        return until(f"a closed summary of {run}", look, within)

    def _summary(self, run: Run) -> Mapping[str, Any] | None:
        with self.stack.database("almanac").connect() as connection:
            wanted = select(RUN_SUMMARY).where(
                RUN_SUMMARY.c.dag_id == run.dag_id, RUN_SUMMARY.c.run_id == run.run_id
            )
            return connection.execute(wanted).mappings().one_or_none()

    def preview(self, run: Run) -> dict[str, Any]:
        """Return what a preview found."""
        with self.stack.database("almanac").connect() as connection:
            wanted = select(PREVIEW.c.result).where(
                PREVIEW.c.dag_id == run.dag_id, PREVIEW.c.run_id == run.run_id
            )
            return connection.execute(wanted).scalar_one()

    def alerts(self, run: Run) -> list[Mapping[str, Any]]:
        """Return what the operators' ledger holds about a run, oldest first."""
        with self.stack.database("almanac").connect() as connection:
            wanted = select(ALERT).where(ALERT.c.dag_id == run.dag_id, ALERT.c.run_id == run.run_id)
            return list(connection.execute(wanted.order_by(ALERT.c.created_at)).mappings())

    def all_mails(self) -> int:
        """Return how many messages ever went out, alerts among them."""
        return len(mails(self.stack.home.outbox)) + len(mails(self.alert_folder))

    def alert_mails(self, about: str) -> list[EmailMessage]:
        """Return the alerts that went out whose text holds `about`."""
        return [mail for mail in mails(self.alert_folder) if about in text_of(mail)]

    def told(self, run: Run, within: float = 60) -> Mapping[str, Any]:
        """Wait until operators have been told of a run by mail; return the only ledger row."""

        def look() -> Mapping[str, Any] | None:
            rows = self.alerts(run)
            return rows[0] if rows and self.alert_mails(run.run_id) else None

        row = until(f"an alert about {run}", look, within)
        assert len(self.alerts(run)) == 1
        return row

    def log(self, run: Run, task_id: str, try_number: int = 1) -> str:
        return self.api.log(*run, task_id, try_number)


def mails(folder: Path) -> list[EmailMessage]:
    """Return every message in an outbox."""
    return list(_read(folder))


def text_of(mail: EmailMessage) -> str:
    """Return a message's text part."""
    part = mail.get_body(("plain",))
    assert part is not None
    return str(part.get_content())


def _read(folder: Path) -> Iterator[EmailMessage]:
    for path in folder.glob("*.eml"):
        yield message_from_bytes(path.read_bytes(), policy=default)
