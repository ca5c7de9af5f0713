"""The routes of the job API; who may read the dispatcher's runs may read how the jobs do."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from console.databases import Databases
from console.guards import reads_runs_of
from ecocomply_api.status_feed import StatusFeed, job_of
from include.ecocomply.access import act_as_service
from include.ecocomply.job_records.metrics import Period, job_metrics, job_system_health
from include.ecocomply.job_records.statuses import job_statuses

CONNECTION, LISTEN_CONNECTION = "ecocomply_db", "ecocomply_listen_db"
_MOST_JOBS = 100
_QUIET_SECONDS = 15
# Then the client comes again, and its login is looked at again.
_LONGEST_SECONDS = 600

router = APIRouter(prefix="/api", dependencies=[reads_runs_of("ecocomply_job_dispatcher")], tags=["Jobs"])


@router.get("/jobs/metrics")
def metrics(request: Request, window: Annotated[Period, Query()] = "day") -> dict[str, Any]:
    """Tell how the jobs of the last hour, day or week did, by type. Durations are in milliseconds."""
    until = datetime.now(UTC)
    with _databases(request).read(CONNECTION) as tx:
        act_as_service(tx)
        found = job_metrics(tx, window, until)
    return {
        "period": window,
        "until": until,
        "metrics": [{**asdict(one), "success_rate": float(one.success_rate)} for one in found],
    }


@router.get("/health")
def health(request: Request) -> dict[str, Any]:
    """Tell whether the jobs as a whole are healthy, degraded or unhealthy, and by which numbers."""
    with _databases(request).read(CONNECTION) as tx:
        act_as_service(tx)
        found = asdict(job_system_health(tx, datetime.now(UTC)))
    return {"status": found.pop("status"), "details": found}


@router.get("/jobs/events", response_class=StreamingResponse)
async def events(
    request: Request, job_id: Annotated[list[uuid.UUID] | None, Query(max_length=_MOST_JOBS)] = None
) -> StreamingResponse:
    """Send every change of a job's status or progress as a server-sent event `job_status`.

    With `job_id`, of these jobs alone, and first how they stand. The stream ends after ten minutes, or where
    something was missed; an EventSource comes again by itself.
    """
    feed: StatusFeed = request.app.state.feed
    wanted = [] if job_id is None else job_id
    stream = _stream(feed, _databases(request), wanted)
    # The first part is there before the answer begins: what can't be reached is an answer of its own.
    first = await anext(stream)
    return StreamingResponse(
        _with_first(first, stream),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _with_first(first: str, rest: AsyncGenerator[str]) -> AsyncGenerator[str]:
    try:
        yield first
        async for part in rest:
            yield part
    finally:
        await rest.aclose()


async def _stream(feed: StatusFeed, databases: Databases, job_ids: list[uuid.UUID]) -> AsyncGenerator[str]:
    wanted = {str(job_id) for job_id in job_ids}
    until = time.monotonic() + _LONGEST_SECONDS
    async with feed.changes() as changes:
        # Asked after the listening began, so that nothing falls between.
        now = await run_in_threadpool(_standing, databases, job_ids) if job_ids else []
        yield "retry: 2000\n\n" + "".join(map(_event, now))
        while time.monotonic() < until:
            try:
                said = await asyncio.wait_for(changes.get(), _QUIET_SECONDS)
            except TimeoutError:
                # So that whoever stands between does not close it, and a client that is gone is noticed.
                yield ": still here\n\n"
                continue
            if said is None:
                return
            if not wanted or job_of(said) in wanted:
                yield _event(said)


def _standing(databases: Databases, job_ids: list[uuid.UUID]) -> list[str]:
    with databases.read(CONNECTION) as tx:
        act_as_service(tx)
        return list(job_statuses(tx, job_ids))


def _event(said: str) -> str:
    return f"event: job_status\ndata: {said}\n\n"


def _databases(request: Request) -> Databases:
    return request.app.state.databases
