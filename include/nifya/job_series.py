"""What follows a job that has ended: the next one of its series, or the reason why there is none.

What the operators are told of is named first, in a transaction of its own, and told under that name: a kill in
between tells it again under the same name, which the ledger knows.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

from sqlalchemy import Row

from include.alerts import Alerts
from include.errors import BadInput
from include.nifya.schedules import Schedule, next_after, parse
from include.odd_dates import OddDate
from include.queues.engine import Ended
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.nifya"
FAILURES_TOLD = 3
_NAMED = 20
_MOST_TIMES = 100

_GONE = {
    "deleted": "the subscription is deleted",
    "inactive": "the subscription is inactive",
}


def follow_failed(tx: Transaction, ended: Sequence[Ended]) -> None:
    """Add the next job after each that failed for good: a failure ends one run, not the series."""
    ids = [one.key for one in ended]
    tx.execute(statement(PACKAGE, "count_failed_subscriptions"), ids=ids)
    _follow(tx, ids, failed=True)


def follow_completed(tx: Transaction, ids: Sequence[uuid.UUID]) -> None:
    """Add the next job after each that completed; where one waits already, its series' failures are forgotten."""
    _follow(tx, ids, failed=False)
    if ids:
        tx.execute(statement(PACKAGE, "end_streaks"), ids=list(ids))


def _follow(tx: Transaction, ids: Sequence[uuid.UUID], *, failed: bool) -> None:
    if not ids:
        return
    recurring = tx.rows(statement(PACKAGE, "jobs_that_recur"), ids=list(ids))
    if not recurring:
        return
    now: datetime = tx.value(statement("include", "database_now"))
    gone: dict[uuid.UUID, str] = {}
    unasked: dict[uuid.UUID, str] = {}
    # Of two jobs of one series that end together the later one goes on.
    following: dict[uuid.UUID, tuple[uuid.UUID, Schedule, datetime]] = {}
    for row in recurring:
        if row.subscription in _GONE:
            gone[row.id] = _GONE[row.subscription]
            continue
        try:
            schedule = parse(row.schedule)
            # An application may have written minus infinity; there is nothing to count from then.
            planned = now if isinstance(row.next_run_at, OddDate) else row.next_run_at
            following[row.series_id] = (row.id, schedule, next_after(schedule, planned, now))
        except BadInput as error:
            unasked[row.id] = str(error)
    unasked |= _add(tx, following.values(), now, failed=failed)
    if over := gone | unasked:
        tx.execute(
            statement(PACKAGE, "end_recurrences"),
            ids=list(over),
            reasons=list(over.values()),
            news=[one in unasked for one in over],
        )


def _add(
    tx: Transaction, following: Iterable[tuple[uuid.UUID, Schedule, datetime]], now: datetime, *, failed: bool
) -> dict[uuid.UUID, str]:
    """Add the next jobs; return those after which there is none, with the reason."""
    over: dict[uuid.UUID, str] = {}
    left = {job: (schedule, at) for job, schedule, at in following}
    for _ in range(_MOST_TIMES):
        added = left and tx.execute(
            statement(PACKAGE, "add_following_jobs"),
            ids=list(left),
            next_runs=[at for _, at in left.values()],
            failed=failed,
        )
        if added == len(left) or not left:
            return over
        # One waits already; or a job that has ended stands at that time, and the time after it is taken.
        stuck = tx.rows(statement(PACKAGE, "jobs_not_followed"), ids=list(left))
        left = {row.id: left[row.id] for row in stuck}
        for job, (schedule, at) in list(left.items()):
            try:
                left[job] = (schedule, next_after(schedule, at, now))
            except BadInput as error:
                over[job] = str(error)
                del left[job]
    return over | dict.fromkeys(left, f"the series has jobs at each of its next {_MOST_TIMES} times")


def tell_failing(run: Run, alerts: Alerts) -> None:
    """Tell the operators of series that failed three times in a row, and of those that ended unasked, each once."""
    _tell(run, alerts, _FAILING)
    _tell(run, alerts, _ENDED)


class _Telling(NamedTuple):
    """What is told of: the statements that find, name and mark it, and the words."""

    found: str
    name: str
    mark: str
    cause: str
    word: str
    key: Callable[[Row[Any]], str]
    words: Callable[[Run, Sequence[Row[Any]]], tuple[str, str]]
    counted: str | None = None


def _tell(run: Run, alerts: Alerts, telling: _Telling) -> None:
    with run.transaction() as tx:
        found = tx.rows(statement(PACKAGE, telling.found))
        if not found:
            return
        batches: defaultdict[str, list[Row[Any]]] = defaultdict(list)
        for row in found:
            if row.cause is not None:
                batches[row.cause].append(row)
        if fresh := [row for row in found if row.cause is None]:
            cause = hashlib.sha256("\n".join(sorted(map(telling.key, fresh))).encode()).hexdigest()[:32]
            tx.execute(statement(PACKAGE, telling.name), cause=cause, ids=[row.id for row in fresh])
            batches[cause] += fresh
    for row in fresh:
        run.log.warning(
            "%s: job=%s recordId=%s err=%s",
            telling.word,
            run.job,
            row.series_id,
            row.error,
            extra={"job": run.job, "recordId": str(row.series_id), "err": row.error},
        )
    if telling.counted and fresh:
        run.count(telling.counted, len(fresh))
    for cause, rows in batches.items():
        if alerts.tell(f"{telling.cause}:{cause}", "stuck", *telling.words(run, rows)):
            run.count("alerts")
        with run.transaction() as tx:
            tx.execute(statement(PACKAGE, telling.mark), ids=[row.id for row in rows])


def _failing(run: Run, rows: Sequence[Row[Any]]) -> tuple[str, str]:
    jobs = "a job has" if len(rows) == 1 else f"{len(rows)} jobs have"
    lines = _listed(
        f"- {row.type}, series {row.series_id}: {row.failures_in_row} times since "
        f"{_local(row.failing_since, run.zone)}: {row.error or 'no reason was kept'}"
        for row in rows
    )
    return (
        f"NIFYA: {jobs} failed {FAILURES_TOLD} times in a row",
        f"Each goes on at its next time. Last reasons:\n{lines}\n",
    )


def _ended(run: Run, rows: Sequence[Row[Any]]) -> tuple[str, str]:  # noqa: ARG001 - the form of words
    jobs = "a recurring job has" if len(rows) == 1 else f"{len(rows)} recurring jobs have"
    lines = _listed(f"- {row.type}, series {row.series_id}: {row.error}" for row in rows)
    return (
        f"NIFYA: {jobs} ended",
        f"Nothing runs any more until there is a new job. Reasons:\n{lines}\n",
    )


def _local(at: datetime | OddDate, zone: tzinfo) -> str:
    return str(at) if isinstance(at, OddDate) else f"{at.astimezone(zone):%Y-%m-%d %H:%M %Z}"


def _listed(lines: Iterable[str]) -> str:
    said = list(lines)
    more = [f"- and {len(said) - _NAMED} more"] if len(said) > _NAMED else []
    return "\n".join(said[:_NAMED] + more)


_FAILING = _Telling(
    "failing_jobs",
    "name_failing",
    "mark_failing_told",
    "nifya jobs failing",
    "failing",
    lambda row: f"{row.series_id} {_local(row.failing_since, UTC)}",
    _failing,
)
_ENDED = _Telling(
    "ended_series",
    "name_endings",
    "mark_endings_told",
    "nifya series ended",
    "ended",
    lambda row: f"{row.series_id} {row.id}",
    _ended,
    counted="recurrences_ended",
)
