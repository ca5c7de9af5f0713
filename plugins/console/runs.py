"""The latest run of every DAG, a DAG's runs, and one run with its steps and its preview."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, status
from fastapi.responses import HTMLResponse

from console.guards import ReadableDags, reads_runs_of
from console.rendering import render
from include.platform import console
from include.platform.console import RunPlace

CONNECTION = "almanac_db"

router = APIRouter(prefix="/runs", dependencies=[reads_runs_of()])


@router.get("")
def latest(request: Request, dags: ReadableDags) -> HTMLResponse:
    """List the latest run of every DAG that the user may read."""
    with request.app.state.databases.read(CONNECTION) as tx:
        runs = console.latest_runs(tx, dags)
    return render(request, "runs.html", runs=runs, silent=sorted(dags - {run.dag_id for run in runs}))


@router.get("/{dag_id}")
def of_dag(
    request: Request,
    dag_id: str,
    dags: ReadableDags,
    after: Annotated[str, Query()] = "",
    after_id: Annotated[str, Query()] = "",
    run_id: Annotated[str, Query()] = "",
) -> HTMLResponse:
    """List one DAG's runs, the latest first; or show the one whose id no path can hold."""
    if run_id:
        return detail(request, dag_id, run_id)
    place = RunPlace(after, after_id) if after_id else None
    with request.app.state.databases.read(CONNECTION) as tx:
        runs = console.runs_of_dag(tx, dag_id, place)
    if not runs.rows and place is None and dag_id not in dags:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"Airflow knows no DAG {dag_id}, and none has run.")
    return render(request, "runs_of_dag.html", dag_id=dag_id, runs=runs, first_page=place is None)


@router.get("/{dag_id}/{run_id}")
def detail(request: Request, dag_id: str, run_id: str) -> HTMLResponse:
    """Show one run: counts, steps, and what its preview found."""
    with request.app.state.databases.read(CONNECTION) as tx:
        found = console.run_detail(tx, dag_id, run_id)
    if found is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"{dag_id} has no run {run_id} with a summary.")
    result = found.row.preview_result
    return render(
        request,
        "run.html",
        run=found.row,
        steps=found.steps,
        result=result,
        tables=console.table_changes(result) if result else (),
    )
