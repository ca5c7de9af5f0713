"""What administrators do with scheduled jobs: list, create, read, change, delete, run.

What can't be is refused before anything is written: BadInput says what is wrong with a value, NoSuchJob and
Conflict what is wrong with the job that was asked for.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from sqlalchemy import Row
from sqlalchemy.exc import IntegrityError

from include.errors import BadInput, Permanent
from include.nifya.job_runs import QUEUE, run_waiting
from include.nifya.job_series import PACKAGE
from include.nifya.job_types import ProcessSubscription, SendDigestEmails, parse_data
from include.nifya.schedules import Schedule, first_after, parse
from include.odd_dates import OddDate
from include.run import Transaction
from include.statements import statement

Status = Literal["pending", "processing", "completed", "failed"]
Type = Literal["process-subscription", "send-digest-emails"]

PAGE, LONGEST_PAGE = 50, 200
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
FARTHEST = timedelta(days=3_653)

Aware = Annotated[
    datetime, Meta(tz=True, description="With an offset; from 2000 on, at most ten years ahead")
]
UserId = Annotated[str, Meta(min_length=1, max_length=128)]


class NoSuchJob(Permanent):
    """There is no job of that id."""


class Conflict(Permanent):
    """The job's status does not allow what was asked for, or the change would double another job."""


class _NewJob(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type"):
    schedule: Schedule | None = None
    next_run_at: Aware | None = None
    created_by: UserId | None = None


class NewProcessSubscription(_NewJob, frozen=True, tag="process-subscription"):
    """A job that looks for what is new for one subscription."""

    data: ProcessSubscription


class NewSendDigestEmails(_NewJob, frozen=True, tag="send-digest-emails"):
    """A job that sends the digests that are due."""

    data: SendDigestEmails = SendDigestEmails()


NewJob = NewProcessSubscription | NewSendDigestEmails
"""Without `next_run_at` it runs at the schedule's first time, or at once."""


class JobChange(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is to be changed; what is left out stays. A new schedule alone also moves `next_run_at`."""

    type: Type | UnsetType = UNSET
    data: dict[str, Any] | UnsetType = UNSET
    schedule: Schedule | UnsetType | None = UNSET
    next_run_at: Aware | UnsetType = UNSET


class Job(Struct, frozen=True):
    """A scheduled job. `retry_at` is when a further try is due; `recurrence_ended` says why none follows."""

    id: uuid.UUID
    type: str
    data: Any
    schedule: Any
    status: Status
    next_run_at: datetime
    last_run_at: datetime | None
    created_at: datetime | None
    updated_at: datetime | None
    created_by: str | None
    error: str | None
    series_id: uuid.UUID | None
    recurrence_ended: str | None
    attempts: int
    retry_at: datetime | None
    finished_at: datetime | None
    failures_in_row: int


class JobPage(Struct, frozen=True):
    """A page of jobs, the latest planned first; `next` is the `after` of the page that follows, null on the last."""

    jobs: list[Job]
    next: str | None


class JobFilter(Struct, frozen=True):
    """What a list is narrowed to: `due_from` is included, `due_before` is not."""

    status: Status | None = None
    type: str | None = None
    subscription_id: uuid.UUID | None = None
    series_id: uuid.UUID | None = None
    created_by: str | None = None
    due_from: datetime | None = None
    due_before: datetime | None = None


def list_jobs(tx: Transaction, wanted: JobFilter, limit: int = PAGE, after: str | None = None) -> JobPage:
    """Return a page of jobs. Raises BadInput for an `after` that no page gave, or a time without an offset."""
    for name in ("due_from", "due_before"):
        value = getattr(wanted, name)
        if value is not None and value.tzinfo is None:
            raise BadInput(f"{name}: {value.isoformat()} has no offset, as in 2027-03-10T09:00:00+01:00")
    after_at, after_id = _place(after) if after else (None, None)
    rows = tx.rows(
        statement(PACKAGE, "list_jobs"),
        status=wanted.status,
        type=wanted.type,
        subscription=str(wanted.subscription_id) if wanted.subscription_id else None,
        series=wanted.series_id,
        created_by=wanted.created_by,
        due_from=wanted.due_from,
        due_before=wanted.due_before,
        after_at=after_at,
        after_id=after_id,
        limit=limit + 1,
    )
    more = len(rows) > limit
    return JobPage([_job(row) for row in rows[:limit]], _token(rows[limit - 1]) if more else None)


def read_job(tx: Transaction, job_id: uuid.UUID) -> Job:
    """Return one job. Raises NoSuchJob."""
    row = tx.row(statement(PACKAGE, "one_job"), job_id=job_id)
    if row is None:
        raise NoSuchJob(f"there is no job {job_id}")
    return _job(row)


def trail(tx: Transaction, job_id: uuid.UUID, limit: int = PAGE) -> Sequence[Row[Any]]:
    """Return a job's changes of status with when, at which try, by whom and why, the latest first."""
    return tx.rows(statement(PACKAGE, "job_trail"), job_id=str(job_id), limit=limit)


def create_job(tx: Transaction, new: NewJob) -> Job:
    """Add a job and return it. Raises BadInput for what can never run."""
    now: datetime = tx.value(statement("include", "database_now"))
    _check_data(tx, new.data)
    schedule = _checked_schedule(new.schedule)
    by = new.created_by
    # A text of Postgres holds no null character, so nobody's id does.
    if by is not None and ("\x00" in by or tx.value(statement(PACKAGE, "is_user"), user_id=by) is None):
        raise BadInput(f"created_by: there is no user {by!r}")
    next_run_at = new.next_run_at
    if next_run_at is None:
        next_run_at = first_after(schedule, now) if schedule is not None else now
    created = tx.value(
        statement(PACKAGE, "create_job"),
        type=msgspec.to_builtins(new)["type"],
        data=_json(new.data),
        schedule=_json(schedule),
        next_run_at=_in_reach(next_run_at, now),
        created_by=by,
    )
    return read_job(tx, created)


def change_job(tx: Transaction, job_id: uuid.UUID, change: JobChange) -> Job:
    """Change a job that waits and return it. Raises BadInput, NoSuchJob, or Conflict for one that does not wait."""
    if change == JobChange():
        raise BadInput("the body changes nothing: give type, data, schedule or next_run_at")
    _held(tx, job_id)
    job = read_job(tx, job_id)
    if job.status != "pending":
        raise _not_waiting(job, "changed")
    now: datetime = tx.value(statement("include", "database_now"))
    type_ = job.type if change.type is UNSET else change.type
    data = parse_data(type_, job.data if change.data is UNSET else change.data)
    if change.type is not UNSET or change.data is not UNSET:
        _check_data(tx, data)
    schedule: Any = job.schedule
    next_run_at = job.next_run_at
    if change.schedule is not UNSET:
        schedule = _checked_schedule(change.schedule)
        if schedule is not None:
            next_run_at = first_after(schedule, now)
    if change.next_run_at is not UNSET:
        next_run_at = _in_reach(change.next_run_at, now)
    try:
        changed = tx.value(
            statement(PACKAGE, "update_job"),
            job_id=job_id,
            type=type_,
            data=_json(data),
            schedule=_json(schedule),
            next_run_at=next_run_at,
        )
    except IntegrityError:
        raise Conflict(f"job {job_id}: its series has a job at {next_run_at.isoformat()} already") from None
    if changed is None:
        # A worker took it between the look and the change.
        raise _not_waiting(read_job(tx, job_id), "changed")
    return read_job(tx, job_id)


def delete_job(tx: Transaction, job_id: uuid.UUID) -> None:
    """Delete a job; nothing follows a recurring one then. Raises NoSuchJob, or Conflict while it runs."""
    if tx.value(statement(PACKAGE, "delete_job"), job_id=job_id) is None:
        raise _not_waiting(read_job(tx, job_id), "deleted")


def run_job(tx: Transaction, job_id: uuid.UUID, actor: str) -> Job:
    """Have a job run now, and return the one that does.

    For one that completed, and a recurring one that waits for its time, that is a new job, which does the same once.

    Raises NoSuchJob, or Conflict while it runs.
    """
    held = _held(tx, job_id)
    due: Any = None
    if held.status == "pending":
        due = run_waiting(tx, held)
    elif held.status == "failed":
        due = next(iter(QUEUE.retry(tx, [job_id], actor)), None)
    elif held.status == "completed":
        due = tx.value(statement(PACKAGE, "copy_job"), job_id=job_id)
    if due is None:
        raise _not_waiting(read_job(tx, job_id), "run")
    return read_job(tx, due)


def _held(tx: Transaction, job_id: uuid.UUID) -> Row[Any]:
    """Hold a job until the end of the transaction, so that what is read of it stays. Raises NoSuchJob."""
    held = tx.row(statement(PACKAGE, "hold_job"), job_id=job_id)
    if held is None:
        raise NoSuchJob(f"there is no job {job_id}")
    return held


def _not_waiting(job: Job, asked: str) -> Conflict:
    return Conflict(f"job {job.id} is {job.status} and can't be {asked}")


def _checked_schedule(given: Schedule | None) -> Schedule | None:
    # The body's form is known; whether its zone and its dates exist is not.
    return None if given is None else parse(msgspec.to_builtins(given))


def _check_data(tx: Transaction, data: ProcessSubscription | SendDigestEmails) -> None:
    if not isinstance(data, ProcessSubscription):
        return
    found = tx.row(statement(PACKAGE, "subscription_for_job"), subscription_id=data.subscription_id)
    if found is None:
        raise BadInput(f"data: there is no subscription {data.subscription_id}")
    if not found.active:
        raise BadInput(f"data: subscription {data.subscription_id} is inactive")
    if data.user_id is not None and data.user_id != found.user_id:
        raise BadInput(f"data: subscription {data.subscription_id} is not of the user {data.user_id!r}")


def _in_reach(at: datetime, now: datetime) -> datetime:
    if not EARLIEST <= at <= now + FARTHEST:
        raise BadInput(f"next_run_at: {at.isoformat()} is before 2000 or more than ten years ahead")
    return at


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _job(row: Row[Any]) -> Job:
    return Job(**row._asdict())


def _token(row: Row[Any]) -> str:
    return base64.urlsafe_b64encode(f"{row.next_run_at.isoformat()} {row.id}".encode()).decode()


def _place(after: str) -> tuple[datetime | OddDate, uuid.UUID]:
    try:
        at, _, id_ = base64.urlsafe_b64decode(after.encode()).decode().rpartition(" ")
        place = OddDate.read(at) or datetime.fromisoformat(at)
        if isinstance(place, OddDate) or place.tzinfo is not None:
            return place, uuid.UUID(id_)
    except (ValueError, binascii.Error):
        pass
    raise BadInput(f"after: {after[:100]!r} is no place in this list")
