"""Searches: /api/search, /api/search/stages (the shortlist first) and /api/why."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from resight.apps.service import schemas
from resight.apps.service import search as asking
from resight.apps.service.error_responses import describe, takes, to_refusal
from resight.apps.service.executor import Place
from resight.apps.service.search import Asked, SearchFields, WhyFields, read_question
from resight.apps.service.serializers import Json, Plain
from resight.apps.service.state import Service

MULTIPART = "multipart/form-data"
LINES = "application/x-ndjson"
SLOWEST = 30.0  # seconds that a client may take to read a stream, beyond those of the search


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api", tags=["search"], dependencies=[Depends(takes(MULTIPART))])

    @routes.post("/search", response_model=schemas.SearchAnswer)
    async def search(request: Request, fields: Annotated[SearchFields, Form(media_type=MULTIPART)]) -> Json:
        """The images that show the same thing: where it is in them, and how sure that is."""
        name, _ = service.find_collection(fields.collection)
        question = await read_question(fields, name)
        async with service.pool.place(request) as place:
            asked = await asking.decode(service, place, question, fields.thumbnail)
            return Json(await place.run(lambda: asking.search(asked, service, fields.explain)))

    @routes.post("/search/stages", response_class=Response, responses={200: {"content": {LINES: {}}}})
    async def search_in_stages(
        request: Request, fields: Annotated[SearchFields, Form(media_type=MULTIPART)]
    ) -> Response:
        """One JSON object a line, as soon as it is known: `event` is query, shortlist, answer or error."""
        name, _ = service.find_collection(fields.collection)
        question = await read_question(fields, name)
        async with AsyncExitStack() as stack:
            place = await stack.enter_async_context(service.pool.place(request))
            asked = await asking.decode(service, place, question, fields.thumbnail)
            return LineStream(stack.pop_all(), place, asked, service, fields.explain)

    @routes.post("/why", response_model=schemas.Why)
    async def explain(request: Request, fields: Annotated[WhyFields, Form(media_type=MULTIPART)]) -> Json:
        """Why `hit` is among the answers to the same search: matches, heat maps and scores."""
        name, _ = service.find_collection(fields.collection)
        question = await read_question(fields, name)
        async with service.pool.place(request) as place:
            return Json(await asking.explain(service, place, question, fields.hit))

    return routes


class LineStream(Response):
    """The stages of a search, sent as they come.

    It owns the place that it works in, and leaves it when the search is done, however slowly its client reads.
    """

    def __init__(self, stack: AsyncExitStack, place: Place, asked: Asked, service: Service, explain: bool) -> None:
        super().__init__(media_type=LINES)
        del self.headers["content-length"]
        self._stack = stack
        self._place = place
        self._asked = asked
        self._service = service
        self._explain = explain

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        lines: asyncio.Queue[Plain | None] = asyncio.Queue()
        searching = asyncio.create_task(self._search(lines))
        async with asyncio.timeout(self._place.seconds_left + SLOWEST):
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while (line := await lines.get()) is not None:
                await send(_pack(line))
            await send({"type": "http.response.body", "body": b""})
        await searching

    async def _search(self, lines: asyncio.Queue[Plain | None]) -> None:
        loop = asyncio.get_running_loop()

        def work() -> None:
            for line in asking.search_in_stages(self._asked, self._service, self._explain):
                loop.call_soon_threadsafe(lines.put_nowait, line)

        try:
            async with self._stack:
                await self._place.run(work)
        except Exception as error:  # the status has been sent: what went wrong is the last line
            lines.put_nowait({"event": "error", "error": describe(to_refusal(error))})
        finally:
            lines.put_nowait(None)


def _pack(line: Plain) -> dict[str, Any]:
    text = json.dumps(line, allow_nan=False, separators=(",", ":"))
    return {"type": "http.response.body", "body": text.encode("ascii") + b"\n", "more_body": True}
