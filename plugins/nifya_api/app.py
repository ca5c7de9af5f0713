"""NIFYA's admin API as a web app: routes, errors as JSON, and its description in OpenAPI."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from fastapi import Depends, FastAPI, Request, status
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse

from console.app import Headers
from console.databases import Databases
from console.guards import readable_address
from console.json_problems import answer_as_json
from include.nifya.admin_jobs import Conflict, Job, JobChange, JobPage, NewJob, NoSuchJob
from nifya_api import jobs

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
    answer_as_json(app, {NoSuchJob: status.HTTP_404_NOT_FOUND, Conflict: status.HTTP_409_CONFLICT})
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
