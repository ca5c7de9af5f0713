"""What the tests of LeadMetrics' queue need: Redis, Node and BullMQ's own worker: `python -m stack.queue_tools`.

Redis and Node are the system's; BullMQ comes from npm, pinned by tests/leadmetrics/node_worker/package-lock.json.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from stack import debian
from stack.errors import StackError
from stack.home import PROJECT
from stack.terminal import complain, say

WORKER = PROJECT / "tests" / "leadmetrics" / "node_worker"
INSTALLED = PROJECT / ".almanac" / "tests" / "node_worker"
_PROGRAMS = {"redis-server": ("redis-server",), "node": ("nodejs",), "npm": ("npm",)}
_SECONDS = 600


def program(name: str) -> str:
    """Return the path of redis-server, node or npm. Raises StackError, saying what to do, if there is none."""
    found = shutil.which(name)
    if found is None:
        raise StackError(
            f"the tests of LeadMetrics' queue need {name}; run `make queue-tools`, or install it"
        )
    return found


def install_programs() -> None:
    """Install what is missing. Raises StackError, saying what a person has to do, where that is not possible."""
    missing = {name: packages for name, packages in _PROGRAMS.items() if shutil.which(name) is None}
    if not missing:
        return
    packages = [one for wanted in missing.values() for one in wanted]
    by_hand = f"install {', '.join(missing)} by hand (Debian: apt install {' '.join(packages)})"
    what = "the tests of LeadMetrics' queue"
    refused = f"{what} need {', '.join(missing)}, and this user can't install them; {by_hand}"
    debian.install(packages, what, refused=refused, failed=by_hand)
    for name in missing:
        program(name)


def installed_worker() -> Path:
    """Return the folder of the worker with its packages, installing them where they are not as the lock says."""
    lock = hashlib.sha256((WORKER / "package-lock.json").read_bytes()).hexdigest()
    stamp = INSTALLED / "installed"
    if not stamp.is_file() or stamp.read_text(encoding="ascii") != lock:
        say("installing BullMQ's worker for the tests of LeadMetrics' queue")
        INSTALLED.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(WORKER / name, INSTALLED / name)
        command = [program("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        try:
            done = subprocess.run(
                command, cwd=INSTALLED, capture_output=True, text=True, check=False, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise StackError(f"{' '.join(command)}: not done after {_SECONDS} s") from None
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise StackError(f"{' '.join(command)}: {reason}")
        stamp.write_text(lock, encoding="ascii")
    shutil.copy(WORKER / "worker.mjs", INSTALLED / "worker.mjs")
    return INSTALLED


def main() -> int:
    """Make sure that all of it is there; return the exit code."""
    try:
        install_programs()
        installed_worker()
    except StackError as error:
        complain(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
