"""The safety valve for abandoned tests: a session long past its end expires, and its mail with it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from include.clearpath.jobs_state import record_run
from include.isolation import each_chunk
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.clearpath"
NAME = "sessionExpiry"
SETTINGS: dict[str, str | None] = {}
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside


def expire_sessions(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Expire sessions past their grace period without a result; cancel their mail in the same transaction."""
    last_day = run.today - timedelta(days=int(run.params["grace_days"]))
    due = {"last_day": last_day}
    with run.transaction() as tx:
        ids = [row.id for row in tx.rows(statement(PACKAGE, "sessions_overdue"), **due)]
    run.count("processed", len(ids))
    each_chunk(run, ids, lambda tx, chunk: _expire(run, tx, chunk, due))


def _expire(run: Run, tx: Transaction, ids: Sequence[uuid.UUID], due: dict[str, Any]) -> None:
    done = tx.row(statement(PACKAGE, "expire_sessions"), ids=ids, as_of_day=run.today, **due)
    if done is not None:
        run.count("expired", done.sessions)
        run.count("cancelled", done.mails)
        # The world moved between the look and the change: another worker or an application was first.
        run.count("skipped", len(ids) - done.sessions)


def note_run(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Note that the job has run."""
    record_run(run, NAME)


STEPS = (expire_sessions, note_run)
