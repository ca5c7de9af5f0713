"""ClearPath's certificates: how they stand, a fresh PDF to download, another rendering on request."""

from __future__ import annotations

import logging
import uuid
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from airflow.api.common.trigger_dag import trigger_dag
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.api_fastapi.logging.decorators import action_logging
from airflow.exceptions import AirflowException
from airflow.utils.types import DagRunTriggeredByType
from fastapi import APIRouter, Depends, HTTPException, Query, Request, status
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from console.files import CLEARPATH_STORAGE
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
from hooks.storage import storage
from include.clearpath import ZONE, certificate_rendering, console
from include.clearpath.console import CERTIFICATE_FILTERS, Place
from include.run import Run

DAG = "clearpath_certificate_rendering"
CONNECTION = "clearpath_db"
LINK_LIFETIME = timedelta(minutes=5)

_CHOICES = (
    ("valid", "valid"),
    ("expired", "expired"),
    ("without_pdf", "without a PDF"),
    ("failed", "rendering failed"),
)

log = logging.getLogger(__name__)

router = APIRouter(prefix="/clearpath/certificates", dependencies=[reads_runs_of(DAG)])


@router.get("")
def certificates(
    request: Request,
    user: GetUserDep,
    may_regenerate: Annotated[bool, Depends(may_trigger(DAG))],
    q: Annotated[str, Query()] = "",
    show: Annotated[str, Query()] = "",
    after: Annotated[str, Query()] = "",
    after_id: Annotated[str, Query()] = "",
    asked: Annotated[str, Query()] = "",
) -> HTMLResponse:
    """List certificates, the latest issued first."""
    place_id = id_of(after_id, "page")
    shown = one_of(show, CERTIFICATE_FILTERS, "show")
    with request.app.state.databases.read(CONNECTION) as tx:
        listed = console.certificates(tx, q, shown, Place(after, place_id) if place_id else None)
    session = request.cookies.get(SESSION_COOKIE) or new_session()
    return render(
        request,
        "certificates.html",
        session=session,
        listed=console.Listed(
            [(row, console.pdf_state(row)) for row in listed.rows], listed.next, listed.note
        ),
        search=q,
        shown=shown,
        choices=_CHOICES,
        asked=bool(asked),
        first_page=place_id is None,
        may_regenerate=may_regenerate,
        form_token=form_token(session, user),
        dag=DAG,
    )


@router.get("/{certificate_id}/download")
def download(request: Request, certificate_id: uuid.UUID) -> Response:
    """Answer with a short-lived link to the PDF, made anew where the certificate asks for that.

    A browser is sent on; who accepts JSON alone gets `{"url", "expires_in"}`, in seconds. A rendering
    that fails is logged, and the link is then to the PDF as it was.
    """
    with request.app.state.databases.read(CONNECTION) as tx:
        row = console.certificate(tx, certificate_id)
    if row is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"There is no certificate {certificate_id}.")
    name = _fresh(request, certificate_id) or row.current_pdf_path or row.pdf_path
    if name is None:
        raise HTTPException(
            status.HTTP_404_NOT_FOUND,
            f"Certificate {row.certificate_number or certificate_id} has no PDF, and none could be made now. "
            "The list of certificates says why.",
        )
    url = storage(CLEARPATH_STORAGE).signed_url(
        name, LINK_LIFETIME, f"{row.certificate_number or certificate_id}.pdf"
    )
    accepts = request.headers.get("accept", "")
    if "application/json" in accepts and "text/html" not in accepts:
        return JSONResponse({"url": url, "expires_in": int(LINK_LIFETIME.total_seconds())})
    return RedirectResponse(url, status.HTTP_303_SEE_OTHER)


@router.post(
    "/{certificate_id}/regenerate",
    dependencies=[triggers(DAG), Depends(meant), Depends(action_logging("console_regenerate_certificate"))],
)
def regenerate(request: Request, certificate_id: uuid.UUID, user: GetUserDep) -> Response:
    """Trigger the rendering of one certificate, in the user's name."""
    with request.app.state.databases.read(CONNECTION) as tx:
        if console.certificate(tx, certificate_id) is None:
            raise HTTPException(status.HTTP_404_NOT_FOUND, f"There is no certificate {certificate_id}.")
    try:
        run = trigger_dag(
            DAG,
            triggered_by=DagRunTriggeredByType.UI,
            triggering_user_name=user.get_name(),
            conf={"certificate_id": str(certificate_id)},
        )
    except (AirflowException, ValueError) as error:
        raise HTTPException(status.HTTP_409_CONFLICT, f"{DAG} can't be triggered: {error}") from error
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse({"dag_id": DAG, "run_id": run.run_id if run else None}, status.HTTP_202_ACCEPTED)
    back = f"{request.scope.get('root_path', '')}/clearpath/certificates?asked=1&q={certificate_id}"
    return RedirectResponse(back, status.HTTP_303_SEE_OTHER)


def _fresh(request: Request, certificate_id: uuid.UUID) -> str | None:
    """Return the file to give, or None if making it failed."""
    now = datetime.now(UTC)
    run = Run(
        job=certificate_rendering.NAME,
        run_id=f"download__{now.isoformat()}",
        as_of=now,
        zone=ZONE,
        db=request.app.state.databases.writable(CONNECTION),
        params={"certificate_id": str(certificate_id)},
        log=log,
    )
    try:
        return certificate_rendering.fresh_pdf(run, _outside(), certificate_id)
    except Exception:
        log.exception("certificate %s: no fresh PDF, the old one is given", certificate_id)
        return None


def _outside() -> Any:
    from hooks.certificate_pdf import certificate_printer  # noqa: PLC0415 - typst is slow to load

    return certificate_rendering.Outside(certificate_printer(), storage(CLEARPATH_STORAGE))
