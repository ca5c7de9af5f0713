"""The jobs that are due, run by the handlers of their types, each type's jobs as one set."""

from __future__ import annotations

import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import Row

from include.errors import AlmanacError, BadInput, Permanent, Transient
from include.nifya.job_queue import JOBS
from include.nifya.job_series import PACKAGE, follow_completed, follow_failed
from include.nifya.job_types import (
    PROCESS_SUBSCRIPTION,
    SEND_DIGEST_EMAILS,
    Handler,
    NotReached,
    parse_data,
)
from include.queues.claiming import take_back_lost
from include.queues.drain import Done, Limits, Outcome, drain
from include.queues.engine import Claim, Failure, Queue
from include.run import Run, Transaction, row_error
from include.statements import statement

CHUNK = 100
SECONDS = 300.0
"""How long a run goes on claiming: what is claimed last must end within the task's limit, its last question too."""

DIGEST_SECONDS = 30.0
"""What the making of digests gets at least, however long the parsers took."""

# Content before digests: what both are due for at once is told today, not tomorrow. Then what nothing handles.
_IN_TURN: Sequence[tuple[str, ...] | None] = ((PROCESS_SUBSCRIPTION,), (SEND_DIGEST_EMAILS,), None)

_COUNTED_HERE = ("processed", "failed")

QUEUE = Queue(JOBS, bury=follow_failed)


def make_due(run: Run, job_id: uuid.UUID) -> None:
    """Let a job that waits run now, as `run_waiting` does.

    Raises BadInput if there is none of that id, or if it does not wait.
    """
    with run.transaction() as tx:
        held = tx.row(statement(PACKAGE, "hold_job"), job_id=job_id)
        if held is None:
            raise BadInput(f"job_id: there is no job {job_id}")
        status = held.status
        if status == JOBS.words.due:
            run_waiting(tx, held)
            return
    if status != JOBS.words.claimed:
        raise BadInput(f"job_id: job {job_id} is {status}; only one that waits can be run")
    # Another run has it, or had when it was killed: then it is taken back by itself.
    run.note(f"Job {job_id} is being worked on already")


def run_waiting(tx: Transaction, held: Row[Any]) -> Any:
    """Let a job that waits, and is held, run now; return the id of the one that does.

    A recurring one that waits for its time keeps it: a copy runs now, beside the series. One that is late or
    waits for another try, and one that runs but once, is due itself.
    """
    name = "copy_job" if held.is_ahead else "make_job_due"
    return tx.value(statement(PACKAGE, name), job_id=held.id)


def take_back(run: Run) -> None:
    """Take back the jobs of workers that have not been heard of."""
    take_back_lost(run, QUEUE)


def as_of_now(run: Run) -> Run:
    """Return the run as the handlers see it: with counts of its own, and as of the database's clock.

    A queue's jobs are not of the schedule's instant; one that a person gave narrows them all the same.
    """
    if run.as_of_given:
        return replace(run, counts=Counter())
    with run.transaction() as tx:
        return replace(run, counts=Counter(), as_of=tx.value(statement("include", "database_now")))


def run_due(run: Run, outside: Any, handlers: Mapping[str, Handler]) -> None:
    """Run all that is due, a chunk at a time; each ends, or is tried again, in one transaction with what follows.

    Subscriptions come before digests.
    """

    def work(run: Run, claims: Sequence[Claim]) -> Sequence[Outcome]:
        run.count("processed", len(claims))
        return _work(run, outside, handlers, claims)

    until = time.monotonic() + SECONDS
    for kinds in _IN_TURN:
        seconds = until - time.monotonic()
        if kinds == (SEND_DIGEST_EMAILS,):
            seconds = max(seconds, DIGEST_SECONDS)
        drain(run, QUEUE, work, _write, Limits(chunk=CHUNK, seconds=seconds, kinds=kinds))


def _write(tx: Transaction, outcomes: Sequence[Outcome]) -> None:
    follow_completed(tx, [one.claim.key for one in outcomes if isinstance(one, Done)])


def _work(
    run: Run, outside: Any, handlers: Mapping[str, Handler], claims: Sequence[Claim]
) -> Sequence[Outcome]:
    outcomes: list[Outcome] = []
    by_type: dict[str, list[tuple[Claim, Any]]] = defaultdict(list)
    for claim in claims:
        try:
            data = parse_data(claim.row.type, claim.row.data)
        except BadInput as error:
            outcomes.append(_outcome(run, claim, error))
        else:
            by_type[claim.row.type].append((claim, data))
    for type_, jobs in by_type.items():
        inner = as_of_now(run)
        answers = _answers(inner, partial(handlers[type_], inner, outside), [data for _, data in jobs])
        run.state = inner.state
        # A job is counted where it ends; what its handler counts beside that is the run's too.
        run.counts.update({name: n for name, n in inner.counts.items() if name not in _COUNTED_HERE})
        answered = list(zip((claim for claim, _ in jobs), answers, strict=True))
        _give_back(run, [claim for claim, answer in answered if isinstance(answer, NotReached)])
        outcomes += [
            _outcome(run, claim, answer) for claim, answer in answered if not isinstance(answer, NotReached)
        ]
    return outcomes


def _give_back(run: Run, claims: Sequence[Claim]) -> None:
    if not claims:
        return
    with run.transaction() as tx:
        given = len(QUEUE.release(tx, claims))
    run.count("processed", -given)
    run.log.info("%d jobs are given back, since the time was up", given, extra={"job": run.job})


def _answers(run: Run, handler: Any, datas: Sequence[Any]) -> Sequence[AlmanacError | None]:
    """Return one answer a job; where the handler itself breaks, the jobs are halved until it is known whose it was."""
    counts = run.counts.copy()
    try:
        answers: Sequence[AlmanacError | None] = handler(datas)
    except AlmanacError as error:
        return [error] * len(datas)
    except Exception as error:
        run.counts.clear()
        run.counts.update(counts)
        if len(datas) > 1:
            middle = len(datas) // 2
            return [*_answers(run, handler, datas[:middle]), *_answers(run, handler, datas[middle:])]
        run.log.exception("a job's handler broke: job=%s data=%s", run.job, datas[0])
        return [Transient(f"{type(error).__name__}: {row_error(error)}")]
    return answers


def _outcome(run: Run, claim: Claim, answer: AlmanacError | None) -> Outcome:
    if answer is None:
        return Done(claim)
    run.log.warning(
        "row failed: job=%s recordId=%s attempt=%d err=%s",
        run.job,
        claim.key,
        claim.attempt,
        row_error(answer),
        extra={"job": run.job, "recordId": str(claim.key), "err": row_error(answer)},
    )
    return Failure(claim, row_error(answer), permanent=isinstance(answer, Permanent))
