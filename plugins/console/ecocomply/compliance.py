"""EcoComply's compliance dashboard: red, amber and green clocks by company, and of one by site and module."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, status
from fastapi.responses import HTMLResponse

from console.ecocomply.reading import reading
from console.guards import reads_runs_of
from console.rendering import id_of, render
from include.ecocomply.console import compliance as sight
from include.ecocomply.console.listing import Place

DAG = "ecocomply_refresh_compliance_dashboard"
PATH = "/ecocomply/compliance"

router = APIRouter(prefix=PATH, dependencies=[reads_runs_of(DAG)])


@router.get("")
def by_company(
    request: Request,
    company: Annotated[str, Query()] = "",
    after: Annotated[str, Query()] = "",
    after_id: Annotated[str, Query()] = "",
) -> HTMLResponse:
    """List companies, those with the most red clocks first."""
    place_id = id_of(after_id, "page")
    with reading(request) as tx:
        page = sight.by_company(tx, company, Place(after, place_id) if place_id else None)
        refreshed = sight.refreshed_at(tx)
    return render(
        request,
        "ecocomply_compliance.html",
        page=page,
        refreshed=refreshed,
        company=company,
        first_page=place_id is None,
        path=PATH,
        dag=DAG,
    )


@router.get("/{company_id}")
def of_company(request: Request, company_id: uuid.UUID) -> HTMLResponse:
    """Show one company's clocks by site and module, with what comes up next."""
    with reading(request) as tx:
        clocks = sight.of_company(tx, company_id)
        refreshed = sight.refreshed_at(tx)
    if clocks is None:
        raise HTTPException(
            status.HTTP_404_NOT_FOUND, f"The dashboard has no clock of a company {company_id}."
        )
    return render(
        request,
        "ecocomply_compliance_company.html",
        clocks=clocks,
        most=sight.MOST_PARTS,
        refreshed=refreshed,
        today=datetime.now(UTC).date(),
        path=PATH,
        dag=DAG,
    )
