"""ClearPath's lab records that are set aside: what came, and why it was not taken."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from console.guards import reads_runs_of
from console.rendering import id_of, render
from include.clearpath import console
from include.clearpath.console import Place

DAG = "clearpath_lab_result_polling"
CONNECTION = "clearpath_db"

router = APIRouter(prefix="/clearpath/lab", dependencies=[reads_runs_of(DAG)])


@router.get("")
def lab_records(
    request: Request,
    reason: Annotated[str, Query()] = "",
    after: Annotated[str, Query()] = "",
    after_id: Annotated[str, Query()] = "",
) -> HTMLResponse:
    """List the open records, the oldest first."""
    place_id = id_of(after_id, "page")
    with request.app.state.databases.read(CONNECTION) as tx:
        listed = console.lab_records(tx, reason or None, Place(after, place_id) if place_id else None)
        reasons = console.lab_reasons(tx)
    return render(
        request,
        "lab.html",
        listed=listed,
        reasons=reasons,
        reason=reason,
        first_page=place_id is None,
        dag=DAG,
    )
