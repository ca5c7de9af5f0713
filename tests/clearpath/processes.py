"""Jobs in processes of their own, through the real hooks: a test may kill one as a machine does, without a word."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from multiprocessing.process import BaseProcess
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
# Loaded once, in the process that the others are forked from.
_CONTEXT.set_forkserver_preload(
    [
        "hooks.email",
        "hooks.lab",
        "hooks.storage",
        "hooks.postgres",
        "hooks.certificate_pdf",
        "tests.clearpath.rows",
    ]
)

BUSY = 75
"""What a process ends with if another run was at it to the last."""


def begin(
    job: str,
    connections: Mapping[str, str],
    as_of: datetime,
    *,
    times: int = 1,
    patience: float = 0,
    dies_at_commit: int | None = None,
    **changed: Any,
) -> BaseProcess:
    """Begin a job in a process of its own and return it.

    `connections` is the environment that says where everything is. The job runs so many `times`; where another
    run is at it, it tries again for `patience` seconds. At the commit of number `dies_at_commit` (from 1) the
    process is killed, before anything of it is committed. What else is given are params and settings.
    """
    process = _CONTEXT.Process(
        target=_work, args=(job, dict(connections), as_of, times, patience, dies_at_commit, changed)
    )
    process.start()
    return process


def ended(process: BaseProcess) -> int:
    """Wait for a process and return its exit code; -9 if it was killed."""
    process.join(120)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise TimeoutError("the process did not end")
    return process.exitcode


def kill(process: BaseProcess) -> None:
    """Kill a process, and see that it was killed."""
    process.kill()
    assert ended(process) == -signal.SIGKILL


def until(true: Callable[[], Any], within: float = 90) -> None:
    """Wait until something is true."""
    give_up = time.monotonic() + within
    while not true():
        assert time.monotonic() < give_up, "it did not come true"
        time.sleep(0.01)


def outside(job: Any) -> Any:
    """Return a job's collaborators as its DAG makes them, from Airflow's connections."""
    from hooks.certificate_pdf import certificate_printer  # noqa: PLC0415 - slow to load where no process works
    from hooks.email import email_provider  # noqa: PLC0415 - as above
    from hooks.lab import lab  # noqa: PLC0415 - as above
    from hooks.postgres import database  # noqa: PLC0415 - as above
    from hooks.storage import storage  # noqa: PLC0415 - as above
    from include.platform.alert_ledger import AlertLedger  # noqa: PLC0415 - as above

    make: dict[str, Callable[[], Any]] = {
        "mail": lambda: email_provider("clearpath_email"),
        "alerts": lambda: AlertLedger(database("almanac_db")),
        "lab": lambda: lab("clearpath_lab"),
        "storage": lambda: storage("clearpath_storage"),
        "printer": certificate_printer,
    }
    fields = getattr(job.Outside, "_fields", ())
    return job.Outside(**{field: make[field]() for field in fields})


def _work(
    job_name: str,
    connections: dict[str, str],
    as_of: datetime,
    times: int,
    patience: float,
    dies_at_commit: int | None,
    changed: dict[str, Any],
) -> None:
    import importlib  # noqa: PLC0415 - of the process alone

    from sqlalchemy import event  # noqa: PLC0415 - as above

    from hooks.postgres import database  # noqa: PLC0415 - as above
    from include.errors import Busy  # noqa: PLC0415 - as above
    from tests.clearpath.rows import Rows  # noqa: PLC0415 - as above

    os.environ.update(connections)
    job = importlib.import_module(f"include.clearpath.{job_name}")
    rows = Rows(database("clearpath_db"))
    commits = 0

    def at_commit(_: Any) -> None:
        nonlocal commits
        commits += 1
        if commits == dies_at_commit:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(rows.database.engine, "commit", at_commit)
    give_up = time.monotonic() + patience
    for _ in range(times):
        while True:
            try:
                rows.perform(job, outside(job), as_of, **changed)
                break
            except Busy:
                if time.monotonic() > give_up:
                    raise SystemExit(BUSY) from None
                time.sleep(0.02)
