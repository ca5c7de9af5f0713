"""The embedded stack as a whole: what starts in which order, stays up, and ends together."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping
from datetime import UTC, datetime
from typing import Any, Self

import httpx
import psutil

from stack import environment, processes
from stack.api import Airflow
from stack.errors import StackError
from stack.home import Home, write_private
from stack.postgres import Cluster, end_left_over
from stack.processes import Process
from stack.terminal import progress

HEALTHY_WITHIN = 180.0
"""Seconds after which a start has failed."""

_DATABASES = ("airflow",)
_COMPONENTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
_WATCH_SECONDS = 0.5
_EMPTY_FEEDS = {
    f"/arcvest/{name}": {"title": name, "kind": "rss", "items": []} for name in ("news", "bloomberg")
}


class Stopped(BaseException):
    """The person or the system asked the stack to end."""


class Stack:
    """One embedded stack in one home.

    `asked` holds what a person chose (ports, LAB_INTEGRATION_MODEL). For tests alone: `durable=False` gives
    up Postgres's safety against a machine's crash for speed, and `more` is further environment of the
    processes. `began` is when Airflow's processes were started. Use it as a context manager: leaving it ends
    every process that it started.
    """

    def __init__(
        self,
        home: Home,
        asked: Mapping[str, str] | None = None,
        *,
        durable: bool = True,
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        self._durable = durable
        self._more = dict(more or {})
        self.environment: dict[str, str] = {}
        self._asked = dict(asked or {})
        self._lock: int | None = None
        self._recorded = False
        self._postgres: Cluster | None = None
        self._processes: list[Process] = []
        self.began = datetime.min.replace(tzinfo=UTC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def holds_home(self) -> bool:
        """Whether this stack has its home to itself: it has begun to start, and has not been stopped."""
        return self._lock is not None

    def api(self, login: str = "admin") -> Airflow:
        """Return a session with the API server as one of the stack's users."""
        return Airflow(
            self.environment["ALMANAC_URL"], login, self.environment[f"ALMANAC_{login.upper()}_PASSWORD"]
        )

    def start(
        self, *, demo_data: bool = False, fresh: bool = False, say: Callable[[str], None] = progress
    ) -> None:
        """Start everything and return when it is healthy.

        `demo_data` also fills the business databases; `fresh` first throws away those that it fills, with
        their mail and files. Raises StackError if something won't start, or if a stack runs in this home
        already.
        """
        self._take()
        left = processes.end_left_over(self.home) + end_left_over(self.home.postgres)
        if left:
            say(f"ended {left} processes that a killed start had left behind")
        self.environment = environment.settle(self.home, self._asked)
        environment.write(self.home, self.environment)
        self._remember()
        if not self.home.lab.exists():
            write_private(self.home.lab, "[]\n")
        if not self.home.feeds.exists():
            write_private(self.home.feeds, json.dumps(_EMPTY_FEEDS) + "\n")
        self._start_postgres()
        say(f"Postgres is up on port {self.environment['POSTGRES_PORT']}")
        self._prepare(*(["--demo-data"] if demo_data else []), *(["--fresh"] if fresh else []))
        say("databases are up to date, airflow_settings.yaml is loaded")
        say(f"starting Airflow's processes, usually under a minute; their logs are in {self.home.logs}")
        self.began = datetime.now(UTC)
        self._processes = self._programs()
        for process in self._processes:
            process.start(self._process_environment(), self.home.project)
            # Each at once: who is killed here leaves nothing that nobody knows of.
            self._remember()
        self._until_healthy()
        say(f"Airflow is healthy at {self.environment['ALMANAC_URL']}")

    def stop(self) -> None:
        """End every process of the stack, Postgres last. Harmless if nothing runs."""
        if self._lock is None:
            return
        with _undisturbed():
            processes.end(self._processes)
            if self._postgres is not None:
                self._postgres.stop()
            if self._recorded:
                # Not a record that this stack found and could not read: somebody's processes may be in it.
                processes.forget(self.home)
                self._recorded = False
            os.close(self._lock)
            self._lock = None

    def watch(self, say: Callable[[str], None] = progress) -> None:
        """Keep the stack up until somebody asks it to end: a program that dies is started again."""
        while True:
            time.sleep(_WATCH_SECONDS)
            self.restart_the_dead(say)

    def restart_the_dead(self, say: Callable[[str], None] = progress) -> None:
        """Start again what has died, once."""
        if self._postgres is not None and self._postgres.pid is None:
            say("Postgres has died and is started again")
            self._postgres.start()
        for process in self._processes:
            code = process.ended
            if code is not None and process.restart_due():
                say(f"{process.name} has ended ({code}) and is started again: {process.why()}")
                # What it had started would wait for it for ever.
                processes.end([process])
                process.start(self._process_environment(), self.home.project)
                self._remember()

    def pids(self) -> dict[str, int]:
        """Return the process number of every program that runs, Postgres among them."""
        found = {p.name: p.popen.pid for p in self._processes if p.popen and p.ended is None}
        if self._postgres is not None and self._postgres.pid is not None:
            found["postgres"] = self._postgres.pid
        return found

    def _take(self) -> None:
        """Hold the home for this process; the hold ends with the process, however that ends."""
        self.home.make()
        lock = os.open(self.home.folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            other = processes.supervisor_of(self.home)
            url = environment.read(self.home).get("ALMANAC_URL", "an address not yet known")
            raise StackError(
                f"a stack is up already in {self.home.folder} ({f'process {other.pid}, ' if other else ''}{url}); "
                "`make down` ends it"
            ) from None
        self._lock = lock

    def _start_postgres(self) -> None:
        self._postgres = Cluster(
            self.home.postgres,
            tcp=True,
            port=int(self.environment["POSTGRES_PORT"]),
            password=self.environment["POSTGRES_PASSWORD"],
            durable=self._durable,
            log=self.home.logs / "postgres.log",
        )
        self._postgres.start()
        for name in _DATABASES:
            if name not in self._postgres.databases():
                self._postgres.create_database(name)

    def _prepare(self, *options: str) -> None:
        command = [sys.executable, "-m", "stack.prepare", *options]
        prepare = Process("prepare", command, self.home.logs / "prepare.log")
        prepare.log.unlink(missing_ok=True)
        prepare.start(self._process_environment(), self.home.project)
        self._processes = [prepare]
        self._remember()
        while prepare.ended is None:
            time.sleep(0.05)
        if prepare.ended != 0:
            raise StackError(f"preparing the databases failed: {prepare.why()}")

    def _programs(self) -> list[Process]:
        def airflow(name: str, *options: str) -> Process:
            command = [sys.executable, "-m", "airflow", name, *options]
            return Process(name, command, self.home.logs / f"{name}.log")

        lab = [sys.executable, "-m", "stack.fakes.lab_server", "--port", self.environment["LAB_PORT"]]
        lab += ["--data", str(self.home.lab), "--page-size", "10"]
        models = [sys.executable, "-m", "stack.fakes.model_server", "--port", self.environment["MODELS_PORT"]]
        application = [sys.executable, "-m", "stack.fakes.application_server"]
        application += ["--port", self.environment["ARCVEST_APP_PORT"]]
        feeds = [sys.executable, "-m", "stack.fakes.feed_server", "--port", self.environment["FEEDS_PORT"]]
        feeds += ["--data", str(self.home.feeds)]
        mail = [sys.executable, "-m", "stack.fakes.imap_server", "--port", self.environment["IMAP_PORT"]]
        mail += ["--data", str(self.home.letters), "--login", self.environment["ARCVEST_MAIL_LOGIN"]]
        gazettes = [sys.executable, "-m", "stack.fakes.gazette_server"]
        gazettes += ["--port", self.environment["GAZETTES_PORT"], "--data", str(self.home.gazettes)]
        programs = [
            airflow("api-server"),
            # The log servers of these two would listen on every address.
            airflow("scheduler", "--skip-serve-logs"),
            airflow("dag-processor"),
            airflow("triggerer", "--skip-serve-logs"),
            Process("lab", lab, self.home.logs / "lab.log"),
            Process("models", models, self.home.logs / "models.log"),
            Process("application", application, self.home.logs / "application.log"),
            Process("feeds", feeds, self.home.logs / "feeds.log"),
            Process("mail", mail, self.home.logs / "mail.log"),
            Process("gazettes", gazettes, self.home.logs / "gazettes.log"),
        ]
        for program in programs:
            program.log.unlink(missing_ok=True)
        return programs

    def _until_healthy(self) -> None:
        deadline = time.monotonic() + HEALTHY_WITHIN
        missing: list[str] = list(_COMPONENTS)
        with self.api() as api:
            while time.monotonic() < deadline:
                for process in self._processes:
                    if process.ended is not None:
                        raise StackError(f"{process.name} ended while it started: {process.why()}")
                with contextlib.suppress(httpx.TransportError, StackError):
                    missing = _unhealthy(api.health(), self.began)
                    if not missing:
                        return
                time.sleep(0.1)
        raise StackError(
            f"Airflow is not healthy after {HEALTHY_WITHIN:.0f} s, for want of {', '.join(missing)}; "
            f"see {self.home.logs}"
        )

    def _process_environment(self) -> dict[str, str]:
        return environment.for_processes(self.environment | self._more)

    def _remember(self) -> None:
        processes.remember(self.home, psutil.Process(), self._processes)
        self._recorded = True


@contextlib.contextmanager
def ends_on_signals() -> Generator[None]:
    """Let Ctrl-C, `kill` and a closed terminal raise Stopped in here."""

    def stop(number: int, _frame: object) -> None:
        raise Stopped(signal.Signals(number).name)

    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _undisturbed() -> Generator[None]:
    """Put off signals that would end this process until its work is done."""
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _unhealthy(health: Mapping[str, Any], since: datetime) -> list[str]:
    """Return the components without a heartbeat since then: an old one would look alive for a while."""
    missing = []
    for name in _COMPONENTS:
        found = health.get(name) or {}
        heartbeat = found.get(f"latest_{name}_heartbeat")
        fresh = name == "metadatabase" or (heartbeat and _instant(heartbeat) >= since)
        if found.get("status") != "healthy" or not fresh:
            missing.append(name)
    return missing


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
