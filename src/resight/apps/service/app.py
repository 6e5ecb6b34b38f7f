"""`create_app(settings)`: the routes, and the middleware that every request passes through."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import metadata

from anyio.to_thread import run_sync
from fastapi import Depends, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from resight.apps.service import error_responses, openapi
from resight.apps.service.auth import AuthMiddleware
from resight.apps.service.body_limit import BodyLimit, FormLimit
from resight.apps.service.request_logging import RequestLogging
from resight.apps.service.routes import (
    collections,
    health,
    images,
    images_write,
    mosaic,
    page,
    quarantine,
    reports,
    reviews,
    search,
    session,
    trainings,
)
from resight.apps.service.settings import ServiceSettings
from resight.apps.service.state import Service

ROUTES = (
    *(health, collections, mosaic, images, search, images_write, quarantine, session),
    *(reports, trainings, reviews, page),
)
UPLOADS = 32  # form requests at once, in addition to searches
DESCRIPTION = "Find the same object in other images, see where it is, and how sure the answer is."


def create_app(settings: ServiceSettings) -> FastAPI:
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
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
        lifespan=lifespan,
        dependencies=[Depends(error_responses.reject_unknown_parameters)],
        responses=error_responses.DOCUMENTED,
        generate_unique_id_function=openapi.name_operation,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    app.state.service = service
    error_responses.install_error_handlers(app)
    for module in ROUTES:
        app.include_router(module.router(service))
    # The last one added is the outermost.
    app.add_middleware(FormLimit, at_once=settings.slots + UPLOADS)
    app.add_middleware(AuthMiddleware, settings=settings, guard=service.key_guard)
    app.add_middleware(BodyLimit, max_bytes=settings.max_upload_bytes)
    app.add_middleware(RequestLogging, metrics=service.metrics, log=settings.log)
    if settings.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["Authorization", "X-API-Key", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After"],
        )
    if settings.trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(settings.trusted_proxies))
    # Built now: requests are validated against it.
    app.openapi_schema = openapi.complete(app.openapi(), needs_key=bool(settings.keys))
    return app
