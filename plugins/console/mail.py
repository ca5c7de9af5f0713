"""ClearPath's mail log: why each mail stands where it stands, and the message as it was claimed."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, status
from fastapi.responses import HTMLResponse
from sqlalchemy import Row

from console.guards import reads_runs_of
from console.rendering import day_of, id_of, one_of, render
from hooks.connections import UnknownConnection
from include.as_of import local_date
from include.clearpath import ZONE, console
from include.clearpath.console import MAIL_STATUSES, MAIL_TYPES, UNKNOWN, MailFilter, Place
from include.clearpath.mail_decisions import decisions
from include.errors import Transient
from include.platform.console import known_runs

DAG = "clearpath_email_queue_dispatch"
CONNECTION = "clearpath_db"
ALMANAC = "almanac_db"

# The message is a stranger's page: no script, no origin of its own, nothing fetched, nothing left by a click.
MESSAGE_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
    "frame-ancestors 'self'; base-uri 'none'"
)

router = APIRouter(prefix="/clearpath/mail", dependencies=[reads_runs_of(DAG)])

Text = Annotated[str, Query()]


@router.get("")
def mail_log(
    request: Request,
    q: Text = "",
    mail_status: Annotated[str, Query(alias="status")] = "",
    email_type: Annotated[str, Query(alias="type")] = "",
    due_from: Text = "",
    due_until: Text = "",
    after: Text = "",
    after_id: Text = "",
) -> HTMLResponse:
    """List the mail log, the latest due first."""
    now = datetime.now(UTC)
    if not request.query_params:
        # What is still to come would fill the first pages; the field shows that it is left out.
        due_until = local_date(now, ZONE).isoformat()
    wanted = MailFilter(
        search=q,
        status=one_of(mail_status, (*MAIL_STATUSES, UNKNOWN), "status"),
        email_type=email_type or None,
        due_from=day_of(due_from, "due from"),
        due_until=day_of(due_until, "due until"),
    )
    place_id = id_of(after_id, "page")
    with request.app.state.databases.read(CONNECTION) as tx:
        listed = console.mail_log(tx, wanted, now, Place(after, place_id) if place_id else None)
    return render(
        request,
        "mail.html",
        listed=listed,
        wanted=wanted,
        statuses=(*MAIL_STATUSES, UNKNOWN),
        types=MAIL_TYPES if email_type in ("", *MAIL_TYPES) else (*MAIL_TYPES, email_type),
        first_page=place_id is None,
        beyond_badge=_beyond_badge,
    )


@router.get("/{mail_id}")
def mail_detail(request: Request, mail_id: uuid.UUID) -> HTMLResponse:
    """Show one mail with every claim of it."""
    with request.app.state.databases.read(CONNECTION) as tx:
        found = console.mail_detail(tx, mail_id, datetime.now(UTC))
    if found is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"The mail log has no mail {mail_id}.")
    runs = {attempt.row.run_id for attempt in found.attempts}
    return render(
        request,
        "mail_detail.html",
        mail=found,
        dag=DAG,
        summaries=_summaries(request, runs),
        decisions=decisions(found.row),
        beyond_badge=_beyond_badge,
    )


def _beyond_badge(row: Row[Any], reason: str) -> str:
    """Return what a mail's sentence says beyond the word of its badge, which stands before it."""
    word = "outcome unknown" if row.outcome_unknown and row.status != "sent" else row.status
    return reason.removeprefix(word).lstrip(":; ") if reason.startswith(word) else reason


def _summaries(request: Request, run_ids: set[str]) -> set[str]:
    """Return which of these runs have a page; a platform's database that is down costs the links alone."""
    try:
        with request.app.state.databases.read(ALMANAC) as tx:
            return known_runs(tx, DAG, run_ids)
    except (Transient, UnknownConnection):
        return set()


@router.get("/{mail_id}/message/{batch_id}/{position}")
def mail_message(request: Request, mail_id: uuid.UUID, batch_id: uuid.UUID, position: int) -> HTMLResponse:
    """Give a message's HTML as it was stored, for a frame that may do nothing."""
    with request.app.state.databases.read(CONNECTION) as tx:
        message = console.mail_message(tx, mail_id, batch_id, position)
    if message is None or message.html is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"The mail {mail_id} has no such HTML message.")
    return HTMLResponse(message.html, headers={"content-security-policy": MESSAGE_POLICY})
