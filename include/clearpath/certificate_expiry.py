"""Certificates past their last valid day expire; their PDF is made anew when somebody asks for it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from include.clearpath.jobs_state import record_run
from include.isolation import each_chunk
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.clearpath"
NAME = "certificateExpiry"
SETTINGS: dict[str, str | None] = {}
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside


def expire_certificates(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Expire certificates whose last valid day is over, and flag their PDF."""
    with run.transaction() as tx:
        ids = [row.id for row in tx.rows(statement(PACKAGE, "certificates_overdue"), today=run.today)]
    run.count("processed", len(ids))
    each_chunk(run, ids, lambda tx, chunk: _expire(run, tx, chunk))


def _expire(run: Run, tx: Transaction, ids: Sequence[uuid.UUID]) -> None:
    expired = tx.execute(statement(PACKAGE, "expire_certificates"), ids=ids, today=run.today)
    run.count("expired", expired)
    # The world moved between the look and the change: another worker or an application was first.
    run.count("skipped", len(ids) - expired)


def note_run(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Note that the job has run."""
    record_run(run, NAME)


STEPS = (expire_certificates, note_run)
