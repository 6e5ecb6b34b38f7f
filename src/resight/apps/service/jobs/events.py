"""How far a job is, as server-sent events: `progress` whenever it has changed, at last `done`.

The journal is read again and again while somebody listens, so it does not matter which process does the work.
"""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio

from resight.apps.service.error_responses import Refusal
from resight.apps.service.jobs.models import Job
from resight.apps.service.jobs.store import Journal

LOOK_EVERY = 0.25  # seconds
SIGN_OF_LIFE = 10.0  # seconds without news after which a comment is sent
MOST = 64  # listeners of a process


class Listeners:
    """Those of one process; used by the event loop's thread alone."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._count = 0

    def check_room(self) -> None:
        if self._count >= self._most:
            raise Refusal(
                429,
                "too many listen already",
                expected=f"at most {self._most} listeners",
                fix="ask for the job itself now and then",
                retry_after=5,
            )

    async def follow(self, journal: Journal, job: Job, is_over: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
        """The text of the events, until the job is done or `is_over` says that nobody listens any more."""
        self._count += 1
        try:
            async for text in _follow(journal, job, is_over):
                yield text
        finally:
            self._count -= 1


async def _follow(journal: Journal, job: Job, is_over: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
    yield _write("progress", job)
    said = time.monotonic()
    while not job.is_over:
        await anyio.sleep(LOOK_EVERY)
        latest = await anyio.to_thread.run_sync(journal.find, job.id)
        if latest is None or await is_over():
            return
        if latest != job or time.monotonic() - said >= SIGN_OF_LIFE:
            yield _write("progress", latest) if latest != job else ": still here\n\n"
            said = time.monotonic()
        job = latest
    yield _write("done", job)


def _write(event: str, job: Job) -> str:
    return f"event: {event}\ndata: {json.dumps(job.describe())}\n\n"
