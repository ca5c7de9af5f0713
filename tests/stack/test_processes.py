"""Processes: the stack ends all that it started, whatever became of it, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from stack import processes
from stack.errors import StackError
from stack.home import Home
from stack.processes import Process

SLEEP = [sys.executable, "-c", "import time; time.sleep(300)"]
# Starts a child, says its number, and waits; the child ignores requests to end.
CODE = """
import subprocess, sys, time
code = '''
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('ready', flush=True)
time.sleep(300)
'''
child = subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(300)
"""
PARENT = [sys.executable, "-c", CODE]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home with its folders."""
    home = Home(tmp_path / "home")
    home.make()
    return home


@pytest.fixture
def start(home: Home) -> Iterator[Callable[[list[str]], Process]]:
    """Return a function that starts a program; what is left of it at the end is killed."""
    started: list[Process] = []

    def start(command: list[str]) -> Process:
        process = Process(f"p{len(started)}", command, home.logs / f"p{len(started)}.log")
        process.start(os.environ, home.folder)
        started.append(process)
        return process

    yield start
    processes.end(started)


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Wait until something holds, or fail."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def child_of(parent: Process) -> psutil.Process:
    """Return the child that a PARENT has started."""
    until(lambda: parent.log.read_text().strip())
    return psutil.Process(int(parent.log.read_text()))


def lives(process: psutil.Process) -> bool:
    """Say whether a process still runs; one that nobody has waited for does not."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_what_a_program_started_ends_with_it(start: Callable[[list[str]], Process]) -> None:
    """The scheduler's workers and tasks must go too, also those that don't listen."""
    parent = start(PARENT)
    child = child_of(parent)
    processes.end([parent])
    assert parent.ended == -signal.SIGTERM
    assert not lives(child)


def test_orphans_of_a_killed_program_end(start: Callable[[list[str]], Process]) -> None:
    """kill -9 of the scheduler leaves its workers behind; ending the stack must find them all the same."""
    parent = start(PARENT)
    child = child_of(parent)
    assert parent.popen is not None
    parent.popen.kill()
    parent.popen.wait()
    processes.end([parent])
    assert not lives(child)


def test_what_a_killed_supervisor_left_is_ended(home: Home, start: Callable[[list[str]], Process]) -> None:
    """The next start reads what ran from a file, and finds the parents and the orphans."""
    parent, other = start(PARENT), start(PARENT)
    child, orphan = child_of(parent), child_of(other)
    processes.remember(home, psutil.Process(), [parent, other])
    assert other.popen is not None
    other.popen.kill()
    other.popen.wait()
    assert processes.end_left_over(home) == 3
    assert not any(lives(process) for process in (child, orphan))
    assert not home.started.exists()
    assert processes.end_left_over(home) == 0


def test_a_process_that_took_over_a_number_is_left_alone(home: Home) -> None:
    """Numbers are given out again: only the start time tells ours from another's."""
    innocent = subprocess.Popen(SLEEP, start_new_session=True)
    try:
        entry = {"pid": innocent.pid, "started": psutil.Process(innocent.pid).create_time() - 60}
        home.started.write_text(json.dumps({"supervisor": entry, "processes": [entry]}))
        assert processes.supervisor_of(home) is None
        assert processes.end_left_over(home) == 0
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


def test_the_supervisor_is_known_while_it_runs(home: Home) -> None:
    """`make down` asks that process to end, and `make env` answers for it."""
    processes.remember(home, psutil.Process(), [])
    found = processes.supervisor_of(home)
    assert found is not None
    assert found.pid == os.getpid()
    processes.forget(home)
    assert processes.supervisor_of(home) is None


@pytest.mark.parametrize(
    "content",
    [
        b'{"supervisor": ',
        b"",
        b"\x00\xff",
        b"[]",
        b"7",
        b"{}",
        b'{"supervisor": null, "processes": []}',
        b'{"supervisor": {"pid": 7, "started": 1.5}}',
        b'{"supervisor": {"pid": 7, "started": 1.5}, "processes": {}}',
        b'{"supervisor": {"pid": 7, "started": 1.5}, "processes": [7]}',
        b'{"supervisor": {"pid": 7}, "processes": []}',
        b'{"supervisor": {"pid": "7", "started": 1.5}, "processes": []}',
        b'{"supervisor": {"pid": -7, "started": 1.5}, "processes": []}',
        b'{"supervisor": {"pid": 99999999999999, "started": 1.5}, "processes": []}',
        b'{"supervisor": {"pid": true, "started": "now"}, "processes": []}',
        b"[" * 100_000,
    ],
)
def test_a_record_that_can_not_be_read_is_named(home: Home, content: bytes) -> None:
    """A disk that was full may have left half a file; the person must learn which one."""
    home.started.write_bytes(content)
    for look in (processes.supervisor_of, processes.end_left_over):
        with pytest.raises(StackError, match=r"started\.json: is not readable"):
            look(home)
    assert home.started.exists()


def test_a_program_that_keeps_ending_is_started_more_and_more_seldom(
    start: Callable[[list[str]], Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that can't run must not eat the machine, and one that ran for long starts again at once."""
    now = [time.time()]
    monkeypatch.setattr(time, "time", lambda: now[0])
    process = start([sys.executable, "-c", ""])
    waits = []
    for _ in range(7):
        until(lambda: process.ended is not None)
        began = now[0]
        while not process.restart_due():
            now[0] += 0.25
        waits.append(now[0] - began)
        process.start(os.environ, Path.cwd())
    assert waits == [1, 2, 4, 8, 16, 30, 30]
    now[0] += 3600
    until(lambda: process.ended is not None)
    assert process.restart_due()


def test_the_reason_of_an_end_is_the_line_that_gives_it(start: Callable[[list[str]], Process]) -> None:
    """The person reads one line of a log of thousands; it should be the error's."""
    code = "import sys; print('starting'); print('ValueError: port in use'); print('    at x'); sys.exit(3)"
    process = start([sys.executable, "-c", code])
    until(lambda: process.ended is not None)
    assert process.ended == 3
    assert process.why().startswith("ValueError: port in use (see ")
