"""NIFYA's admin API as a web app: routes, errors as JSON, and its description in OpenAPI."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from fastapi import Depends, FastAPI, Request, status
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException

from console.app import Headers
from console.databases import Databases
from console.guards import readable_address
from hooks.connections import UnknownConnection
from include.errors import BadInput, Transient
from include.nifya.admin_jobs import Conflict, Job, JobChange, JobPage, NewJob, NoSuchJob
from include.run import row_error
from nifya_api import jobs

log = logging.getLogger(__name__)

TITLE, VERSION = "NIFYA admin API", "1"
_REF = "#/components/schemas/{name}"


def create_app(databases: Databases | None = None) -> FastAPI:
    """Return the app; `databases` are Airflow's connections unless a test brings its own."""
    opened = databases or Databases()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        opened.close()

    # FastAPI's own schema and docs pages would be routes without a login; ours is one with.
    app = FastAPI(
        title=TITLE,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(readable_address)],
        lifespan=lifespan,
    )
    app.state.databases = opened
    app.include_router(jobs.router)

    @app.get("/api/admin/openapi.json", dependencies=[jobs.READERS], include_in_schema=False)
    def openapi(request: Request) -> JSONResponse:
        """Give the API's description, its server's address as the caller sees it."""
        return JSONResponse(
            description(app) | {"servers": [{"url": request.scope.get("root_path", "") or "/"}]}
        )

    app.add_middleware(Headers)
    handlers: dict[type[Exception], Callable[..., Any]] = {
        HTTPException: _http_error,
        RequestValidationError: _bad_parameter,
        BadInput: _answer(status.HTTP_422_UNPROCESSABLE_CONTENT),
        NoSuchJob: _answer(status.HTTP_404_NOT_FOUND),
        Conflict: _answer(status.HTTP_409_CONFLICT),
        UnknownConnection: _out_of_reach,
        Transient: _out_of_reach,
        PoolTimeout: _out_of_reach,
        DBAPIError: _refused_value,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    return app


def description(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, with the bodies' forms as the code reads and writes them."""
    found = get_openapi(title=TITLE, version=VERSION, routes=app.routes)
    (new_job, *_), components = msgspec.json.schema_components(
        [NewJob, JobChange, Job, JobPage], ref_template=_REF
    )
    problem = {
        "type": "object",
        "properties": {"detail": {"type": "string", "description": "What is wrong, and with which value"}},
        "required": ["detail"],
    }
    found["components"] = {"schemas": {**components, "NewJob": new_job, "Problem": problem}}
    return found


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
    log.warning("admin API: %s could not be answered: %s", request.url.path, error)
    return _problem(status.HTTP_503_SERVICE_UNAVAILABLE, "The database can't be reached now; try again.")


def _refused_value(request: Request, error: DBAPIError) -> Response:
    log.warning("admin API: %s: the database refused a value: %s", request.url.path, row_error(error))
    return _problem(status.HTTP_422_UNPROCESSABLE_CONTENT, "The database can't take one of these values.")


def _problem(code: int, detail: str) -> Response:
    return JSONResponse({"detail": detail}, code)
