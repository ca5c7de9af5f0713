"""EcoComply's job API as a web app."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from sqlalchemy import URL

from console.app import Headers
from console.databases import Databases
from console.guards import readable_address
from console.json_problems import answer_as_json
from ecocomply_api import jobs
from ecocomply_api.status_feed import StatusFeed
from hooks.connections import access
from hooks.postgres import url_of


def create_app(databases: Databases | None = None, listen: Callable[[], URL] | None = None) -> FastAPI:
    """Return the app; the databases, and where to listen, are Airflow's connections unless a test brings its own."""
    opened = databases or Databases()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        opened.close()

    # FastAPI's own schema and docs pages would be routes without a login.
    app = FastAPI(
        title="EcoComply job API",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(readable_address)],
        lifespan=lifespan,
    )
    app.state.databases = opened
    app.state.feed = StatusFeed(listen or (lambda: url_of(access(jobs.LISTEN_CONNECTION))))
    app.include_router(jobs.router)
    app.add_middleware(Headers)
    answer_as_json(app)
    return app
