"""NIFYA's scheduled jobs: what waits, what ran, what failed and why, and a job's whole history."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, get_args

import msgspec
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.api_fastapi.logging.decorators import action_logging
from fastapi import APIRouter, Depends, HTTPException, Query, Request, status
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from console.guards import (
    SESSION_COOKIE,
    form_token,
    may_trigger,
    meant,
    new_session,
    reads_runs_of,
    triggers,
)
from console.rendering import id_of, one_of, render
from include.errors import BadInput
from include.nifya import admin_jobs, schedules
from include.nifya.admin_jobs import Conflict, Job, JobFilter, NoSuchJob, Status, Type

DAG = "nifya_scheduled_jobs"
CONNECTION = "nifya_db"
STATUSES, TYPES = get_args(Status), get_args(Type)

router = APIRouter(prefix="/nifya/jobs", dependencies=[reads_runs_of(DAG)])


@router.get("")
def jobs(
    request: Request,
    job_status: Annotated[str, Query(alias="status")] = "",
    job_type: Annotated[str, Query(alias="type")] = "",
    subscription: Annotated[str, Query()] = "",
    after: Annotated[str, Query()] = "",
) -> HTMLResponse:
    """List jobs, the latest planned first."""
    wanted = JobFilter(
        status=one_of(job_status, STATUSES, "status"),  # ty: ignore[invalid-argument-type] - checked here
        type=one_of(job_type, TYPES, "type"),
        subscription_id=id_of(subscription.strip(), "subscription"),
    )
    with request.app.state.databases.read(CONNECTION) as tx:
        page = admin_jobs.list_jobs(tx, wanted, after=after or None)
    return render(
        request,
        "nifya_jobs.html",
        jobs=[(job, said(job)) for job in page.jobs],
        next=page.next,
        wanted=wanted,
        statuses=STATUSES,
        types=TYPES,
        first_page=not after,
        dag=DAG,
    )


@router.get("/{job_id}")
def job_detail(
    request: Request,
    job_id: uuid.UUID,
    user: GetUserDep,
    may_run: Annotated[bool, Depends(may_trigger(DAG))],
    asked: Annotated[str, Query()] = "",
) -> HTMLResponse:
    """Show one job, what became of it, and the jobs of its series."""
    try:
        with request.app.state.databases.read(CONNECTION) as tx:
            job = admin_jobs.read_job(tx, job_id)
            series = admin_jobs.list_jobs(tx, JobFilter(series_id=job.series_id or job.id))
            trail = admin_jobs.trail(tx, job_id)
    except NoSuchJob as error:
        raise HTTPException(status.HTTP_404_NOT_FOUND, str(error)) from error
    session = request.cookies.get(SESSION_COOKIE) or new_session()
    return render(
        request,
        "nifya_job.html",
        session=session,
        job=job,
        schedule=said(job),
        data=msgspec.json.format(msgspec.json.encode(job.data)).decode(),
        trail=trail,
        series=series,
        asked=bool(asked),
        may_run=may_run and job.status != "processing",
        form_token=form_token(session, user),
        dag=DAG,
    )


@router.post(
    "/{job_id}/run",
    dependencies=[triggers(DAG), Depends(meant), Depends(action_logging("console_run_nifya_job"))],
)
def run_job(request: Request, job_id: uuid.UUID, user: GetUserDep) -> Response:
    """Let a job run now, in the user's name."""
    try:
        with request.app.state.databases.writable(CONNECTION).transaction() as tx:
            job = admin_jobs.run_job(tx, job_id, user.get_name())
    except NoSuchJob as error:
        raise HTTPException(status.HTTP_404_NOT_FOUND, str(error)) from error
    except Conflict as error:
        raise HTTPException(status.HTTP_409_CONFLICT, str(error)) from error
    back = f"{request.scope.get('root_path', '')}/nifya/jobs/{job.id}?asked=1"
    return RedirectResponse(back, status.HTTP_303_SEE_OTHER)


def said(job: Job) -> str:
    """Return a job's schedule in words, or as it stands if it can't be read."""
    if job.schedule is None:
        return "once"
    try:
        return schedules.in_words(schedules.parse(job.schedule))
    except BadInput:
        return f"unreadable: {_shown(job.schedule)}"


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()[:200]
