"""`python -m bench.ecocomply_peak <job> <as_of>`: run a job once and say by how many megabytes this process grew."""

from __future__ import annotations

import re
import sys
from datetime import datetime
from pathlib import Path

from include.engines import make_engine
from include.errors import Permanent
from include.job import NothingOutside, perform
from stack.terminal import say

_KILOBYTES = 1_024
_PEAK_ANEW = "5"


def main() -> int:
    """Take the database's URL from standard input; a command line is for all to read."""
    # Here alone: this module's name is what the benchmark starts.
    from bench.ecocomply_jobs import JOBS, run_of  # noqa: PLC0415

    timed, now = JOBS[sys.argv[1]], datetime.fromisoformat(sys.argv[2])
    engine = make_engine(sys.stdin.read().strip())
    # What the imports took at their peak is not the job's: the peak begins anew.
    Path("/proc/self/clear_refs").write_text(_PEAK_ANEW, encoding="ascii")
    before = _peak()
    perform(timed.job, run_of(timed.job, timed.params, engine, now), NothingOutside())
    say(f"{_peak() - before:.1f}")
    return 0


def _peak() -> float:
    # Not getrusage: its peak is also that of the process which this one was started by.
    found = re.search(
        r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE
    )
    if found is None:
        raise Permanent("bench: this system does not say what memory a process has had")
    return int(found[1]) / _KILOBYTES


if __name__ == "__main__":
    sys.exit(main())
