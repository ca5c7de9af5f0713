"""The console's web app, which Airflow's API server mounts under /almanac."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI, HTTPException, Request, status
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from console import (
    alerts,
    arcvest_jobs,
    certificates,
    ecocomply_links,
    files,
    lab,
    mail,
    nifya_jobs,
    queues,
    runs,
    static,
    unsubscribe,
)
from console.databases import STATEMENT_TIMEOUT_SECONDS, Databases
from console.ecocomply import companies, compliance, dead_letters, jobs, notifications, risk
from console.guards import readable_address
from console.rendering import render
from hooks.connections import UnknownConnection
from include.errors import BadInput, Transient
from include.run import row_error, sqlstate

log = logging.getLogger(__name__)

# Nothing but our own style sheet and our own script, and nobody else's page around it.
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; frame-src 'self'; "
    "form-action 'self'; frame-ancestors 'self'; base-uri 'none'"
)
_STATEMENT_TIMEOUT = "57014"
_HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

# What a person made of an address, in our words rather than the library's.
_WORDS = {"uuid_parsing": "is no id", "uuid_type": "is no id", "int_parsing": "is no whole number"}
_LONGEST_SHOWN = 100

_TITLES = {
    401: "You are not signed in",
    403: "This is not for your role",
    404: "There is no such page",
    410: "This link has expired",
    422: "That does not work",
    503: "This can't be shown now",
}


def create_app(databases: Databases | None = None) -> FastAPI:
    """Return the app; `databases` are Airflow's connections unless a test brings its own."""
    opened = databases or Databases()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        opened.close()

    # No schema and no docs pages: they would be routes without a login.
    app = FastAPI(
        title="Almanac console",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(readable_address)],
        lifespan=lifespan,
    )
    app.state.databases = opened
    for part in (
        runs,
        queues,
        alerts,
        mail,
        certificates,
        lab,
        arcvest_jobs,
        nifya_jobs,
        jobs,
        dead_letters,
        notifications,
        compliance,
        risk,
        companies,
        static,
        files,
        unsubscribe,
        ecocomply_links,
    ):
        app.include_router(part.router)
    app.add_middleware(Headers)
    handlers: dict[type[Exception], Callable[..., Any]] = {
        StarletteHTTPException: _http_error,
        RequestValidationError: _bad_address,
        BadInput: _bad_input,
        UnknownConnection: _out_of_reach,
        Transient: _out_of_reach,
        PoolTimeout: _no_connection_free,
        DBAPIError: _refused_value,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    return app


class Headers:
    """Adds the security headers to every answer that has not set its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in _HEADERS.items()
                        if name.encode() not in present
                    ),
                ]
            await send(message)

        await self._app(scope, receive, with_headers)


def _http_error(request: Request, error: HTTPException) -> Response:
    return _problem(request, error.status_code, str(error.detail), error.headers)


def _bad_address(request: Request, error: RequestValidationError) -> Response:
    wrong = error.errors()[0]
    where = ".".join(str(part) for part in wrong["loc"][1:])
    said = _WORDS.get(wrong["type"], wrong["msg"])
    value = wrong.get("input")
    what = (
        f"{value[:_LONGEST_SHOWN]!r} {said}" if isinstance(value, str) and wrong["type"] in _WORDS else said
    )
    return _problem(request, status.HTTP_422_UNPROCESSABLE_CONTENT, f"{where.replace('_', ' ')}: {what}")


def _bad_input(request: Request, error: BadInput) -> Response:
    return _problem(request, status.HTTP_422_UNPROCESSABLE_CONTENT, str(error))


def _out_of_reach(request: Request, error: Exception) -> Response:
    log.warning("console: %s could not be answered: %s", request.url.path, error)
    cause, words = error.__cause__, str(error)
    if isinstance(cause, DBAPIError) and sqlstate(cause) == _STATEMENT_TIMEOUT:
        words = f"This took longer than {STATEMENT_TIMEOUT_SECONDS} seconds and was stopped. Narrow it down."
    return _problem(request, status.HTTP_503_SERVICE_UNAVAILABLE, words)


def _no_connection_free(request: Request, error: PoolTimeout) -> Response:
    log.warning("console: %s could not be answered: %s", request.url.path, error)
    return _problem(request, status.HTTP_503_SERVICE_UNAVAILABLE, "Too many pages are being read at once.")


def _refused_value(request: Request, error: DBAPIError) -> Response:
    # A filter's value that a column can't be compared with, as a word outside of an enum.
    log.warning("console: %s: the database refused a value: %s", request.url.path, row_error(error))
    return _problem(
        request, status.HTTP_422_UNPROCESSABLE_CONTENT, "The database can't take one of these values."
    )


def _problem(request: Request, code: int, detail: str, headers: Any = None) -> Response:
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"detail": detail}, code, headers)
    return render(
        request, "problem.html", code, code=code, title=_TITLES.get(code, "That did not work"), detail=detail
    )
