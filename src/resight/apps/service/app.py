"""`create_app(settings)`: the routes, and around them what every request passes through."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import metadata

from anyio.to_thread import run_sync
from fastapi import Depends, FastAPI
from fastapi.middleware.cors import CORSMiddleware

from resight.apps.service import error_responses
from resight.apps.service.auth import Guard
from resight.apps.service.middleware import BodyLimit, FormLimit, Tracing
from resight.apps.service.routes import (
    collections,
    health,
    images,
    images_write,
    page,
    reports,
    reviews,
    search,
    session,
    trainings,
)
from resight.apps.service.settings import ServiceSettings
from resight.apps.service.state import Service

ROUTES = (health, collections, images, search, images_write, session, reports, trainings, reviews, page)
UPLOADS = 32  # requests with a form that may be under way beside searches
DESCRIPTION = "Find the very same thing in other images, see where it is, and know how sure the answer is."


def create_app(settings: ServiceSettings) -> FastAPI:
    service = Service(settings)

    @asynccontextmanager
    async def live(_: FastAPI) -> AsyncIterator[None]:
        await run_sync(service.start)
        try:
            yield
        finally:
            await run_sync(service.stop)

    app = FastAPI(
        title="resight",
        version=metadata.version("resight"),
        description=DESCRIPTION,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=live,
        dependencies=[Depends(error_responses.check_parameters)],
        responses=error_responses.DOCUMENTED,
    )
    app.state.service = service
    error_responses.install_refusals(app)
    error_responses.install(app)
    for module in ROUTES:
        app.include_router(module.router(service))
    # The last one added is the outermost.
    app.add_middleware(FormLimit, at_once=settings.places + UPLOADS)
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(BodyLimit, most=settings.max_upload_bytes)
    app.add_middleware(Tracing, metrics=service.metrics, log=settings.log)
    if settings.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["Authorization", "X-API-Key", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After"],
        )
    app.openapi()  # made now: requests are held to it
    return app
