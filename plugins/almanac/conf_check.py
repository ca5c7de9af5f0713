"""Airflow's API takes any key in a run's conf, and any date; what the DAG can't use is refused before it is a run."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from almanac.params import check_conf, check_logical_date, check_values
from include.errors import BadInput

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Airflow may be served beneath a path of its own, which then stands in front.
_TRIGGER = re.compile(r"(?:/.*)?/api/v2/dags/(?P<dag_id>[^/]+)/dagRuns/?")
_BACKFILL = re.compile(r"(?:/.*)?/api/v2/backfills(?:/dry_run)?/?")
_MOST_BYTES = 1_000_000


class ConfCheck:
    """ASGI middleware: a 400 for an unknown param, a value that it does not take, or a date that is to come.

    Only a caller who may trigger the DAG gets that answer; everybody else gets Airflow's own.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or not _asks_for_runs(scope["path"]):
            await self._app(scope, receive, send)
            return
        messages, body = await _read(receive)
        if len(body) > _MOST_BYTES:
            # To everybody alike, whoever asks.
            too_large = {"detail": f"the request is larger than {_MOST_BYTES} bytes"}
            await JSONResponse(too_large, status_code=413)(scope, receive, send)
            return
        refusal = await _refusal(scope, body)
        if refusal is not None:
            await JSONResponse({"detail": refusal}, status_code=400)(scope, receive, send)
            return
        await self._app(scope, _replay(messages, receive), send)


def _asks_for_runs(path: str) -> bool:
    return bool(_TRIGGER.fullmatch(path) or _BACKFILL.fullmatch(path))


async def _read(receive: Receive) -> tuple[list[Message], bytes]:
    messages: list[Message] = []
    body = b""
    while True:
        message = await receive()
        messages.append(message)
        body += message.get("body", b"")
        if not message.get("more_body") or len(body) > _MOST_BYTES:
            return messages, body


def _replay(messages: list[Message], receive: Receive) -> Receive:
    waiting = iter(messages)

    async def replayed() -> Message:
        for message in waiting:
            return message
        return await receive()

    return replayed


async def _refusal(  # noqa: PLR0911 - each return is a reason to let Airflow answer
    scope: Scope, body: bytes
) -> str | None:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(asked, dict):
        return None
    trigger = _TRIGGER.fullmatch(scope["path"])
    dag_id = trigger["dag_id"] if trigger else asked.get("dag_id")
    conf = asked.get("conf" if trigger else "dag_run_conf") or {}
    logical_date = _instant(asked.get("logical_date")) if trigger else None
    if not isinstance(dag_id, str) or not isinstance(conf, dict) or not (conf or logical_date):
        return None
    if not await _may_trigger(scope, dag_id):
        return None
    known = await run_in_threadpool(_params_of, dag_id)
    if known is None:
        return None
    now = datetime.now(UTC)
    try:
        check_conf(conf, known, now)
        check_values(conf, known)
        if logical_date is not None:
            check_logical_date(logical_date, now)
    except BadInput as error:
        return str(error)
    return None


def _instant(given: Any) -> datetime | None:
    """Read an instant as Airflow does; None if there is none, or one that Airflow refuses by itself."""
    from pydantic import AwareDatetime, TypeAdapter, ValidationError  # noqa: PLC0415 - not at parse time

    try:
        return TypeAdapter(AwareDatetime).validate_python(given)
    except ValidationError:
        return None


async def _may_trigger(scope: Scope, dag_id: str) -> bool:
    from airflow.api_fastapi.app import get_auth_manager  # noqa: PLC0415 - only the API server has it
    from airflow.api_fastapi.auth.managers.base_auth_manager import COOKIE_NAME_JWT_TOKEN  # noqa: PLC0415
    from airflow.api_fastapi.auth.managers.models.resource_details import (  # noqa: PLC0415 - as above
        DagAccessEntity,
        DagDetails,
    )
    from airflow.api_fastapi.core_api.security import resolve_user_from_token  # noqa: PLC0415 - as above
    from fastapi import HTTPException  # noqa: PLC0415 - as above
    from starlette.requests import Request  # noqa: PLC0415 - as above

    request = Request(scope)
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    token = bearer if scheme.lower() == "bearer" else request.cookies.get(COOKIE_NAME_JWT_TOKEN)
    try:
        user = await resolve_user_from_token(token)
    except HTTPException:
        return False
    return get_auth_manager().is_authorized_dag(
        method="POST", access_entity=DagAccessEntity.RUN, details=DagDetails(id=dag_id), user=user
    )


def _params_of(dag_id: str) -> dict[str, dict[str, Any]] | None:
    """Return the schemas of a DAG's params by name, or None for a DAG that is not known."""
    from airflow.models.serialized_dag import SerializedDagModel  # noqa: PLC0415 - only the API server may ask
    from airflow.utils.session import create_session  # noqa: PLC0415 - as above

    with create_session() as session:
        stored: Any = SerializedDagModel.get(dag_id, session=session)
        if stored is None:
            return None
        return {name: stored.dag.params.get_param(name).schema for name in stored.dag.params}
