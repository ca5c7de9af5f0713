"""A job that has failed for good: its dead letter, its entry in the audit log, and who is told."""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError

from include.alerts import Alerts
from include.ecocomply.access import as_service, companies_seen
from include.ecocomply.background_jobs import JOBS
from include.ecocomply.job_types import Severity, Told, failure_rule
from include.queues.engine import Claim, Ended, Failure, Queue, storable_reason
from include.run import Run, Transaction, row_error, sqlstate
from include.statements import statement

PACKAGE = "include.ecocomply.job_records"

DISPATCH = "dispatch"
"""The execution step of a job that was refused before any run of it began."""

_LONGEST_STACK = 20_000


@dataclass(frozen=True, slots=True)
class Fault:
    """What made a job fail, in the specification's words for it."""

    name: str
    message: str
    step: str
    code: str | None = None
    stack: str | None = None

    @classmethod
    def of(cls, error: BaseException, step: str) -> Fault:
        return cls(type(error).__name__, storable_reason(row_error(error)), step, _code(error), _stack(error))


@dataclass(frozen=True, slots=True)
class FailureAlert:
    """What there is to tell of a dead letter. `recipients` are the users who have a notification of it.

    The operators' ledger is told where `operators` says so: where no user is, and the platform does not tell of
    the run itself.
    """

    cause: str
    severity: Severity
    subject: str
    text: str
    recipients: tuple[UUID, ...] = ()
    operators: bool = False


@dataclass(slots=True)
class Burials:
    """The alerts of the jobs that have failed for good in a transaction; void if that is rolled back."""

    alerts: list[FailureAlert] = field(default_factory=list)


def queue(fault: Fault, burials: Burials | None = None) -> Queue:
    """Return the queue whose rows, where they end as failed, end by this fault."""
    return Queue(JOBS, bury=partial(_bury, fault, burials or Burials()))


def claim_of(row: Row[Any], limit: int) -> Claim:
    """Return a running row as a claim of whoever holds it; its own limit of attempts may be smaller."""
    own = limit if row.max_attempts is None else min(limit, row.max_attempts)
    return Claim(row.id, row.attempts, own, row.claimed_by, row)


def fail(tx: Transaction, claim: Claim, fault: Fault, burials: Burials, *, permanent: bool = False) -> bool:
    """Write that an attempt failed: due again after its delay, or at an end; say which. Raises StaleClaim."""
    if fault.stack is not None:
        tx.execute(statement(PACKAGE, "keep_error_stack"), id=claim.key, stack=fault.stack)
    failure = Failure(claim, fault.message, permanent=permanent)
    return queue(fault, burials).fail(tx, [failure]) > 0


def refuse(tx: Transaction, row: Row[Any], fault: Fault, burials: Burials, owner: str) -> None:
    """End a waiting row as failed for good; the database lets no row end that was never claimed."""
    claimed = tx.row(
        statement(PACKAGE, "claim_job"), id=row.id, owner=owner, dag_run_id=row.dag_run_id, as_of=row.as_of
    )
    if claimed is not None:
        fail(tx, claim_of(claimed, 1), fault, burials, permanent=True)


def tell_operators(run: Run, alerts: Alerts) -> None:
    """Tell the operators of a day's open dead letters that are theirs to hear of, each once."""
    with as_service(run).transaction() as tx:
        letters = tx.rows(statement(PACKAGE, "letters_for_operators"))
    for letter in letters:
        told = alerts.tell(_cause(letter.id), "run", _subject(letter.job_type), _text(letter, letter))
        run.count("sent", int(told))


def _bury(fault: Fault, burials: Burials, tx: Transaction, ended: Sequence[Ended]) -> None:
    for one in ended:
        row = tx.row(statement(PACKAGE, "one_job"), id=one.key)
        if row is not None:
            burials.alerts.append(_bury_one(fault, tx, row))


def _bury_one(fault: Fault, tx: Transaction, row: Row[Any]) -> FailureAlert:
    rule = failure_rule(row.job_type)
    company = _company(tx, row)
    tx.execute(
        statement(PACKAGE, "resolve_letters_of_job"),
        job_id=row.id,
        notes="It was tried again, and failed again.",
    )
    context = {
        "job_type": row.job_type,
        "payload": row.payload,
        "attempts": row.attempts,
        "first_attempted_at": None if row.started_at is None else row.started_at.isoformat(),
        "last_error_code": fault.code,
        "execution_step": fault.step,
        "partial_results": row.progress,
        "severity": rule.severity,
    }
    recipients = _recipients(tx, row, company, rule.told)
    operators = not recipients and (row.dag_run_id is None or fault.step == DISPATCH)
    letter = tx.row(
        statement(PACKAGE, "insert_letter"),
        job_id=row.id,
        company_id=company,
        error_message=fault.message,
        error_stack=fault.stack,
        error_context=json.dumps(context | {"tell_operators": operators}),
        retry_count=row.retry_count,
    )
    if letter is None:
        # Another session's letter of the same job; ours can't be: the row is locked.
        raise RuntimeError(f"background_jobs: row {row.id} has an open dead letter already")
    tx.execute(
        statement(PACKAGE, "audit_job_error"),
        company_id=letter.company_id,
        job_id=row.id,
        payload=json.dumps(row.payload),
        error_name=fault.name,
        error_message=fault.message,
        error_stack=fault.stack,
        retry_count=row.retry_count,
        job_type=row.job_type,
        context=json.dumps(context),
    )
    told = tx.rows(
        statement(PACKAGE, "notify_of_failure"),
        user_ids=recipients,
        company_id=letter.company_id,
        subject=_subject(row.job_type),
        body=_text(row, fault),
        job_id=row.id,
        letter_id=letter.id,
        details=json.dumps(
            {"job_type": row.job_type, "severity": rule.severity, "dead_letter_id": str(letter.id)}
        ),
    )
    return FailureAlert(
        cause=_cause(letter.id),
        severity=rule.severity,
        subject=_subject(row.job_type),
        text=_text(row, fault),
        recipients=tuple(one.user_id for one in told),
        operators=operators,
    )


def _company(tx: Transaction, row: Row[Any]) -> UUID | None:
    """Return whose the failure is: the payload's company where who asked may act for it, else the row's own."""
    named = named_company(row.payload)
    if named is None:
        return row.company_id
    if row.created_by is None or named in companies_seen(tx, row.created_by):
        return named
    return row.company_id


def named_company(payload: Any) -> UUID | None:
    """Return the company that a payload names, or None if it names none that can be one."""
    given = payload.get("company_id") if isinstance(payload, dict) else None
    try:
        return UUID(given) if isinstance(given, str) else None
    except ValueError:
        return None


def _recipients(tx: Transaction, row: Row[Any], company: UUID | None, told: Told) -> list[UUID]:
    if company is None or told is Told.OPERATORS:
        return []
    found: list[UUID] = []
    if told is Told.REQUESTER:
        found = [
            one.id for one in tx.rows(statement(PACKAGE, "requester"), job_id=row.id, company_id=company)
        ]
    # Who asked may have left: then it is the company's to know.
    return found or [one.id for one in tx.rows(statement(PACKAGE, "owners_and_admins"), company_id=company)]


def _cause(letter_id: UUID) -> str:
    return f"ecocomply:dead-letter:{letter_id}"


def _subject(job_type: str) -> str:
    return f"Background Job Failed: {job_type}"


def _text(row: Any, fault: Any) -> str:
    message = fault.message if isinstance(fault, Fault) else fault.error_message
    retries = f"{row.retry_count} {'retry' if row.retry_count == 1 else 'retries'}"
    return (
        f"The {row.job_type} job failed after {retries}. Error: {message}. "
        "Please check the admin dashboard for details."
    )


def _code(error: BaseException | None) -> str | None:
    """Return the SQLSTATE or the code of an error, or of what caused it."""
    while error is not None:
        found = sqlstate(error) if isinstance(error, DBAPIError) else getattr(error, "code", None)
        if found is not None:
            return str(found)
        error = error.__cause__
    return None


def _stack(error: BaseException) -> str | None:
    """Return where an error and its causes came from, without the values that a database error prints."""
    said: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        frames = "".join(traceback.format_tb(seen.__traceback__))
        said.append(f"{frames}{type(seen).__name__}: {row_error(seen)}\n")
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    whole = "\ncaused:\n".join(reversed(said)).replace("\x00", "").encode("utf-8", "replace").decode()
    return whole[-_LONGEST_STACK:] or None
