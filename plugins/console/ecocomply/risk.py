"""EcoComply's risk: each site's latest score with what it is made of, and its history as a picture and a table."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, status
from fastapi.responses import HTMLResponse

from console.ecocomply.chart import Chart
from console.ecocomply.reading import reading
from console.guards import reads_runs_of
from console.rendering import id_of, one_of, render
from console.values import shown
from include.ecocomply.console import risk as sight
from include.ecocomply.console.listing import Place
from include.ecocomply.tables.monitoring import RISK_BANDS

DAG = "ecocomply_risk_score_calculation"
PATH = "/ecocomply/risk"

router = APIRouter(prefix=PATH, dependencies=[reads_runs_of(DAG)])

Text = Annotated[str, Query()]


@router.get("")
def latest(
    request: Request, company: Text = "", band: Text = "", after: Text = "", after_id: Text = ""
) -> HTMLResponse:
    """List sites by their latest scores, the highest first."""
    place_id = id_of(after_id, "page")
    chosen = one_of(band, RISK_BANDS, "band")
    with reading(request) as tx:
        page = sight.latest(tx, company, chosen, Place(after, place_id) if place_id else None)
    return render(
        request,
        "ecocomply_risk.html",
        page=page,
        company=company,
        band=chosen,
        bands=RISK_BANDS,
        first_page=place_id is None,
        path=PATH,
        dag=DAG,
    )


@router.get("/{site_id}")
def of_site(request: Request, site_id: uuid.UUID, days: Text = "90") -> HTMLResponse:
    """Show a site's score, what it is made of, and its history."""
    chosen = one_of(days, tuple(sight.DAYS), "days") or "90"
    with reading(request) as tx:
        found = sight.of_site(tx, site_id, sight.DAYS[chosen])
    if found is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"There is no score of a site {site_id}.")
    factors = found.row.factors if isinstance(found.row.factors, dict) else {"factors": found.row.factors}
    return render(
        request,
        "ecocomply_risk_site.html",
        site=found.row,
        parts=found.parts,
        factors=[(name, shown(name, value)) for name, value in factors.items()],
        history=found.history,
        chart=Chart.of(
            [(one.score_date, float(one.risk_score)) for one in found.history],
            found.row.score_date,
            sight.DAYS[chosen],
        ),
        days=chosen,
        choices=tuple(sight.DAYS),
        path=PATH,
        dag=DAG,
    )
