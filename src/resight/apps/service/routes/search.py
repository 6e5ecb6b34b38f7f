"""Searches: /api/search, /api/search/stages (the shortlist first) and /api/why."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from resight.apps.service import schemas
from resight.apps.service import search as searches
from resight.apps.service.error_responses import require_content_type, serialize_error, to_api_error
from resight.apps.service.executor import Slot
from resight.apps.service.search import DecodedSearch, SearchFields, WhyFields, read_form
from resight.apps.service.serializers import AsciiJSONResponse, JsonObject
from resight.apps.service.state import Service

MULTIPART = "multipart/form-data"
LINES = "application/x-ndjson"
READ_SECONDS = 30.0  # that a client may take to read a stream, after the search's own time limit


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api", tags=["search"], dependencies=[Depends(require_content_type(MULTIPART))])

    @routes.post("/search", response_model=schemas.SearchAnswer)
    async def search(
        request: Request, fields: Annotated[SearchFields, Form(media_type=MULTIPART)]
    ) -> AsciiJSONResponse:
        """The images that show the same object, its location in them, and how sure each hit is."""
        name, _ = service.find_collection(fields.collection)
        form = await read_form(fields, name)
        async with service.executor.slot(request) as slot:
            decoded = await searches.decode(service, slot, form, fields.thumbnail)
            return AsciiJSONResponse(await slot.run(lambda: searches.search(decoded, service, fields.explain)))

    @routes.post("/search/stages", response_class=Response, responses={200: {"content": {LINES: {}}}})
    async def search_in_stages(
        request: Request, fields: Annotated[SearchFields, Form(media_type=MULTIPART)]
    ) -> Response:
        """One JSON object per line, as soon as it is known: `event` is query, shortlist, answer or error."""
        name, _ = service.find_collection(fields.collection)
        form = await read_form(fields, name)
        async with AsyncExitStack() as stack:
            slot = await stack.enter_async_context(service.executor.slot(request))
            decoded = await searches.decode(service, slot, form, fields.thumbnail)
            return LineStream(stack.pop_all(), slot, decoded, service, fields.explain)

    @routes.post("/why", response_model=schemas.Why)
    async def explain(request: Request, fields: Annotated[WhyFields, Form(media_type=MULTIPART)]) -> AsciiJSONResponse:
        """Why `hit` is among the hits of the same search: matches, heat maps and scores."""
        name, _ = service.find_collection(fields.collection)
        form = await read_form(fields, name)
        async with service.executor.slot(request) as slot:
            return AsciiJSONResponse(await searches.explain(service, slot, form, fields.hit))

    return routes


class LineStream(Response):
    """The stages of a search, each sent as soon as it is ready.

    It owns the slot of its search, and releases it when the search is done, however slowly the client reads.
    """

    def __init__(
        self, stack: AsyncExitStack, slot: Slot, decoded: DecodedSearch, service: Service, explain: bool
    ) -> None:
        super().__init__(media_type=LINES)
        del self.headers["content-length"]
        self._stack = stack
        self._slot = slot
        self._decoded = decoded
        self._service = service
        self._explain = explain

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        lines: asyncio.Queue[JsonObject | None] = asyncio.Queue()
        searching = asyncio.create_task(self._search(lines))
        async with asyncio.timeout(self._slot.seconds_left + READ_SECONDS):
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while (line := await lines.get()) is not None:
                await send(_pack(line))
            await send({"type": "http.response.body", "body": b""})
        await searching

    async def _search(self, lines: asyncio.Queue[JsonObject | None]) -> None:
        loop = asyncio.get_running_loop()

        def work() -> None:
            for line in searches.search_in_stages(self._decoded, self._service, self._explain):
                loop.call_soon_threadsafe(lines.put_nowait, line)

        try:
            async with self._stack:
                await self._slot.run(work)
        except Exception as error:  # the status is already sent: the last line reports the error
            lines.put_nowait({"event": "error", "error": serialize_error(to_api_error(error))})
        finally:
            lines.put_nowait(None)


def _pack(line: JsonObject) -> dict[str, Any]:
    text = json.dumps(line, allow_nan=False, separators=(",", ":"))
    return {"type": "http.response.body", "body": text.encode("ascii") + b"\n", "more_body": True}
