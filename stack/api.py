"""Airflow's REST API, as the launcher, the demo and the tests on a running stack use it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import quote

import httpx

from stack.errors import StackError

FINISHED = frozenset({"success", "failed"})
"""States in which a run stays."""

_PAGE = 100
_UNAUTHORIZED = 401


class Refused(StackError):
    """The server answered that it won't; `status` is HTTP's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Airflow:
    """One user's session with the API server at `url`.

    `call` returns what the server answered, whatever its status; the verbs below raise Refused for an answer
    that is no success.
    """

    def __init__(self, url: str, login: str, password: str, timeout: float = 30) -> None:
        self.url = url
        self.login = login
        self._password = password
        # No proxy of the machine's: the server is on loopback.
        self.http = httpx.Client(base_url=url, timeout=timeout, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def token(self) -> str:
        """Return a fresh token. Raises StackError if the login is refused."""
        answer = self.http.post("/auth/token", json={"username": self.login, "password": self._password})
        if not answer.is_success:
            raise StackError(
                f"Airflow: login {self.login} at {self.url}: {answer.status_code} {answer.text[:200]}"
            )
        return answer.json()["access_token"]

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask for a path beneath the server's URL, logging in when it is needed."""
        if "Authorization" not in self.http.headers:
            self.http.headers["Authorization"] = f"Bearer {self.token()}"
        answer = self.http.request(method, path, **options)
        if answer.status_code == _UNAUTHORIZED:
            self.http.headers["Authorization"] = f"Bearer {self.token()}"
            answer = self.http.request(method, path, **options)
        return answer

    def health(self) -> dict[str, Any]:
        return self._json("GET", "/api/v2/monitor/health")

    def dag_ids(self, since: datetime | None = None) -> set[str]:
        """Return the DAGs that the server can run; with `since`, those that were read from then on."""
        return {
            dag["dag_id"]
            for dag in self._pages("/api/v2/dags", "dags")
            if since is None or _instant(dag["last_parsed_time"]) >= since
        }

    def import_errors(self, since: datetime | None = None) -> dict[str, str]:
        """Return the DAG files that don't load (from `since` on), each with the last line of its error."""
        return {
            error["filename"]: error["stack_trace"].strip().splitlines()[-1]
            for error in self._pages("/api/v2/importErrors", "import_errors")
            if since is None or _instant(error["timestamp"]) >= since
        }

    def dag(self, dag_id: str) -> dict[str, Any]:
        return self._json("GET", f"/api/v2/dags/{dag_id}")

    def unpause(self, dag_id: str) -> None:
        self._json("PATCH", f"/api/v2/dags/{dag_id}", json={"is_paused": False})

    def pause(self, dag_id: str) -> None:
        self._json("PATCH", f"/api/v2/dags/{dag_id}", json={"is_paused": True})

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None, **fields: Any) -> str:
        """Ask for a run and return its id; `fields` are further fields of the request."""
        body = {"logical_date": None, "conf": dict(conf or {})} | fields
        return self._json("POST", f"/api/v2/dags/{dag_id}/dagRuns", json=body)["dag_run_id"]

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        return self._json("GET", _run_path(dag_id, run_id))

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        return list(self._pages(f"/api/v2/dags/{dag_id}/dagRuns", "dag_runs"))

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        return list(self._pages(f"{_run_path(dag_id, run_id)}/taskInstances", "task_instances"))

    def log(self, dag_id: str, run_id: str, task_id: str, try_number: int = 1) -> str:
        """Return a task's log as JSON lines."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{task_id}/logs/{try_number}"
        answer = self.call("GET", path, headers={"Accept": "application/x-ndjson"})
        return self._success(answer, "GET", path).text

    def finished(self, dag_id: str, run_id: str, within: float = 120) -> dict[str, Any]:
        """Wait for a run's end and return it. Raises StackError after `within` seconds."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            run = self.run(dag_id, run_id)
            if run["state"] in FINISHED:
                return run
            time.sleep(0.2)
        raise StackError(f"Airflow: {dag_id} {run_id} is not finished after {within:.0f} s")

    def _pages(self, path: str, field: str) -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            page = self._json("GET", path, params={"limit": _PAGE, "offset": offset})
            yield from page[field]
            offset += _PAGE
            if offset >= page["total_entries"]:
                return

    def _json(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        return self._success(self.call(method, path, **options), method, path).json()

    def _success(self, answer: httpx.Response, method: str, path: str) -> httpx.Response:
        if not answer.is_success:
            said = f"Airflow: {method} {path}: {answer.status_code} {answer.text[:300]}"
            raise Refused(said, answer.status_code)
        return answer


def _instant(text: str | None) -> datetime:
    return datetime.fromisoformat(text) if text else datetime.min.replace(tzinfo=UTC)


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"
