"""The images of a collection: /api/images (a page of them), /api/image (one) and /api/image/file (its pixels)."""

from typing import Annotated, Literal

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from resight.apps.service import schemas
from resight.apps.service.error_responses import not_found
from resight.apps.service.routes.collections import Name
from resight.apps.service.search import MAX_ID
from resight.apps.service.serializers import AsciiJSONResponse, JsonObject, serialize_record
from resight.apps.service.state import Service
from resight.apps.service.thumbnails import SIDES, make_etag, round_up_side
from resight.collection import Collection
from resight.search.filters import parse
from resight.search.request import parse_near
from resight.store import ImageRecord

Id = Annotated[str, Query(max_length=MAX_ID, description="The id of an image.")]
Where = Annotated[
    list[Annotated[str, Query(max_length=500)]] | None,
    Query(max_length=20, description="Only images that meet these conditions.", examples=[["year>=1900"]]),
]
Near = Annotated[str | None, Query(max_length=200, description="latitude,longitude,metres", examples=["48.9,2.3,500"])]
UNCHANGED = {"Cache-Control": "private, no-cache"}


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api", tags=["images"])

    @routes.get("/images", response_model=schemas.ImagePage)
    async def list_images(
        where: Where = None,
        near: Near = None,
        after: Annotated[str | None, Query(max_length=MAX_ID, description="`next` of the previous page.")] = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 60,
        collection: Name = None,
    ) -> AsciiJSONResponse:
        """In the order of their ids."""
        name, chosen = service.find_collection(collection)
        filters = parse(where or (), parse_near(near, "near"))

        def work() -> JsonObject:
            view = chosen.view()
            ids, following, total = service.paginators[name].page(view, filters, after, limit)
            records = (
                [serialize_record(record, service.settings.show_paths) for record in view.records(ids)] if ids else []
            )
            return {"images": records, "next": following, "total": total}

        return AsciiJSONResponse(await run_sync(work))

    @routes.get("/image", response_model=schemas.Record)
    async def read_image(id: Id, collection: Name = None) -> AsciiJSONResponse:
        _, chosen = service.find_collection(collection)
        return AsciiJSONResponse(serialize_record(await find_record(chosen, id), service.settings.show_paths))

    @routes.get(
        "/image/file", response_class=Response, responses={200: {"content": {"image/webp": {}, "image/jpeg": {}}}}
    )
    async def read_image_file(
        request: Request,
        id: Id,
        side: Annotated[int, Query(ge=1, le=100_000, description=f"Longer side, rounded up to one of {SIDES}.")] = 640,
        metadata: Annotated[
            Literal["strip", "keep"], Query(description="`keep`: a JPEG with the EXIF block.")
        ] = "strip",
        collection: Name = None,
    ) -> Response:
        """The image re-encoded, by default without metadata."""
        name, chosen = service.find_collection(collection)
        record = await find_record(chosen, id)
        size, keep = round_up_side(side), metadata == "keep"
        headers = {"ETag": make_etag(record, size, keep), **UNCHANGED}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        data = await service.thumbnails[name].read(record, size, service.decode_pool, keep)
        return Response(data, media_type="image/jpeg" if keep else "image/webp", headers=headers)

    return routes


async def find_record(collection: Collection, id: str) -> ImageRecord:
    """The record of an image, or a 404."""
    record = await run_sync(lambda: collection.view().find(id))
    if record is None:
        raise not_found("image", id[:80])
    return record
