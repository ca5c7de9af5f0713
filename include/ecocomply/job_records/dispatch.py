"""Which DAG a waiting job starts, with which conf; or why it never can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.as_of import instant, not_later_than, within_reach
from include.ecocomply.job_records.dag_runs import RunStanding, number_of_run, run_id_of_job, run_of_key
from include.ecocomply.job_types import (
    DIGEST,
    DIGEST_DAILY,
    DIGEST_WEEKLY,
    EXCEL_IMPORT,
    IMPORT_COMMIT,
    IMPORT_PREVIEW,
    JobDag,
    dags_of,
)
from include.errors import BadInput

AS_OF = "as_of"
DRY_RUN = "dry_run"

_FREQUENCIES = {"DAILY": DIGEST_DAILY, "WEEKLY": DIGEST_WEEKLY}


@dataclass(frozen=True, slots=True)
class Start:
    """What starts a job: the DAG, what it is told, and the instant that it decides by, now and when tried again."""

    dag: JobDag
    conf: Mapping[str, Any]
    as_of: datetime


def decide(job: Row[Any], companies: frozenset[UUID] | None, now: datetime) -> Start:
    """Return what starts a waiting job.

    `companies` are those that who asked for it may see, None if nobody did; `job` has, beside its own columns, the
    status, the confirmation and the company of the import that it is about. Raises BadInput for a job that can't
    be: of no type, with a payload that is none, or of another's company. What else a payload may hold, the DAG's own
    params say.
    """
    payload = job.payload
    if not isinstance(payload, dict):
        raise BadInput(f"payload: it is a {type(payload).__name__}, not an object")
    if DRY_RUN in payload:
        raise BadInput("payload: dry_run is for a person's preview, which has no row")
    _check_company(payload, companies)
    dag, conf = _dag(job, companies)
    as_of = job.as_of or _as_of(payload, now)
    return Start(dag, {**conf, AS_OF: as_of.isoformat()}, as_of)


def payload_of(dag: JobDag, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the row of a run that none was there for holds, so that its retry starts the same DAG again."""
    frequency = {digest.dag_id: {"frequency": word} for word, digest in _FREQUENCIES.items()}
    return {**params, **frequency.get(dag.dag_id, {})}


def next_run_id(job: Row[Any], standing: Mapping[Any, RunStanding]) -> str | None:
    """Return the id of the run that a waiting job starts, or None while a run of it is live.

    A run that the row names and Airflow does not know was to be started when the dispatcher was killed.
    """
    named = run_of_key(job.dag_run_id)
    if named is None:
        return run_id_of_job(job.id)
    stands, number = standing.get(named.uncleared), number_of_run(named.run_id, job.id)
    if stands is None:
        return run_id_of_job(job.id, max(1, number))
    return None if stands.live else run_id_of_job(job.id, number + 1)


def _check_company(payload: Mapping[str, Any], companies: frozenset[UUID] | None) -> None:
    given = payload.get("company_id")
    if given is None:
        return
    try:
        company = UUID(given)
    except (ValueError, AttributeError, TypeError):
        raise BadInput(f"payload: company_id {given!r} is no uuid") from None
    if companies is not None and company not in companies:
        raise BadInput(f"payload: company_id {company} is none that who asked for the job may act for")


def _dag(job: Row[Any], companies: frozenset[UUID] | None) -> tuple[JobDag, dict[str, Any]]:
    payload: dict[str, Any] = dict(job.payload)
    match job.job_type:
        case _ if not (dags := dags_of(job.job_type)):
            raise BadInput(f"job_type: there is no job {job.job_type!r}")
        case str() as job_type if job_type == EXCEL_IMPORT:
            return _import_dag(job, companies), payload
        case str() as job_type if job_type == DIGEST:
            frequency = payload.pop("frequency", None)
            if not isinstance(frequency, str) or frequency not in _FREQUENCIES:
                raise BadInput(f"payload: frequency {frequency!r} is neither DAILY nor WEEKLY")
            return _FREQUENCIES[frequency], payload
    return dags[0], payload


def _import_dag(job: Row[Any], companies: frozenset[UUID] | None) -> JobDag:
    given = job.payload.get("import_id")
    if job.import_status is None:
        raise BadInput(f"payload: there is no import {given!r}")
    if companies is not None and job.import_company_id not in companies:
        raise BadInput(f"payload: import {given} is none that who asked for the job may see")
    if job.import_status == "CANCELLED":
        raise BadInput(f"payload: import {given} is CANCELLED")
    if job.import_confirmed_at is not None:
        return IMPORT_COMMIT
    if job.import_status in ("PENDING_REVIEW", "COMPLETED") and not job.attempts:
        raise BadInput(f"payload: import {given} is {job.import_status}, and nobody has confirmed it")
    # One that was killed between its preview and its end only ends.
    return IMPORT_PREVIEW


def _as_of(payload: Mapping[str, Any], now: datetime) -> datetime:
    given = payload.get(AS_OF)
    if given is None:
        return now
    if not isinstance(given, str):
        raise BadInput(f"payload: as_of {given!r} is no instant")
    as_of = within_reach(instant(given))
    not_later_than(as_of, now)
    return as_of
