"""Progress of a job as server-sent events: `progress` after each change, and `done` at the end.

The stream polls the store, so that any process may do the work.
"""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio

from resight.apps.service.error_responses import ApiError
from resight.apps.service.jobs.models import Job
from resight.apps.service.jobs.store import JobStore

INTERVAL = 0.25  # seconds between two polls
HEARTBEAT = 10.0  # seconds without news after which a comment is sent
MAX_STREAMS = 64  # per process


class EventStreams:
    """The open streams of one process. Only the event loop's thread uses it."""

    def __init__(self, limit: int = MAX_STREAMS) -> None:
        self._limit = limit
        self._count = 0

    def check_limit(self) -> None:
        if self._count >= self._limit:
            raise ApiError(
                429,
                "too many event streams",
                expected=f"at most {self._limit} streams",
                fix="poll the job instead",
                retry_after=5,
            )

    async def follow(self, store: JobStore, job: Job, is_over: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
        """The text of the events, until the job is done or `is_over` returns true."""
        self._count += 1
        try:
            async for text in _follow(store, job, is_over):
                yield text
        finally:
            self._count -= 1


async def _follow(store: JobStore, job: Job, is_over: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
    yield _format("progress", job)
    last_sent = time.monotonic()
    while not job.is_over:
        await anyio.sleep(INTERVAL)
        latest = await anyio.to_thread.run_sync(store.find, job.id)
        if latest is None or await is_over():
            return
        if latest != job or time.monotonic() - last_sent >= HEARTBEAT:
            yield _format("progress", latest) if latest != job else ": still here\n\n"
            last_sent = time.monotonic()
        job = latest
    yield _format("done", job)


def _format(event: str, job: Job) -> str:
    return f"event: {event}\ndata: {json.dumps(job.serialize())}\n\n"
