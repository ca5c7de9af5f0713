"""What the operators were told, whether it reached them, and which services are out of reach."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from console.guards import ReadableDags, signed_in
from console.rendering import id_of, one_of, render
from include.platform import console

CONNECTION = "almanac_db"

router = APIRouter(prefix="/alerts", dependencies=[signed_in()])


@router.get("")
def ledger(
    request: Request,
    dags: ReadableDags,
    show: Annotated[str, Query()] = "",
    after: Annotated[str, Query()] = "",
    after_id: Annotated[str, Query()] = "",
) -> HTMLResponse:
    """List the alerts about DAGs that the user may read, and about none, the latest first."""
    undelivered = one_of(show, ("undelivered",), "show") is not None
    place_id = id_of(after_id, "page")
    with request.app.state.databases.read(CONNECTION) as tx:
        alerts, more = console.alerts(
            tx, dags, undelivered=undelivered, after=(after, place_id) if place_id else None
        )
        outages = console.outages(tx)
    return render(
        request,
        "alerts.html",
        alerts=[(alert, console.delivery(alert)) for alert in alerts],
        outages=outages,
        undelivered=undelivered,
        next=more,
        first_page=place_id is None,
    )
