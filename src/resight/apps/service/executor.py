"""How many threads the libraries below may start for one piece of work, so that they do not multiply with ours.

Threads that search, and places for those who wait: work in, its result or a refusal out.

There are as many places as threads and waiting requests together. A request takes a place before anything is decoded
for it and keeps it until its thread is done, also when nobody waits for the answer any more: what is under way is
bounded, whatever arrives.
"""

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from fastapi import Request
from threadpoolctl import ThreadpoolController

from resight.apps.service.error_responses import Refusal

NICE = 10


def limit_threads(count: int = 1) -> None:
    """So many threads for BLAS and OpenMP in the thread that calls this, and for OpenCV and torch in the process.

    Searches run side by side; more threads below them than there are cores would wait for each other.
    """
    controller = ThreadpoolController()
    for api in ("blas", "openmp"):
        controller.limit(limits=count, user_api=api)
    if cv2 := sys.modules.get("cv2"):
        cv2.setNumThreads(count)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(count)


class Lending:
    """All cores for the sums of a search that runs alone.

    Of all libraries, BLAS alone takes another number of threads at no cost; OpenCV starts them anew.
    """

    def __init__(self, each: int, alone: int) -> None:
        """Threads of BLAS: `each` with none or several at work, `alone` with one."""
        self._each, self._alone = each, alone
        self._count, self._working = each, 0
        self._lock = threading.Lock()
        self._blas: ThreadpoolController | None = None

    @contextlib.contextmanager
    def work(self) -> Iterator[None]:
        self._change(1)
        try:
            yield
        finally:
            self._change(-1)

    def _change(self, difference: int) -> None:
        with self._lock:
            self._working += difference
            count = self._alone if self._working == 1 else self._each
            if count == self._count:
                return
            self._count = count
            if self._blas is None:  # the libraries are loaded by now
                self._blas = ThreadpoolController().select(user_api="blas")
            set_threads(self._blas, count)


def set_threads(blas: ThreadpoolController, count: int) -> None:
    """For the whole process, whichever thread calls this."""
    for library in blas.lib_controllers:
        if hasattr(library, "clear_controlling_thread"):  # it listens to one thread only: now to this one
            library.clear_controlling_thread(force=True)
        library.set_num_threads(count)


def step_back() -> None:
    """Let searches go first: what the calling thread does, and the threads that it starts, may take longer."""
    if sys.platform == "linux":  # elsewhere a priority is the whole process's
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


CLIENT_GONE = 499  # nobody reads it; logs and metrics do
FIRST_GUESS = 0.5  # seconds a search, before one has been timed
SMOOTHING = 0.1
Made = TypeVar("Made")


class WorkerPool:
    def __init__(self, workers: int, places: int, timeout: float, threads: int = 1, alone: int = 1) -> None:
        """`threads`: that the libraries may start for one search; `alone`: for one that no other runs beside."""
        self.workers = workers
        self.places = places
        self.timeout = timeout
        self.taken = 0  # places; read and written by the event loop's thread alone
        self.running = 0
        self._last_left = -float("inf")
        self._mean = FIRST_GUESS
        self._lending = Lending(threads, alone)
        self._threads = ThreadPoolExecutor(
            workers, thread_name_prefix="search", initializer=limit_threads, initargs=(threads,)
        )

    @contextlib.asynccontextmanager
    async def place(self, request: Request) -> AsyncIterator["Place"]:
        """A place for one request; a 429 where all are taken."""
        if self.taken >= self.places:
            raise Refusal(
                429,
                "too many searches at once",
                expected=f"at most {self.places} searches under way",
                actual="all places are taken",
                fix="try again after the seconds in Retry-After",
                retry_after=self.estimate_wait(),
            )
        self.taken += 1
        place = Place(self, request)
        try:
            yield place
        finally:
            place.leave()

    def estimate_wait(self) -> float:
        """Seconds until a place is likely to be free."""
        return max(1, self.taken - self.workers) * self._mean / self.workers

    def count_quiet(self) -> float:
        """Seconds since the last place was left; 0 while one is taken."""
        return 0.0 if self.taken else time.monotonic() - self._last_left

    def leave(self) -> None:
        """One place is free again."""
        self.taken -= 1
        self._last_left = time.monotonic()

    def submit(self, work: Callable[[], Made]) -> Future[Made]:
        def lent() -> Made:
            with self._lending.work():
                return work()

        return self._threads.submit(lent)

    def learn(self, seconds: float) -> None:
        self._mean += SMOOTHING * (seconds - self._mean)

    def close(self) -> None:
        """Leaves when what runs is done; what waits is dropped."""
        self._threads.shutdown(wait=True, cancel_futures=True)


class Place:
    """The right to work for one request, until its time is over or its client is gone."""

    def __init__(self, pool: WorkerPool, request: Request) -> None:
        self._pool = pool
        self._request = request
        self._end = time.monotonic() + pool.timeout
        self._flying: Future[object] | None = None

    @property
    def seconds_left(self) -> float:
        return self._end - time.monotonic()

    async def run(self, work: Callable[[], Made]) -> Made:
        """The result of `work`, done by a thread of the pool."""
        loop = asyncio.get_running_loop()

        def timed() -> Made:
            begin = time.monotonic()
            loop.call_soon_threadsafe(self._count, 1)
            try:
                return work()
            finally:
                loop.call_soon_threadsafe(self._count, -1)
                loop.call_soon_threadsafe(self._pool.learn, time.monotonic() - begin)

        future = self._pool.submit(timed)
        self._flying = future  # type: ignore[assignment]
        return await self.wait(asyncio.wrap_future(future))

    async def wait(self, coming: Awaitable[Made]) -> Made:
        """What is coming, unless the time is over or the client is gone before; what has not begun never does then."""
        task = asyncio.ensure_future(coming)
        gone = asyncio.ensure_future(_wait_until_gone(self._request))
        either: set[asyncio.Future[Any]] = {task, gone}
        try:
            await asyncio.wait(either, timeout=max(0.0, self.seconds_left), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if gone.done():
                raise Refusal(CLIENT_GONE, "the client is gone")
            raise self._refuse_time()
        finally:
            gone.cancel()
            task.cancel()

    def leave(self) -> None:
        """Give the place back, now or when its thread is done."""
        pool, loop = self._pool, asyncio.get_running_loop()
        if self._flying is None or self._flying.done():
            pool.leave()
        else:
            self._flying.add_done_callback(lambda _: loop.call_soon_threadsafe(pool.leave))

    def _count(self, change: int) -> None:
        self._pool.running += change

    def _refuse_time(self) -> Refusal:
        return Refusal(
            503,
            "the search took too long",
            expected=f"an answer within {self._pool.timeout:g} seconds",
            fix="try again after the seconds in Retry-After",
            retry_after=self._pool.estimate_wait(),
        )


async def _wait_until_gone(request: Request) -> None:
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return
