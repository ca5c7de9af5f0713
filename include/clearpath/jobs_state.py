"""When each job last ran, and where the lab poll stands."""

from __future__ import annotations

from include.dates_in_words import instant
from include.run import Run
from include.statements import statement

_PACKAGE = "include.clearpath"


def record_run(run: Run, job_name: str) -> None:
    """Note that a job has run to its last step; an earlier as-of never moves the note back, and says so."""
    with run.transaction() as tx:
        tx.execute(statement(_PACKAGE, "record_job_run"), job=job_name, as_of=run.as_of)
        latest = tx.value(statement(_PACKAGE, "last_job_run"), job=job_name)
    if latest is not None and latest > run.as_of:
        run.note(
            f"this run is as of {instant(run.as_of, run.zone)}, older than the latest one, as of "
            f"{instant(latest, run.zone)} ({run.zone.key}): what that one did stands"
        )
