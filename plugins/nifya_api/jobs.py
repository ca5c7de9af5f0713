"""The routes of scheduled jobs; who may trigger the DAG may change them, who may read its runs may read them."""

from __future__ import annotations

import json
import logging
import uuid
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.log import Log
from airflow.utils.session import create_session
from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, status
from fastapi.responses import Response
from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field

from console.guards import from_own_page, reads_runs_of, triggers
from include.as_of import instant
from include.errors import BadInput
from include.nifya import admin_jobs
from include.nifya.admin_jobs import JobChange, JobFilter, NewJob, Status

DAG = "nifya_scheduled_jobs"
CONNECTION = "nifya_db"
MOST_BYTES = 100_000

READERS = reads_runs_of(DAG)
_CHANGES = [triggers(DAG), Depends(from_own_page)]

log = logging.getLogger(__name__)
router = APIRouter(prefix="/api/admin/jobs", dependencies=[READERS], tags=["Scheduled jobs"])

Body = TypeVar("Body")


def _said(name: str, description: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _answers(*codes: int) -> dict[int | str, dict[str, Any]]:
    meanings = {
        401: "Nobody is signed in",
        403: "Not for this role",
        404: "There is no such job",
        409: "The job's status does not allow it",
        413: "The body is too large",
        415: "The body is not said to be JSON",
        422: "A value can't be, and which",
        503: "The database can't be reached now",
    }
    return {code: _said("Problem", meanings[code]) for code in (401, 403, *codes, 503)}


def _body(name: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


JobId = Annotated[uuid.UUID, Path(description="The job's id")]


async def sent(request: Request) -> bytes:
    """Return a request's body, which must be JSON of a bearable size."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(status.HTTP_415_UNSUPPORTED_MEDIA_TYPE, "Send the body as application/json.")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise HTTPException(
                status.HTTP_413_CONTENT_TOO_LARGE, f"The body is larger than {MOST_BYTES} bytes."
            )
    return bytes(body)


def _instant(given: Any) -> datetime:
    """Return an instant. Without this a bare number would be taken for seconds since 1970."""
    try:
        return instant(str(given), "an instant")
    except BadInput as error:
        raise ValueError(str(error)) from None


Instant = Annotated[AwareDatetime, BeforeValidator(_instant)]


class JobQuery(BaseModel, extra="forbid"):
    """What a list is narrowed to, and which page of it is wanted."""

    status: Status | None = None
    type: str | None = Field(None, max_length=255)
    subscription_id: uuid.UUID | None = None
    series_id: uuid.UUID | None = Field(
        None, description="The id of a recurring job's first row: its whole history"
    )
    created_by: str | None = Field(None, max_length=128)
    due_from: Instant | None = Field(None, description="The earliest next_run_at, included")
    due_before: Instant | None = Field(None, description="The latest next_run_at, excluded")
    limit: int = Field(admin_jobs.PAGE, ge=1, le=admin_jobs.LONGEST_PAGE)
    after: str | None = Field(None, max_length=200, description="`next` of the page before")


Sent = Annotated[bytes, Depends(sent)]


def read(body: bytes, form: Any) -> Any:
    """Return a body in the form that is asked for. Raises BadInput, naming the part that is wrong."""
    try:
        return msgspec.json.decode(body, type=form)
    except msgspec.ValidationError as error:
        words = str(error).replace(" - at `$.", " in `").replace("`$`", "the body")
        raise BadInput(f"body: {words}") from None
    except msgspec.DecodeError as error:
        raise BadInput(f"body: is not JSON: {error}") from None
    except RecursionError:
        raise BadInput("body: is nested too deeply") from None


@router.get(
    "",
    summary="List scheduled jobs, the latest planned first",
    responses={200: _said("JobPage", "A page of jobs"), **_answers(422)},
)
def list_jobs(request: Request, asked: Annotated[JobQuery, Query()]) -> Response:
    """Give a page of the jobs that fit every filter."""
    wanted = JobFilter(**asked.model_dump(exclude={"limit", "after"}))
    with request.app.state.databases.read(CONNECTION) as tx:
        return _json(admin_jobs.list_jobs(tx, wanted, asked.limit, asked.after))


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    summary="Create a scheduled job",
    dependencies=_CHANGES,
    responses={201: _said("Job", "The new job"), **_answers(413, 415, 422)},
    openapi_extra=_body("NewJob"),
)
def create_job(request: Request, user: GetUserDep, body: Sent) -> Response:
    """Add a job, at its schedule's first time unless the body names another."""
    new = read(body, NewJob)
    with request.app.state.databases.writable(CONNECTION).transaction() as tx:
        job = admin_jobs.create_job(tx, new)
    _note(user, "nifya_create_job", job.id)
    return _json(job, status.HTTP_201_CREATED, {"location": f"{request.url.path}/{job.id}"})


@router.get(
    "/{job_id}",
    summary="Read one job",
    responses={200: _said("Job", "The job"), **_answers(404, 422)},
)
def read_job(request: Request, job_id: JobId) -> Response:
    """Give one job."""
    with request.app.state.databases.read(CONNECTION) as tx:
        return _json(admin_jobs.read_job(tx, job_id))


@router.put(
    "/{job_id}",
    summary="Change a job that waits; what is left out stays",
    dependencies=_CHANGES,
    responses={200: _said("Job", "The job as it is now"), **_answers(404, 409, 413, 415, 422)},
    openapi_extra=_body("JobChange"),
)
def change_job(request: Request, job_id: JobId, user: GetUserDep, body: Sent) -> Response:
    """Change what the body names; its tries begin anew."""
    change = read(body, JobChange)
    with request.app.state.databases.writable(CONNECTION).transaction() as tx:
        job = admin_jobs.change_job(tx, job_id, change)
    _note(user, "nifya_change_job", job_id)
    return _json(job)


@router.delete(
    "/{job_id}",
    status_code=status.HTTP_204_NO_CONTENT,
    summary="Delete a job; one that waits does not run, and nothing follows it",
    dependencies=_CHANGES,
    responses={204: {"description": "It is gone"}, **_answers(404, 409, 422)},
)
def delete_job(request: Request, job_id: JobId, user: GetUserDep) -> Response:
    """Delete a job that is not being worked on."""
    with request.app.state.databases.writable(CONNECTION).transaction() as tx:
        admin_jobs.delete_job(tx, job_id)
    _note(user, "nifya_delete_job", job_id)
    return Response(status_code=status.HTTP_204_NO_CONTENT)


@router.post(
    "/{job_id}/run",
    status_code=status.HTTP_202_ACCEPTED,
    summary="Run a job now; a completed one is repeated as a new job, which is the answer",
    dependencies=_CHANGES,
    responses={202: _said("Job", "The job that runs now"), **_answers(404, 409, 422)},
)
def run_job(request: Request, job_id: JobId, user: GetUserDep) -> Response:
    """Let a job run now; the database tells the DAG, which starts within seconds."""
    with request.app.state.databases.writable(CONNECTION).transaction() as tx:
        job = admin_jobs.run_job(tx, job_id, user.get_name())
    _note(user, "nifya_run_job", job_id)
    return _json(job, status.HTTP_202_ACCEPTED)


def _json(value: Any, code: int = status.HTTP_200_OK, headers: dict[str, str] | None = None) -> Response:
    # A date that Python can't hold, such as infinity, is shown as Postgres writes it.
    content = msgspec.json.encode(value, enc_hook=str)
    return Response(content, code, headers, media_type="application/json")


def _note(user: Any, event: str, job_id: uuid.UUID) -> None:
    """Write a change into Airflow's audit log, beside what its own pages write there."""
    name = user.get_name()
    log.info("admin API: %s: job=%s user=%s", event, job_id, name)
    with create_session() as session:
        session.add(
            Log(
                event=event,
                task_instance=None,
                owner=name,
                owner_display_name=name,
                extra=json.dumps({"job_id": str(job_id)}),
                dag_id=DAG,
            )
        )
