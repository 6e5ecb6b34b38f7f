"""Threads that search: work in, its result or an ApiError out.

There are as many slots as threads and waiting requests together. A request takes a slot before the service decodes its
image, and holds it until its thread is done, even when its client has gone: the work in progress is bounded, whatever
arrives. The second half limits the threads that libraries start below each search.
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

from resight.apps.service.error_responses import ApiError

CLIENT_GONE = 499  # for logs and metrics; the client no longer reads it
FIRST_GUESS = 0.5  # seconds per search, before one has been timed
SMOOTHING = 0.1
NICE = 10
Result = TypeVar("Result")


class SearchExecutor:
    def __init__(self, workers: int, slots: int, timeout: float, threads: int = 1, alone: int = 1) -> None:
        """`threads`: library threads per search; `alone`: the same for a search that runs alone."""
        self.workers = workers
        self.slots = slots
        self.timeout = timeout
        self.occupied = 0  # slots; only the event loop's thread writes it
        self.running = 0
        self._last_release = -float("inf")
        self._mean = FIRST_GUESS
        self._blas = BlasThreads(threads, alone)
        self._threads = ThreadPoolExecutor(
            workers, thread_name_prefix="search", initializer=limit_threads, initargs=(threads,)
        )

    @contextlib.asynccontextmanager
    async def slot(self, request: Request) -> AsyncIterator["Slot"]:
        """A slot for one request; a 429 where all are occupied."""
        if self.occupied >= self.slots:
            raise ApiError(
                429,
                "too many searches at once",
                expected=f"at most {self.slots} searches at once",
                actual="all slots are occupied",
                fix="try again after the seconds in Retry-After",
                retry_after=self.estimate_wait(),
            )
        self.occupied += 1
        slot = Slot(self, request)
        try:
            yield slot
        finally:
            slot.release()

    @property
    def waiting(self) -> int:
        return max(0, self.occupied - self.running)

    def estimate_wait(self) -> float:
        """Seconds until a slot is likely to be free."""
        return max(1, self.occupied - self.workers) * self._mean / self.workers

    def count_idle_seconds(self) -> float:
        """Seconds since the last slot was released; 0 while one is occupied."""
        return 0.0 if self.occupied else time.monotonic() - self._last_release

    def release_slot(self) -> None:
        self.occupied -= 1
        self._last_release = time.monotonic()

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        def run() -> Result:
            with self._blas.work():
                return work()

        return self._threads.submit(run)

    def record_duration(self, seconds: float) -> None:
        self._mean += SMOOTHING * (seconds - self._mean)

    def close(self) -> None:
        """Waits for running work; cancels queued work."""
        self._threads.shutdown(wait=True, cancel_futures=True)


class Slot:
    """Runs work for one request, until its time is over or its client has gone."""

    def __init__(self, executor: SearchExecutor, request: Request) -> None:
        self._executor = executor
        self._request = request
        self._end = time.monotonic() + executor.timeout
        self._running: Future[object] | None = None

    @property
    def seconds_left(self) -> float:
        return self._end - time.monotonic()

    async def run(self, work: Callable[[], Result]) -> Result:
        """The result of `work`, which runs in a thread of the executor."""
        loop = asyncio.get_running_loop()

        def timed() -> Result:
            begin = time.monotonic()
            loop.call_soon_threadsafe(self._count, 1)
            try:
                return work()
            finally:
                loop.call_soon_threadsafe(self._count, -1)
                loop.call_soon_threadsafe(self._executor.record_duration, time.monotonic() - begin)

        future = self._executor.submit(timed)
        self._running = future  # type: ignore[assignment]
        return await self.wait(asyncio.wrap_future(future))

    async def wait(self, coming: Awaitable[Result]) -> Result:
        """The result of `coming`, unless the time is over or the client gone first; it is then cancelled."""
        task = asyncio.ensure_future(coming)
        gone = asyncio.ensure_future(_wait_for_disconnect(self._request))
        either: set[asyncio.Future[Any]] = {task, gone}
        try:
            await asyncio.wait(either, timeout=max(0.0, self.seconds_left), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if gone.done():
                raise ApiError(CLIENT_GONE, "the client has disconnected")
            raise self._time_out()
        finally:
            gone.cancel()
            task.cancel()

    def release(self) -> None:
        """Release the slot, now or when its thread is done."""
        executor, loop = self._executor, asyncio.get_running_loop()
        if self._running is None or self._running.done():
            executor.release_slot()
        else:
            self._running.add_done_callback(lambda _: loop.call_soon_threadsafe(executor.release_slot))

    def _count(self, change: int) -> None:
        self._executor.running += change

    def _time_out(self) -> ApiError:
        return ApiError(
            503,
            "the search took too long",
            expected=f"an answer within {self._executor.timeout:g} seconds",
            fix="try again after the seconds in Retry-After",
            retry_after=self._executor.estimate_wait(),
        )


class BlasThreads:
    """All cores for the BLAS of a search that runs alone.

    Only BLAS changes its number of threads at no cost; OpenCV would restart its threads.
    """

    def __init__(self, each: int, alone: int) -> None:
        """Threads of BLAS: `alone` while one search runs, else `each`."""
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
            if self._blas is None:  # only now are the libraries loaded
                self._blas = ThreadpoolController().select(user_api="blas")
            set_blas_threads(self._blas, count)


def set_blas_threads(blas: ThreadpoolController, count: int) -> None:
    """Set the number for the whole process, whichever thread calls this."""
    for library in blas.lib_controllers:
        if hasattr(library, "clear_controlling_thread"):  # it obeys one thread only: from now on this one
            library.clear_controlling_thread(force=True)
        library.set_num_threads(count)


def limit_threads(count: int = 1) -> None:
    """Limit BLAS and OpenMP in the calling thread, and OpenCV and torch in the process, to `count` threads.

    Searches run in parallel; more library threads than cores would wait for each other.
    """
    controller = ThreadpoolController()
    for api in ("blas", "openmp"):
        controller.limit(limits=count, user_api=api)
    if cv2 := sys.modules.get("cv2"):
        cv2.setNumThreads(count)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(count)


def lower_priority() -> None:
    """Let searches go first: lower the priority of the calling thread and of the threads that it starts."""
    if sys.platform == "linux":  # elsewhere a priority belongs to the whole process
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


async def _wait_for_disconnect(request: Request) -> None:
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return
