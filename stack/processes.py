"""Processes that the stack starts, watches and ends; it ends nothing else.

A process is known by its number and its start time. Each program leads a session of its own, so that what it
starts is found after the program itself is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import psutil

from stack.errors import StackError
from stack.home import Home, write_private

_SAME_START_SECONDS = 0.02
_LONGEST_RESTART_DELAY = 30.0
_LONG_ENOUGH = 60.0
_PATIENCE = 5.0
_KILLS = 5
_HIGHEST_PID = 2**31 - 1
_REASON = re.compile(r"(error: |[\w.]*(Error|Exception|Exit)\b)")


class Process:
    """One program of the stack. Its output goes to `log`."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self.command = list(command)
        self.log = log
        self.popen: subprocess.Popen[bytes] | None = None
        self.identity: dict[str, float] | None = None
        self.started_at = 0.0
        self._failures = 0
        self._restart_at: float | None = None

    def start(self, environment: Mapping[str, str], cwd: Path) -> None:
        """Start the program, in a session of its own so that a terminal's Ctrl-C passes it by."""
        output: IO[bytes]
        with self.log.open("ab") as output:
            self.popen = subprocess.Popen(
                self.command,
                env=dict(environment),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # Taken while the number is surely this program's: until it is waited for, nobody else gets it.
        self.identity = _identity(psutil.Process(self.popen.pid))
        self.started_at = time.time()

    @property
    def ended(self) -> int | None:
        """The exit code, negative for a signal; None while the program runs."""
        return self.popen.poll() if self.popen else None

    def restart_due(self) -> bool:
        """Say whether an ended program should start again now; the wait doubles with each early end."""
        if self.ended is None:
            return False
        if self._restart_at is None:
            early = time.time() - self.started_at < _LONG_ENOUGH
            self._failures = self._failures + 1 if early else 0
            delay = min(_LONGEST_RESTART_DELAY, 2.0 ** (self._failures - 1)) if self._failures else 0.0
            self._restart_at = time.time() + delay
        if time.time() < self._restart_at:
            return False
        self._restart_at = None
        return True

    def why(self) -> str:
        """Return the line of the program's output that looks most like a reason."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        lines = [line.strip() for line in lines[-200:] if line.strip()]
        reasons = [line for line in lines if _REASON.match(line)]
        return f"{(reasons or lines or ['no output'])[-1][:300]} (see {self.log})"


def remember(home: Home, supervisor: psutil.Process, processes: Iterable[Process]) -> None:
    """Write down what runs, for `make down` and for a start after a kill."""
    running = [process.identity for process in processes if process.identity is not None]
    content = {"supervisor": _identity(supervisor), "processes": running}
    write_private(home.started, json.dumps(content) + "\n")


def forget(home: Home) -> None:
    """Take back what `remember` wrote."""
    home.started.unlink(missing_ok=True)


def supervisor_of(home: Home) -> psutil.Process | None:
    """Return the supervisor that runs a stack, or None if it is gone."""
    content = _started(home)
    return _process(content["supervisor"]) if content else None


def end_left_over(home: Home) -> int:
    """End what a killed supervisor left behind, and return how many processes that were."""
    content = _started(home)
    if not content:
        return 0
    number = _end(content["processes"])
    forget(home)
    return number


def end(processes: Iterable[Process]) -> None:
    """End programs and all that they started."""
    started = [process for process in processes if process.identity is not None]
    _end([process.identity for process in started if process.identity is not None])
    for process in started:
        if process.popen is not None:
            process.popen.wait()


def _end(leaders: Sequence[Mapping[str, float]]) -> int:
    """Ask session leaders to end, then kill what is left of their sessions; return how many there were."""
    asked = [process for leader in leaders if (process := _process(leader)) is not None]
    everyone = {process.pid: process for process in _members(leaders)}
    for process in asked:
        with contextlib.suppress(psutil.NoSuchProcess):
            # A task's own subprocess may have a session of its own.
            everyone |= {child.pid: child for child in process.children(recursive=True)}
            process.send_signal(signal.SIGTERM)
    _wait(asked, _PATIENCE)
    # Again after each round: what is being killed may have started something meanwhile.
    for _ in range(_KILLS):
        rest = {p.pid: p for p in [*everyone.values(), *_members(leaders)] if lives(p)}
        if not rest:
            break
        for process in rest.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        _wait(rest.values(), 1)
    # Orphans are buried by the system, which takes a moment; where it never does, they are dead all the same.
    deadline = time.monotonic() + 1
    leading = {int(leader["pid"]) for leader in leaders}
    orphans = [process for number, process in everyone.items() if number not in leading]
    while any(process.is_running() for process in orphans) and time.monotonic() < deadline:
        time.sleep(0.02)
    return len(everyone)


def _members(leaders: Sequence[Mapping[str, float]]) -> list[psutil.Process]:
    """Return the processes of the sessions that these leaders opened, whether or not those still live."""
    opened = {int(leader["pid"]): leader["started"] for leader in leaders}
    for session, started in list(opened.items()):
        with contextlib.suppress(psutil.NoSuchProcess):
            if abs(psutil.Process(session).create_time() - started) > _SAME_START_SECONDS:
                # The number now belongs to another process, and so may the session.
                del opened[session]
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            started = opened.get(os.getsid(process.pid))
            if (
                started is not None
                and process.create_time() >= started - _SAME_START_SECONDS
                and lives(process)
            ):
                found.append(process)
    return found


def _wait(processes: Collection[psutil.Process], seconds: float) -> None:
    # Not psutil's own wait: that would take the exit codes of our children away from Popen.
    deadline = time.monotonic() + seconds
    while any(lives(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.02)


def lives(process: psutil.Process) -> bool:
    """Say whether a process still does anything: one that waits to be buried does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _started(home: Home) -> dict[str, Any] | None:
    try:
        content = json.loads(home.started.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StackError(f"{home.started}: can't be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        content = None
    if not _is_record(content):
        raise StackError(f"{home.started}: is not readable; remove it once no process of the stack runs")
    return content


def _is_record(content: Any) -> bool:
    """Say whether this is what `remember` writes."""
    if not isinstance(content, dict) or not isinstance(content.get("processes"), list):
        return False
    return all(map(_is_identity, [content.get("supervisor"), *content["processes"]]))


def _is_identity(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    pid, started = entry.get("pid"), entry.get("started")
    return type(pid) is int and 0 < pid <= _HIGHEST_PID and type(started) in (int, float)


def _identity(process: psutil.Process) -> dict[str, float]:
    return {"pid": process.pid, "started": process.create_time()}


def _process(entry: Mapping[str, float] | None) -> psutil.Process | None:
    if not entry:
        return None
    try:
        process = psutil.Process(int(entry["pid"]))
        same = abs(process.create_time() - entry["started"]) < _SAME_START_SECONDS
        return process if same and lives(process) else None
    except psutil.NoSuchProcess:
        return None
