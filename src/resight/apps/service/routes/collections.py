"""What is served, and what there is to filter by: /api/collections and below."""

from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request

from resight.apps.service import schemas
from resight.apps.service.serializers import Json, Plain, tell_positions, tell_summary
from resight.apps.service.state import Service
from resight.data.image_files import SUFFIXES

MOST_POSITIONS = 20_000
Name = Annotated[str | None, Query(max_length=500, description="A collection by name; without, the first.")]


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api/collections", tags=["collections"])

    @routes.get("", response_model=list[schemas.CollectionInfo])
    async def list_collections(request: Request) -> Json:
        """The first is meant where a request names none. `writable`: whether this caller may change it."""
        may_write = request.state.caller.may_write
        return Json(
            await run_sync(lambda: [_tell_collection(name, service, may_write) for name in service.collections])
        )

    @routes.get("/attributes", response_model=schemas.Attributes)
    async def list_attributes(collection: Name = None) -> Json:
        """Names, kinds and the most common values, for filters."""
        _, chosen = service.find_collection(collection)
        told = await run_sync(lambda: [tell_summary(summary) for summary in chosen.view().attributes()])
        return Json({"attributes": told})

    @routes.get("/positions", response_model=schemas.PositionList)
    async def list_positions(collection: Name = None) -> Json:
        """Where images were taken; at most 20,000 of them, `cut` says whether there are more."""
        _, chosen = service.find_collection(collection)
        return Json(await run_sync(lambda: tell_positions(chosen.view().positions(), MOST_POSITIONS)))

    return routes


def _tell_collection(name: str, service: Service, may_write: bool) -> Plain:
    collection = service.collections[name]
    view = collection.view()
    return {
        "name": name,
        "images": len(view),
        "recipe": collection.recipe.name,
        "encoders": list(dict.fromkeys(branch.encoder.name for branch in collection.recipe.branches)),
        "positions": len(view.positions()) > 0,
        "reads": sorted(SUFFIXES),
        "writable": may_write,
    }
