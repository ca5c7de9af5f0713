"""EcoComply's jobs: whether they are healthy and by which limits, how each type did, and what runs now."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, cast

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from console.ecocomply.reading import reading
from console.guards import reads_runs_of
from console.rendering import one_of, render
from include.ecocomply.console import jobs as sight
from include.ecocomply.job_records.metrics import PERIODS, Period, job_metrics, job_system_health

DAG = "ecocomply_job_dispatcher"
QUEUE = "ecocomply.background_jobs"

router = APIRouter(prefix="/ecocomply/jobs", dependencies=[reads_runs_of(DAG)])


@router.get("")
def jobs(request: Request, period: Annotated[str, Query()] = "day") -> HTMLResponse:
    """Show the health, what runs now, and the metrics of an hour, a day or a week."""
    chosen = cast("Period", one_of(period, tuple(PERIODS), "period") or "day")
    now = datetime.now(UTC)
    with reading(request) as tx:
        health = job_system_health(tx, now)
        running, more = sight.running(tx)
        metrics = job_metrics(tx, chosen, now)
    return render(
        request,
        "ecocomply_jobs.html",
        health=health,
        measures=sight.measures(health),
        running=running,
        more=more,
        most=sight.MOST_RUNNING,
        metrics=metrics,
        period=chosen,
        periods=tuple(PERIODS),
        queue=QUEUE,
        dag=DAG,
    )
