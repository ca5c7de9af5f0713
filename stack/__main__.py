"""`python -m stack up | down | env | demo`: what the Makefile calls."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO
from urllib.parse import unquote, urlsplit

from stack import environment, processes
from stack.errors import StackError
from stack.home import Home, here
from stack.supervisor import Stack, Stopped, ends_on_signals
from stack.terminal import complain, progress, say

_DOWN_SECONDS = 90.0
_READY = "ready"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code. What stops it is one line on standard error."""
    _fill_closed_streams()
    parser = argparse.ArgumentParser(prog="python -m stack", description="The embedded stack")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start the stack and return when it is healthy")
    commands.add_parser("down", help="end the stack")
    commands.add_parser("env", help="print what reaches the stack")
    opened = commands.add_parser("sql", help="open a database of the stack with psql")
    opened.add_argument("database", help="its name, as in clearpath")
    demo = commands.add_parser(
        "demo", help="start the stack, run every DAG on demo data, stay up until Ctrl-C"
    )
    demo.add_argument("--exit", action="store_true", help="end when the runs are done")
    demo.add_argument("--fresh", action="store_true", help="throw the demo's data away first")
    demo.add_argument("--system", help="run the DAGs of one system alone, as in clearpath")
    supervise = commands.add_parser("supervise", help="run the stack in the foreground")
    supervise.add_argument("--report", type=int, help="file descriptor that hears how the start goes")
    asked = parser.parse_args(arguments)
    try:
        return _run(asked, here())
    except (StackError, OSError) as error:
        complain(f"error: {_in_words(error)}")
        return 1


def _run(asked: argparse.Namespace, home: Home) -> int:
    match asked.command:
        case "up":
            return up(home)
        case "down":
            return down(home)
        case "env":
            return show_environment(home)
        case "sql":
            return open_database(home, asked.database)
        case "demo":
            from stack.demo import demo  # noqa: PLC0415 - `make env` needs none of it

            return demo(home, stay=not asked.exit, fresh=asked.fresh, system=asked.system)
        case _:
            return supervise(home, asked.report)


def up(home: Home) -> int:
    """Start a supervisor that outlives this process, and wait until its stack is healthy."""
    home.make()
    hear, report = os.pipe()
    with (home.logs / "stack.log").open("ab") as log:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "stack", "supervise", "--report", str(report)],
            cwd=home.project,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(report,),
            start_new_session=True,
        )
    os.close(report)
    try:
        with os.fdopen(hear, encoding="utf-8") as lines:
            for line in lines:
                if line.strip() == _READY:
                    url = environment.read(home)["ALMANAC_URL"]
                    say(f"The stack is up at {url}{environment.CONSOLE}; `make env` says how to log in.")
                    return 0
                kind, _, rest = line.rstrip("\n").partition(" ")
                if kind == "error":
                    supervisor.wait(_DOWN_SECONDS)
                    raise StackError(rest)
                progress(rest)
    except KeyboardInterrupt:
        supervisor.terminate()
        supervisor.wait(_DOWN_SECONDS)
        return 130
    raise StackError(f"the stack ended while it started; see {home.logs / 'stack.log'}")


def down(home: Home) -> int:
    """End the stack that runs in a home, or what a killed one left behind."""
    if not home.folder.exists():
        say("No stack was up.")
        return 0
    supervisor = processes.supervisor_of(home)
    if supervisor is None:
        left = processes.end_left_over(home)
        from stack.postgres import end_left_over  # noqa: PLC0415 - seldom needed

        left += end_left_over(home.postgres)
        say(f"Ended {left} processes that a killed stack had left behind." if left else "No stack was up.")
        return 0
    supervisor.terminate()
    deadline = time.monotonic() + _DOWN_SECONDS
    # Longer than its record: that goes a moment before the process does.
    while processes.lives(supervisor):
        if time.monotonic() > deadline:
            raise StackError(
                f"process {supervisor.pid} has not ended after {_DOWN_SECONDS:.0f} s; see {home.logs}"
            )
        time.sleep(0.1)
    say("The stack is down.")
    return 0


def show_environment(home: Home) -> int:
    """Print what a person needs to reach the stack that runs; scripts read the env file."""
    if processes.supervisor_of(home) is None:
        raise StackError("no stack is up; `make up` starts one")
    lines = environment.reach(environment.read(home), home.environment)
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        say(f"{name:<{width}}  {value}")
    return 0


def open_database(home: Home, name: str) -> int:
    """Become psql in one of the stack's databases; what is piped in is run."""
    if processes.supervisor_of(home) is None:
        raise StackError("no stack is up; `make up` starts one")
    uris = environment.database_uris(environment.read(home))
    if name not in uris:
        raise StackError(f"no database {name!r}; say DB= one of {', '.join(sorted(uris))}")
    from stack.postgres import psql  # noqa: PLC0415 - seldom needed

    address = urlsplit(uris[name])
    # Not in the command, which every user of the machine may read.
    os.environ["PGPASSWORD"] = unquote(address.password or "")
    shown = address._replace(netloc=address.netloc.replace(f":{address.password}@", "@"))
    os.execv(psql(), ["psql", "--set=ON_ERROR_STOP=1", shown.geturl()])  # noqa: S606 - no shell is wanted


def supervise(home: Home, report: int | None) -> int:
    """Run a stack until it is asked to end; say through `report` how the start goes."""
    hearer: IO[str] | None = None if report is None else os.fdopen(report, "w", encoding="utf-8", buffering=1)

    def tell(kind: str, line: str = "") -> None:
        if hearer is not None and not hearer.closed:
            try:
                hearer.write(f"{kind} {line}".rstrip() + "\n")
            except BrokenPipeError:
                return

    try:
        with ends_on_signals(), Stack(home, os.environ) as stack:
            stack.start(say=lambda line: (progress(line), tell("info", line))[0])
            tell(_READY)
            if hearer is not None:
                # What could not be told is still to be written, and can't be.
                with suppress(BrokenPipeError):
                    hearer.close()
            stack.watch()
    except Stopped:
        return 0
    except (StackError, OSError) as error:
        tell("error", _in_words(error))
        raise
    return 0


def _fill_closed_streams() -> None:
    """Open what the shell's `>&-` has closed: a pipe would take its number, and a child's log its place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is this one.
            os.open(os.devnull, os.O_RDWR)


def _in_words(error: StackError | OSError) -> str:
    """Return what stopped a command as one line: a system's error names the file, as where a disk is full."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


if __name__ == "__main__":
    sys.exit(main())
