"""The served collections, their filterable attributes and positions: /api/collections and below."""

from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request

from resight.apps.service import schemas
from resight.apps.service.serializers import (
    AsciiJSONResponse,
    JsonObject,
    serialize_craters,
    serialize_positions,
    serialize_summary,
)
from resight.apps.service.state import Service
from resight.data.formats import SUFFIXES

MAX_POSITIONS = 20_000
MAX_CRATERS = 30_000
Name = Annotated[str | None, Query(max_length=500, description="A collection by name; by default the first.")]


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api/collections", tags=["collections"])

    @routes.get("", response_model=list[schemas.CollectionInfo])
    async def list_collections(request: Request) -> AsciiJSONResponse:
        """The first is the default of other requests. `writable`: whether this caller may change it."""
        writable = request.state.caller.may_write
        return AsciiJSONResponse(
            await run_sync(lambda: [_serialize_collection(name, service, writable) for name in service.collections])
        )

    @routes.get("/attributes", response_model=schemas.Attributes)
    async def list_attributes(collection: Name = None) -> AsciiJSONResponse:
        """Names, kinds and the most common values, for filters."""
        _, chosen = service.find_collection(collection)
        attributes = await run_sync(lambda: [serialize_summary(summary) for summary in chosen.view().attributes()])
        return AsciiJSONResponse({"attributes": attributes})

    @routes.get("/positions", response_model=schemas.PositionList)
    async def list_positions(collection: Name = None) -> AsciiJSONResponse:
        """Where images were taken: at most 20,000; `cut` is true when there are more."""
        _, chosen = service.find_collection(collection)
        return AsciiJSONResponse(await run_sync(lambda: serialize_positions(chosen.view().positions(), MAX_POSITIONS)))

    @routes.get("/craters", response_model=schemas.CraterList)
    async def list_craters(collection: Name = None) -> AsciiJSONResponse:
        """Where craters lie on their globe: at most 30,000, the largest; `cut` is true when there are more."""
        _, chosen = service.find_collection(collection)
        edges = service.settings.mosaic_bounds
        return AsciiJSONResponse(await run_sync(lambda: serialize_craters(chosen.view().craters(), MAX_CRATERS, edges)))

    return routes


def _serialize_collection(name: str, service: Service, writable: bool) -> JsonObject:
    collection = service.collections[name]
    view = collection.view()
    return {
        "name": name,
        "images": len(view),
        "recipe": collection.recipe.name,
        "encoders": list(dict.fromkeys(branch.encoder.name for branch in collection.recipe.branches)),
        "positions": len(view.positions()) > 0,
        "craters": len(view.craters()) > 0,
        "reads": sorted(SUFFIXES),
        "writable": writable,
    }
