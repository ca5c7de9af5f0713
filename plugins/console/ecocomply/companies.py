"""EcoComply's companies, each by itself: sites, what is open and late, and what the jobs did for it."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, status
from fastapi.responses import HTMLResponse

from console.ecocomply.reading import reading
from console.guards import reads_runs_of
from console.rendering import id_of, render
from include.ecocomply.console import companies as sight
from include.ecocomply.console.listing import Place

DAGS = (
    "ecocomply_job_dispatcher",
    "ecocomply_notification_delivery",
    "ecocomply_monitoring_schedule",
    "ecocomply_update_compliance_clocks",
    "ecocomply_evidence_gap_detection",
    "ecocomply_process_escalations",
    "ecocomply_risk_score_calculation",
)
"""Whose work a company's page shows: it takes the right to read the runs of all of them."""
QUEUE = "ecocomply.background_jobs"
PATH = "/ecocomply/companies"

router = APIRouter(prefix=PATH, dependencies=[reads_runs_of(dag) for dag in DAGS])


@router.get("")
def listed(
    request: Request,
    q: Annotated[str, Query()] = "",
    after: Annotated[str, Query()] = "",
    after_id: Annotated[str, Query()] = "",
) -> HTMLResponse:
    """List companies by name."""
    place_id = id_of(after_id, "page")
    with reading(request) as tx:
        page = sight.listed(tx, q, Place(after, place_id) if place_id else None)
    return render(
        request, "ecocomply_companies.html", page=page, search=q, first_page=place_id is None, path=PATH
    )


@router.get("/{company_id}")
def company(request: Request, company_id: uuid.UUID) -> HTMLResponse:
    """Show one company."""
    now = datetime.now(UTC)
    with reading(request) as tx:
        found = sight.detail(tx, company_id, now)
    if found is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"There is no company {company_id}.")
    return render(
        request,
        "ecocomply_company.html",
        company=found.row,
        parts=found.parts,
        most=sight.MOST,
        today=now.date(),
        queue=QUEUE,
        path=PATH,
    )
