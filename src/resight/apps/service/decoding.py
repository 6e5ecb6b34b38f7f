"""Processes that decode: bytes that nobody trusts in, a Picture, a small WebP of it, or an ImageError out.

A decoder that crashes, hangs or takes too much memory is killed and replaced; only its image is refused. Each is
spoken to by one thread, over its standard input and output (see decoder.py for the messages).
"""

import asyncio
import contextlib
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from resight.apps.service import decode_worker
from resight.apps.service.decode_worker import Order
from resight.apps.service.error_responses import Refusal
from resight.apps.service.subprocess_env import choose_environment
from resight.errors import ImageError
from resight.types import ImageRef, Picture

LIMIT_SECONDS = 20.0  # for one image
LIFETIME = 2000  # images, after which a decoder is replaced: whatever leaks stays small
WAITING = 64  # a decoder
PIPE = 2**20  # bytes: an image passes in a few turns
Made = TypeVar("Made")


@dataclass(frozen=True)
class Upload:
    """An image that came from outside, decoded."""

    picture: Picture
    small: bytes | None = None  # WebP (JPEG where metadata was to be kept)


class DecoderPool:
    def __init__(self, count: int, max_pixels: int, seconds: float = LIMIT_SECONDS) -> None:
        self.count = count
        self.max_pixels = max_pixels
        self.replaced = 0  # decoders that had to be killed
        self.waiting = 0  # read and written by the event loop's thread alone
        self.seconds = seconds
        self._idle: queue.SimpleQueue[Decoder | None] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="decode")
        for _ in range(count):
            self._idle.put(None)

    def start(self) -> None:
        """Start the processes now, so that the first image need not wait for one."""
        decoders = [self._idle.get() or Decoder(self.max_pixels) for _ in range(self.count)]
        for one in decoders:
            self._idle.put(one)

    async def decode(self, data: bytes, name: str, *, max_side: int | None = None, small_side: int = 0) -> Upload:
        """The picture, its longer side reduced to `max_side`, and with `small_side` a WebP of that size."""
        return await self.run(lambda one: one.decode(data, Order(name, max_side, small_side)))

    async def shrink(self, read: Callable[[], bytes], name: str, side: int, keep_metadata: bool = False) -> bytes:
        """The image re-encoded, its longer side at most `side`; `read` gives its bytes when its turn has come."""
        order = Order(name, 0, side, keep_metadata)
        upload = await self.run(lambda one: one.decode(read(), order))
        assert upload.small is not None
        return upload.small

    async def run(self, work: Callable[["Decoder"], Made]) -> Made:
        if self.waiting >= self.count * WAITING:
            raise Refusal(429, "too many images at once", fix="try again", retry_after=1)
        self.waiting += 1
        try:
            return await asyncio.wrap_future(self._threads.submit(self._use, work))
        finally:
            self.waiting -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        while not self._idle.empty():
            if one := self._idle.get():
                one.discard()

    def _use(self, work: Callable[["Decoder"], Made]) -> Made:
        one = self._idle.get() or Decoder(self.max_pixels)
        alarm = threading.Timer(self.seconds, one.stop)
        alarm.start()
        try:
            return work(one)
        finally:
            alarm.cancel()
            if one.is_spent:
                one.discard()
                self.replaced += one.failed
            self._idle.put(None if one.is_spent else one)


class Decoder:
    """One process."""

    def __init__(self, max_pixels: int) -> None:
        self.failed = False
        self._done = 0
        self._max_pixels = max_pixels
        self._process = subprocess.Popen(
            [sys.executable, "-m", decode_worker.__name__, str(max_pixels)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=choose_environment(),  # one thread: each more would take address space that is limited
            pipesize=PIPE,
            start_new_session=True,  # an interrupt from the terminal is for the service alone
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_spent(self) -> bool:
        return self.failed or self._done >= LIFETIME or self._process.poll() is not None

    def decode(self, data: bytes, order: Order) -> Upload:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._done += 1
        try:
            decode_worker.send(self._process.stdin, asdict(order), data)
            header, body = decode_worker.receive(self._process.stdout)
        except (OSError, EOFError, ValueError) as error:
            self.failed = True
            raise ImageError(
                f"cannot read {order.name}: decoding it took too much time or memory",
                expected=f"an image of at most {self._max_pixels:,} pixels that decodes within seconds",
                fix="export it again as JPEG or PNG",
            ) from error
        if "problem" in header:
            raise ImageError(**header)
        pixels, small = decode_worker.split_body(header, body)
        ref = ImageRef(order.name, Path(order.name), attributes=header["attributes"])
        width, height = header["size"]
        return Upload(Picture(ref, pixels, (width, height), header["sha256"], len(data)), small or None)

    def stop(self) -> None:
        """Whoever reads from it gets the end of the stream."""
        self._process.kill()

    def discard(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what was still to be written is lost with the process
                if pipe is not None:
                    pipe.close()
        self._process.wait()
