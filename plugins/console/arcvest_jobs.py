"""ArcVest's job queue as its plan monitors it: the last 24 hours by type, and what failed for good in them."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from console.guards import reads_runs_of
from console.rendering import render
from include.arcvest import console

DAG = "arcvest_queue_worker"
CONNECTION = "arcvest_db"
QUEUE = "arcvest.job_queue"

router = APIRouter(prefix="/arcvest/jobs", dependencies=[reads_runs_of(DAG)])


@router.get("")
def monitoring(request: Request) -> HTMLResponse:
    """Show both of the plan's monitoring queries."""
    with request.app.state.databases.read(CONNECTION) as tx:
        standing = console.queue_status(tx)
        failed = console.failed_jobs(tx)
    return render(
        request,
        "arcvest_jobs.html",
        standing=standing,
        failed=failed,
        most=console.MOST_FAILED,
        queue=QUEUE,
        dag=DAG,
    )
