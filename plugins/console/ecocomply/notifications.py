"""EcoComply's notifications: who was told what and by which channel, and why each was sent or was not."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, status
from fastapi.responses import HTMLResponse
from sqlalchemy import Row

from console.ecocomply.reading import ALMANAC, reading, summaries
from console.guards import ReadableDags, reads_runs_of
from console.mail import MESSAGE_POLICY
from console.rendering import id_of, one_of, render
from hooks.connections import UnknownConnection
from include.ecocomply.console import notifications as sight
from include.ecocomply.console.listing import Place
from include.ecocomply.console.notifications import UNKNOWN, NotificationFilter
from include.ecocomply.notification_reasons import NOT_MADE
from include.ecocomply.tables.notifications import CHANNELS, NOTIFICATION_STATUSES
from include.errors import Transient
from include.platform.console import counted

DAG = "ecocomply_notification_delivery"
DIGESTS = ("ecocomply_digest_delivery_daily", "ecocomply_digest_delivery_weekly")
SYSTEM = "ecocomply_"
PATH = "/ecocomply/notifications"
LOOKED_BACK = timedelta(days=1)

router = APIRouter(prefix=PATH, dependencies=[reads_runs_of(DAG)])

Text = Annotated[str, Query()]


def wanted(
    q: Text = "",
    company: Text = "",
    notification_type: Annotated[str, Query(alias="type")] = "",
    channel: Text = "",
    notification_status: Annotated[str, Query(alias="status")] = "",
) -> NotificationFilter:
    """Read the filter of an address. Raises BadInput."""
    return NotificationFilter(
        search=q,
        company=company,
        notification_type=notification_type or None,
        channel=one_of(channel, CHANNELS, "channel"),
        status=one_of(notification_status, (*NOTIFICATION_STATUSES, UNKNOWN), "status"),
    )


@router.get("")
def notification_log(
    request: Request,
    dags: ReadableDags,
    wanted: Annotated[NotificationFilter, Depends(wanted)],
    after: Text = "",
    after_id: Text = "",
) -> HTMLResponse:
    """List the notifications, the latest first."""
    place_id = id_of(after_id, "page")
    now = datetime.now(UTC)
    with reading(request) as tx:
        page = sight.log(tx, wanted, now, Place(after, place_id) if place_id else None)
    types = sight.types()
    return render(
        request,
        "ecocomply_notifications.html",
        page=page,
        wanted=wanted,
        types=types if wanted.notification_type in (None, *types) else [*types, wanted.notification_type],
        channels=CHANNELS,
        statuses=(*NOTIFICATION_STATUSES, UNKNOWN),
        not_made=_not_made(request, dags, now) if place_id is None else [],
        first_page=place_id is None,
        path=PATH,
        dag=DAG,
    )


@router.get("/{notification_id}")
def notification(request: Request, notification_id: uuid.UUID) -> HTMLResponse:
    """Show one notification with every claim of it, or of the digest that it stands in."""
    with reading(request) as tx:
        found = sight.detail(tx, notification_id, datetime.now(UTC))
    if found is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"There is no notification {notification_id}.")
    runs = {attempt.row.run_id for attempt in found.attempts}
    return render(
        request,
        "ecocomply_notification.html",
        notification=found,
        runs={run: dag for dag in (*DIGESTS, DAG) for run in summaries(request, dag, runs)} if runs else {},
        path=PATH,
        dag=DAG,
    )


@router.get("/{notification_id}/message/{batch_id}/{position}")
def message(request: Request, notification_id: uuid.UUID, batch_id: uuid.UUID, position: int) -> HTMLResponse:
    """Give a message's HTML as it was stored, for a frame that may do nothing."""
    with reading(request) as tx:
        found = sight.message(tx, notification_id, batch_id, position)
    if found is None or found.html is None:
        raise HTTPException(
            status.HTTP_404_NOT_FOUND, f"The notification {notification_id} has no such HTML message."
        )
    return HTMLResponse(found.html, headers={"content-security-policy": MESSAGE_POLICY})


def _not_made(request: Request, dags: set[str], now: datetime) -> Sequence[tuple[Row[Any], str]]:
    """Return what runs of a day left no notification of, each with its reason; nothing without the platform's books."""
    ours = {dag for dag in dags if dag.startswith(SYSTEM)}
    try:
        with request.app.state.databases.read(ALMANAC) as tx:
            rows = counted(tx, ours, NOT_MADE, now - LOOKED_BACK)
    except (Transient, UnknownConnection):
        return []
    return [(row, NOT_MADE[row.name]) for row in rows]
