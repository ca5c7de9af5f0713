"""What goes wrong with a request, as JSON: for APIs, where the console shows pages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, status
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException

from hooks.connections import UnknownConnection
from include.errors import BadInput, Transient
from include.run import row_error

log = logging.getLogger(__name__)


def answer_as_json(app: FastAPI, more: dict[type[Exception], int] | None = None) -> None:
    """Let an app answer `{"detail": …}` to every error that it knows; `more` are its own, with their status."""
    handlers: dict[type[Exception], Callable[..., Any]] = {
        HTTPException: _http_error,
        RequestValidationError: _bad_parameter,
        BadInput: _answer(status.HTTP_422_UNPROCESSABLE_CONTENT),
        UnknownConnection: _out_of_reach,
        Transient: _out_of_reach,
        PoolTimeout: _out_of_reach,
        DBAPIError: _refused_value,
        **{kind: _answer(code) for kind, code in (more or {}).items()},
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


def _answer(code: int) -> Callable[[Request, Exception], Response]:
    def handler(_: Request, error: Exception) -> Response:
        return _problem(code, str(error))

    return handler


def _http_error(_: Request, error: HTTPException) -> Response:
    return JSONResponse({"detail": str(error.detail)}, error.status_code, error.headers)


def _bad_parameter(_: Request, error: RequestValidationError) -> Response:
    wrong = error.errors()[0]
    where = ".".join(str(part) for part in wrong["loc"][1:])
    return _problem(status.HTTP_422_UNPROCESSABLE_CONTENT, f"{where}: {wrong['msg']}")


def _out_of_reach(request: Request, error: Exception) -> Response:
    log.warning("API: %s could not be answered: %s", request.url.path, error)
    return _problem(status.HTTP_503_SERVICE_UNAVAILABLE, "The database can't be reached now; try again.")


def _refused_value(request: Request, error: DBAPIError) -> Response:
    log.warning("API: %s: the database refused a value: %s", request.url.path, row_error(error))
    return _problem(status.HTTP_422_UNPROCESSABLE_CONTENT, "The database can't take one of these values.")


def _problem(code: int, detail: str) -> Response:
    return JSONResponse({"detail": detail}, code)
