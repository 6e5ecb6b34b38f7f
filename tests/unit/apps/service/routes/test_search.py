"""Searches that are sent line by line, and clients that do not read them."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any, cast

import pytest
from fastapi import Request
from starlette.types import Message

from resight.apps.service import search
from resight.apps.service.executor import SearchExecutor
from resight.apps.service.routes import search as search_route
from resight.apps.service.routes.search import LineStream

LINES = [{"event": "query"}, {"event": "shortlist"}, {"event": "answer"}]


async def stay() -> Message:
    await asyncio.sleep(60)
    raise AssertionError


async def begin(pool: SearchExecutor) -> LineStream:
    """A stream that has taken a slot."""
    async with AsyncExitStack() as stack:
        slot = await stack.enter_async_context(pool.slot(Request({"type": "http"}, stay)))
        nothing = cast(Any, None)
        return LineStream(stack.pop_all(), slot, nothing, nothing, False)


def give_lines(*_: Any) -> Iterator[dict[str, str]]:
    yield from LINES


def fail_after_one(*_: Any) -> Iterator[dict[str, str]]:
    yield LINES[0]
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("found", "events"), [(give_lines, ["query", "shortlist", "answer"]), (fail_after_one, ["query", "error"])]
)
def test_lines_come_in_order_and_an_error_is_the_last(
    monkeypatch: pytest.MonkeyPatch, found: Any, events: list[str]
) -> None:
    monkeypatch.setattr(search, "search_in_stages", found)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def read_all() -> int:
        pool = SearchExecutor(1, 1, timeout=30)
        await (await begin(pool))({}, stay, send)
        return pool.occupied

    assert asyncio.run(read_all()) == 0
    lines = b"".join(message.get("body", b"") for message in sent).splitlines()
    assert [json.loads(line)["event"] for line in lines] == events


def test_a_client_that_does_not_read_keeps_no_slot_and_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "search_in_stages", give_lines)
    monkeypatch.setattr(search_route, "READ_SECONDS", 0.0)

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            await asyncio.sleep(60)

    async def watch() -> bool:
        pool = SearchExecutor(1, 1, timeout=2)
        streaming = asyncio.create_task((await begin(pool))({}, stay, send))
        while pool.occupied and not streaming.done():
            await asyncio.sleep(0.01)
        still_sending = not streaming.done()
        with pytest.raises(TimeoutError):
            await streaming
        return still_sending

    assert asyncio.run(watch()), "the slot was free while the client had not read a line"
