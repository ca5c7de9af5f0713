"""The worker: what is stuck is freed, and what is due is done, several jobs at a time, for some minutes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, Self

from sqlalchemy import Row

from include.arcvest import bloomberg_scan, email_scan, feed_scan, job_types, news_scan
from include.arcvest.job_types import TYPES, types_within
from include.arcvest.jobs import PIPELINE, QUEUE
from include.arcvest.pipeline_call import call_pipeline
from include.arcvest.sources import FeedsRead, MailboxRead, Sources
from include.arcvest.stuck_ideas import release_stuck_ideas
from include.effects import Effects
from include.errors import AlmanacError, BadInput, Permanent
from include.feeds import FeedAnswer, FeedRequest, Feeds
from include.mailbox import Mailbox, MailboxAnswer
from include.queues.claiming import Claiming, take_back_lost
from include.queues.drain import Done, Outcome, finish
from include.queues.engine import Claim, Failure, new_owner
from include.queues.heartbeat import beating
from include.run import Run, row_error
from include.statements import statement

PACKAGE = "include.arcvest"
NAME = "queueWorker"
SECONDS = "arcvest_worker_seconds"
SETTINGS: dict[str, str | None] = {**job_types.SETTINGS, SECONDS: "240"}
QUEUES = ("job_queue", "idea_queue")

SLOTS = 3
"""How many jobs are done at a time, unless a run is told otherwise."""

KILLED_AFTER = 300.0
"""Seconds after which Airflow ends the task."""

SPARE = 10.0
"""Seconds that are kept for writing what a job brought."""

POLL_SECONDS = 5.0
"""How often the queue is looked at though nobody rang: a retry falls due without a sound."""

BUSY_POLL_SECONDS = 1.0


class Bell(Protocol):
    """Rings when jobs fall due. One that is not live never rings."""

    @property
    def live(self) -> bool:
        """Whether waiting for it makes sense."""
        ...

    def listening(self) -> AbstractContextManager[None]:
        """Open it: until the end it misses nothing."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait until it rings, at most `seconds`; say whether it did."""
        ...


class SilentBell:
    """Never rings: the worker goes when nothing is due."""

    live = False

    def listening(self) -> AbstractContextManager[None]:
        return nullcontext()

    def wait(self, seconds: float) -> bool:  # noqa: ARG002 - the protocol's form
        return False


class Outside(NamedTuple):
    """The feeds, the mailbox, and the bell that rings when jobs fall due."""

    feeds: Feeds
    mailbox: Mailbox
    bell: Bell

    def in_preview(self, run: Run, effects: Effects) -> Outside:  # noqa: ARG002 - reads alone leave this machine
        with run.transaction() as tx:
            jobs = tx.rows(statement(PACKAGE, "jobs_to_preview"), types=list(TYPES), not_after=run.due_limit)
        feeds = _feeds_read(run, self.feeds, {row.job_type: row for row in jobs})
        letters = [row for row in jobs if row.job_type == email_scan.JOB_TYPE]
        return Outside(feeds, _mailbox_read(run, self.mailbox, letters), SilentBell())


def _feeds_read(run: Run, feeds: Feeds, jobs: Mapping[str, Row[Any]]) -> Feeds:
    answers: list[FeedAnswer] = []
    faults: dict[str, AlmanacError] = {}
    for scan in (news_scan, bloomberg_scan):
        if scan.JOB_TYPE not in jobs:
            continue
        asked: list[FeedRequest] = []
        try:
            asked = feed_scan.requests(run, scan.FEEDS, jobs[scan.JOB_TYPE].created_at) or []
            answers += feeds.fetch(asked, feed_scan.SECONDS)
        except AlmanacError as error:
            # What the real run would meet, the preview meets in the same place.
            faults |= {one.url: error for one in asked}
    return FeedsRead(answers, faults)


def _mailbox_read(run: Run, box: Mailbox, jobs: Sequence[Row[Any]]) -> Mailbox:
    answers: dict[str | None, MailboxAnswer | AlmanacError] = {}
    reached: dict[str, str | None] = {}
    for job in jobs if box.is_set else ():
        position = None
        try:
            key = email_scan.source_key(box, email_scan.senders(job.payload))
            # Each job goes on where the one before it will have ended.
            position = reached[key] if key in reached else email_scan.position_of(run, key)
            for answer in email_scan.reads(run, box, position, job.created_at):
                answers[position] = answer
                position = reached[key] = answer.position
        except AlmanacError as error:
            answers[position] = error
    return MailboxRead(box, answers)


def free_stuck(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Take back claims that nobody has been heard of, and ideas whose pipeline is gone; call it for what is due."""
    take_back_lost(run, QUEUE)
    release_stuck_ideas(run)
    call_pipeline(run)


def work_jobs(run: Run, outside: Outside) -> None:
    """Do what is due, up to `slots` jobs at a time, and wait for more until the time is over."""
    began = time.monotonic()
    stop_at = began + _seconds(run)
    # A task that is tried again finds its own lost claims here, without the step before.
    take_back_lost(run, QUEUE)
    claiming = Claiming(run, QUEUE, new_owner(run.run_id))
    slots = 1 if run.preview else int(run.params["slots"] or SLOTS)
    crew = _Crew(run, Sources(outside.feeds, outside.mailbox), slots)
    with beating(run, QUEUE, claiming.owner), outside.bell.listening(), crew:
        while True:
            in_time = time.monotonic() < stop_at
            claiming.kinds = types_within(KILLED_AFTER - SPARE - (time.monotonic() - began))
            if in_time and crew.free and claiming.kinds:
                crew.start(claiming.alone(crew.free))
            if crew.busy:
                crew.finish_some()
            elif not in_time or not outside.bell.live:
                return
            else:
                outside.bell.wait(min(POLL_SECONDS, max(0.0, stop_at - time.monotonic())))


def report_queue(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Say what of the queue wants a person's look; call the pipeline again for what fell due meanwhile."""
    call_pipeline(run)
    with run.transaction() as tx:
        rows = tx.rows(statement(PACKAGE, "queue_standing"), types=[*TYPES, PIPELINE])
    for row in rows:
        if row.ours:
            run.note(f"{row.status}: {row.jobs} of {row.job_type}")
        else:
            run.note(f"{row.status}: {row.jobs} of {row.job_type}, a type that the platform leaves to others")


@dataclass(slots=True)
class _Crew(AbstractContextManager["_Crew"]):
    """Does up to `slots` jobs at a time; all that is said to the queue is said by the thread that calls."""

    run: Run
    sources: Sources
    slots: int
    _pool: ThreadPoolExecutor | None = None
    _at_work: dict[Future[tuple[Run, Outcome]], Claim] = field(default_factory=dict)

    def __enter__(self) -> Self:
        # One at a time needs no thread, and a preview's transaction stands none.
        self._pool = ThreadPoolExecutor(self.slots, "arcvest job") if self.slots > 1 else None
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            # A task that is being ended does not wait for its jobs: their claims are taken back.
            self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def free(self) -> int:
        return self.slots - len(self._at_work)

    @property
    def busy(self) -> bool:
        return bool(self._at_work)

    def start(self, claims: Sequence[Claim]) -> None:
        self.run.count("processed", len(claims))
        for claim in claims:
            self._at_work[self._submit(claim)] = claim

    def _submit(self, claim: Claim) -> Future[tuple[Run, Outcome]]:
        if self._pool is not None:
            return self._pool.submit(_do, self.run, claim, self.sources)
        done: Future[tuple[Run, Outcome]] = Future()
        done.set_result(_do(self.run, claim, self.sources))
        return done

    def finish_some(self) -> None:
        """Write what has come to its end by now, or within a moment."""
        done, _ = wait(self._at_work, BUSY_POLL_SECONDS, FIRST_COMPLETED)
        outcomes: list[Outcome] = []
        for future in done:
            del self._at_work[future]
            own, outcome = future.result()
            self.run.counts.update(own.counts)
            self.run.notes.extend(own.notes)
            outcomes.append(outcome)
        finish(self.run, QUEUE, outcomes)


def _do(run: Run, claim: Claim, sources: Sources) -> tuple[Run, Outcome]:
    """Do one job with counts of its own, since several are done at a time."""
    own = replace(run, counts=Counter(), notes=[])
    handle: Callable[[Run, Claim, Sources], None] = TYPES[claim.row.job_type].handle
    try:
        handle(own, claim, sources)
    except AlmanacError as error:
        return own, Failure(claim, str(error), permanent=isinstance(error, Permanent))
    except Exception as error:
        # A slip of ours: the row keeps its attempts, and the log has the trace.
        own.log.exception("job failed: job=%s recordId=%s", NAME, claim.key)
        return own, Failure(claim, f"{type(error).__name__}: {row_error(error)}")
    return own, Done(claim)


def _seconds(run: Run) -> float:
    given = run.settings[SECONDS] or ""
    most = int(KILLED_AFTER) - 60
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= most:
        raise BadInput(f"variable {SECONDS}: {given!r} is not a whole number from 1 to {most}")
    return float(given)


STEPS = (free_stuck, work_jobs, report_queue)
