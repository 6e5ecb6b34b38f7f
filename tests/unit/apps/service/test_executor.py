"""The pool of searching threads, with work that waits for the test."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
from fastapi import Request

from resight.apps.service.error_responses import ApiError
from resight.apps.service.executor import CLIENT_GONE, SearchExecutor


class Client:
    """Stands for a request whose client leaves when told."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def receive(self) -> dict[str, str]:
        await self.gone.wait()
        return {"type": "http.disconnect"}


async def ask(executor: SearchExecutor, work: Callable[[], Any], client: Client | None = None) -> Any:
    async with executor.slot(cast(Request, client or Client())) as slot:
        return await slot.run(work)


def run(test: Callable[[SearchExecutor], Coroutine[Any, Any, None]], executor: SearchExecutor) -> None:
    try:
        asyncio.run(test(executor))
    finally:
        executor.close()


def test_work_gives_its_result_or_its_error() -> None:
    async def test(executor: SearchExecutor) -> None:
        assert await ask(executor, lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await ask(executor, lambda: 1 // 0)
        assert executor.occupied == 0

    run(test, SearchExecutor(1, 1, timeout=5))


def test_beyond_its_slots_the_pool_refuses_with_a_time_to_come_back() -> None:
    async def test(executor: SearchExecutor) -> None:
        go = threading.Event()
        busy = [asyncio.ensure_future(ask(executor, go.wait)) for _ in range(3)]
        await asyncio.sleep(0.05)
        with pytest.raises(ApiError) as caught:
            await ask(executor, lambda: 0)
        assert caught.value.status == 429
        assert int(caught.value.headers["Retry-After"]) >= 1
        go.set()
        assert await asyncio.gather(*busy) == [True, True, True]
        assert await ask(executor, lambda: 7) == 7  # it recovers by itself

    run(test, SearchExecutor(1, 3, timeout=5))


def test_work_that_takes_too_long_is_left_but_keeps_its_slot_until_it_is_done() -> None:
    async def test(executor: SearchExecutor) -> None:
        go = threading.Event()
        with pytest.raises(ApiError) as caught:
            await ask(executor, go.wait)
        assert caught.value.status == 503
        assert executor.occupied == 1
        with pytest.raises(ApiError) as second:
            await ask(executor, lambda: 0)
        assert second.value.status == 429
        go.set()
        for _ in range(100):
            if not executor.occupied:
                break
            await asyncio.sleep(0.01)
        assert executor.occupied == 0

    run(test, SearchExecutor(1, 1, timeout=0.1))


def test_work_of_a_client_that_left_while_it_waited_is_never_begun() -> None:
    async def test(executor: SearchExecutor) -> None:
        go, begun, client = threading.Event(), threading.Event(), Client()
        first = asyncio.ensure_future(ask(executor, go.wait))
        second = asyncio.ensure_future(ask(executor, begun.set, client))
        await asyncio.sleep(0.05)
        client.gone.set()
        with pytest.raises(ApiError) as caught:
            await second
        assert caught.value.status == CLIENT_GONE
        go.set()
        assert await first
        assert await ask(executor, lambda: 7) == 7  # after the one that left, in the same thread
        assert not begun.is_set()

    run(test, SearchExecutor(1, 2, timeout=5))


def test_the_time_to_come_back_grows_with_those_who_wait() -> None:
    executor = SearchExecutor(2, 10, timeout=5)
    for _ in range(100):
        executor.record_duration(1.0)
    executor.occupied = 10
    assert executor.estimate_wait() == pytest.approx(8 * 1.0 / 2, rel=0.01)
    executor.close()
