"""The service's sandbox: untrusted image bytes in, a Picture, a thumbnail or an ImageError out.

Every image that the service reads is decoded here and only here: queries, uploads, and files of stored images.
`resight.data.sandbox` protects and replaces the processes; this module lets requests wait for them without blocking the
event loop, and turns away those that would wait too long.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from resight.apps.service.error_responses import ApiError
from resight.data import image_files
from resight.data.sandbox.decode_worker import DecodeRequest
from resight.data.sandbox.processes import Limits, Sandbox
from resight.types import ImageRef, Picture

log = logging.getLogger("resight.service")
TIMEOUT = 8.0  # seconds per image: a client has an answer within ten
WAITING = 64  # requests per process
Result = TypeVar("Result")


@dataclass(frozen=True)
class DecodedImage:
    picture: Picture
    thumbnail: bytes | None = None  # WebP, or JPEG where metadata is kept


class DecodePool:
    def __init__(self, count: int, max_pixels: int, timeout: float = TIMEOUT) -> None:
        self.count = count
        self.waiting = 0  # only the event loop's thread reads and writes it
        self._sandbox = Sandbox(count, Limits(timeout, pixels=max_pixels))
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="decode")

    @property
    def replaced(self) -> int:
        """Processes that had to be killed."""
        return self._sandbox.replaced

    @property
    def protections(self) -> tuple[str, ...]:
        """The names of the protections that hold in the processes; empty before `start`."""
        return self._sandbox.protections

    @property
    def timeout(self) -> float:
        return self._sandbox.limits.seconds

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._sandbox.limits = replace(self._sandbox.limits, seconds=seconds)

    def start(self) -> None:
        """Start the processes now, so that the first image need not wait for one."""
        self._sandbox.start(self.count)
        log.info("images are decoded in %d processes; protections: %s", self.count, ", ".join(self.protections))

    async def decode(
        self, data: bytes, name: str, *, max_side: int | None = None, thumbnail_side: int = 0
    ) -> DecodedImage:
        """The picture, its longer side reduced to `max_side`, and with `thumbnail_side` a WebP of that size."""
        request = DecodeRequest(name, max_side, thumbnail_side=thumbnail_side)

        def work() -> DecodedImage:
            decoded, thumbnail = self._sandbox.run(data, request)
            return DecodedImage(image_files.assemble(name, data, decoded), thumbnail or None)

        return await self._run(work)

    async def make_thumbnail(
        self, read: Callable[[], bytes], name: str, side: int, keep_metadata: bool = False
    ) -> bytes:
        """The image re-encoded, its longer side at most `side`; `read` returns its bytes once a thread is free."""
        request = DecodeRequest(name, 0, thumbnail_side=side, keep_metadata=keep_metadata)
        return await self._run(lambda: self._sandbox.run(read(), request)[1])

    def read(self, ref: ImageRef, max_side: int | None = None) -> Picture:
        """The image file of `ref`, for any thread: `image_files.read`, with the decoding in the sandbox."""
        return image_files.read(ref, max_side, within=self._sandbox)

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._sandbox.close()

    async def _run(self, work: Callable[[], Result]) -> Result:
        if self.waiting >= self.count * WAITING:
            raise ApiError(429, "too many images at once", fix="try again", retry_after=1)
        self.waiting += 1
        try:
            return await asyncio.wrap_future(self._threads.submit(work))
        finally:
            self.waiting -= 1
