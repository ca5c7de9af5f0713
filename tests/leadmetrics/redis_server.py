"""A real Redis, and BullMQ's own worker of Node, for the tests of the queue."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hooks.connections import Access
from hooks.notification_queue import BullQueue
from stack.queue_tools import installed_worker, program

PASSWORD = "p/s@s:%#1"
_SECONDS = 30.0


def free_port() -> int:
    """Return a port of loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class RedisServer:
    """A Redis server on loopback, with a password, that keeps nothing on disk."""

    folder: Path
    port: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Start it, or start it again where it was, empty."""
        self.port = self.port or free_port()
        said = f'bind 127.0.0.1\nport {self.port}\nsave ""\ndir {self.folder}\nrequirepass "{PASSWORD}"\n'
        self._process = subprocess.Popen(
            [program("redis-server"), "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert self._process.stdin
        self._process.stdin.write(said.encode())
        self._process.stdin.close()
        deadline = time.monotonic() + _SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            assert self._process.poll() is None, "redis-server ended"
            assert time.monotonic() < deadline, "redis-server does not answer"
            time.sleep(0.02)

    def stop(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def suspend(self) -> None:
        """Let it take connections and answer nothing."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it answer again."""
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def access(self, **given: Any) -> Access:
        """Return the connection to it."""
        said: dict[str, Any] = {
            "conn_id": "leadmetrics_redis",
            "conn_type": "almanac_redis",
            "host": "127.0.0.1",
            "port": self.port,
            "schema": None,
            "login": None,
            "password": PASSWORD,
            "extra": {},
        }
        return Access(**(said | given))

    def bull(self, **extra: Any) -> BullQueue:
        """Return the queue on it."""
        return BullQueue(self.access(extra=extra))

    @contextmanager
    def worker(self, *, forgets: bool = False, prefix: str = "bull") -> Generator[Worker]:
        """Run BullMQ's own worker; one that `forgets` wants finished jobs gone at once."""
        environment = os.environ | {
            "REDIS_PORT": str(self.port),
            "REDIS_PASSWORD": PASSWORD,
            "REDIS_PREFIX": prefix,
            "FORGETS": "1" if forgets else "",
        }
        process = subprocess.Popen(
            [program("node"), "worker.mjs"],
            cwd=installed_worker(),
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        made = Worker(process)
        try:
            made.until("ready")
            yield made
        finally:
            assert process.stdin
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Worker:
    """A worker of Node that runs; `jobs` are those that it has been given."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.jobs: list[dict[str, Any]] = []
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, args=(process,), daemon=True).start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout
        for line in process.stdout:
            self._lines.put(line.strip())

    def until(self, said: str) -> None:
        """Read on until it says a word, and keep the jobs that it tells of."""
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"the worker did not say {said!r}; it was given {self.jobs}") from None
            if line.startswith("{"):
                self.jobs.append(json.loads(line))
            if line == said:
                return

    def given(self, number: int) -> list[dict[str, Any]]:
        """Wait until it has been given so many jobs, then until none is left, and return them all."""
        while len(self.jobs) < number:
            line = self._lines.get(timeout=_SECONDS)
            if line.startswith("{"):
                self.jobs.append(json.loads(line))
        time.sleep(0.5)
        while not self._lines.empty():
            line = self._lines.get()
            if line.startswith("{"):
                self.jobs.append(json.loads(line))
        return self.jobs


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """Run a Redis of the test's own."""
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.stop()
