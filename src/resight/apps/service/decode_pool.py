"""Sandboxed decoding: untrusted image bytes in, a Picture, a thumbnail or an ImageError out.

Every image that the service reads is decoded here and only here: queries, uploads, and files of stored images. A decode
process that crashes, hangs or exceeds its memory is killed and replaced; only its image is rejected. One thread at a
time talks to each process, over standard input and output (`decode_worker` defines the messages).
"""

import asyncio
import contextlib
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

from resight.apps.service import decode_worker
from resight.apps.service.decode_worker import DecodeRequest
from resight.apps.service.error_responses import ApiError
from resight.apps.service.settings import make_subprocess_env
from resight.data import image_files
from resight.errors import ImageError
from resight.types import ImageRef, Picture

TIMEOUT = 20.0  # seconds per image
LIFETIME = 2000  # images, after which a process is replaced: a memory leak stays small
WAITING = 64  # requests per process
PIPE = 2**20  # bytes: an image needs few system calls
Result = TypeVar("Result")


@dataclass(frozen=True)
class DecodedImage:
    picture: Picture
    thumbnail: bytes | None = None  # WebP, or JPEG where metadata is kept


class DecodePool:
    def __init__(self, count: int, max_pixels: int, timeout: float = TIMEOUT) -> None:
        self.count = count
        self.max_pixels = max_pixels
        self.replaced = 0  # processes that had to be killed
        self.waiting = 0  # only the event loop's thread reads and writes it
        self.timeout = timeout
        self._idle: queue.SimpleQueue[DecodeProcess | None] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="decode")
        for _ in range(count):
            self._idle.put(None)

    def start(self) -> None:
        """Start the processes now, so that the first image need not wait for one."""
        processes = [self._idle.get() or DecodeProcess(self.max_pixels) for _ in range(self.count)]
        for process in processes:
            self._idle.put(process)

    async def decode(
        self, data: bytes, name: str, *, max_side: int | None = None, thumbnail_side: int = 0
    ) -> DecodedImage:
        """The picture, its longer side reduced to `max_side`, and with `thumbnail_side` a WebP of that size."""
        return await self.run(lambda process: process.decode(data, DecodeRequest(name, max_side, thumbnail_side)))

    async def make_thumbnail(
        self, read: Callable[[], bytes], name: str, side: int, keep_metadata: bool = False
    ) -> bytes:
        """The image re-encoded, its longer side at most `side`; `read` returns its bytes once a process is free."""
        request = DecodeRequest(name, 0, side, keep_metadata)
        decoded = await self.run(lambda process: process.decode(read(), request))
        assert decoded.thumbnail is not None
        return decoded.thumbnail

    def read(self, ref: ImageRef, max_side: int | None = None) -> Picture:
        """The image file of `ref`, for any thread: `image_files.read`, with the decoding in the sandbox."""
        data, modified_ns = image_files.read_file(ref.path)
        request = DecodeRequest(str(ref.path), max_side, known=tuple(ref.unsaid.union(ref.attributes)))
        decoded: DecodedImage = self._threads.submit(self._use, lambda process: process.decode(data, request)).result()
        found = decoded.picture.ref.attributes
        own = replace(ref, attributes={**ref.attributes, **found})
        return replace(decoded.picture, ref=own, modified_ns=modified_ns)

    async def run(self, work: Callable[["DecodeProcess"], Result]) -> Result:
        if self.waiting >= self.count * WAITING:
            raise ApiError(429, "too many images at once", fix="try again", retry_after=1)
        self.waiting += 1
        try:
            return await asyncio.wrap_future(self._threads.submit(self._use, work))
        finally:
            self.waiting -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        while not self._idle.empty():
            if process := self._idle.get():
                process.discard()

    def _use(self, work: Callable[["DecodeProcess"], Result]) -> Result:
        process = self._idle.get() or DecodeProcess(self.max_pixels)
        alarm = threading.Timer(self.timeout, process.kill)
        alarm.start()
        try:
            return work(process)
        finally:
            alarm.cancel()
            if process.is_spent:
                process.discard()
                self.replaced += process.failed
            self._idle.put(None if process.is_spent else process)


class DecodeProcess:
    def __init__(self, max_pixels: int) -> None:
        self.failed = False
        self._done = 0
        self._max_pixels = max_pixels
        self._process = subprocess.Popen(
            [sys.executable, "-m", decode_worker.__name__, str(max_pixels)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=make_subprocess_env(),  # one BLAS thread: each further one would use limited address space
            pipesize=PIPE,
            start_new_session=True,  # Ctrl-C in the terminal interrupts the service alone
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_spent(self) -> bool:
        return self.failed or self._done >= LIFETIME or self._process.poll() is not None

    def decode(self, data: bytes, request: DecodeRequest) -> DecodedImage:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._done += 1
        try:
            decode_worker.send(self._process.stdin, asdict(request), data)
            header, body = decode_worker.receive(self._process.stdout)
        except (OSError, EOFError, ValueError) as error:
            self.failed = True
            raise ImageError(
                f"cannot read {request.name}: decoding it took too much time or memory",
                expected=f"an image of at most {self._max_pixels:,} pixels that decodes within seconds",
                fix="export it again as JPEG or PNG",
            ) from error
        if "problem" in header:
            raise ImageError(**header)
        pixels, thumbnail = decode_worker.split_body(header, body)
        ref = ImageRef(request.name, Path(request.name), attributes=header["attributes"])
        width, height = header["size"]
        return DecodedImage(Picture(ref, pixels, (width, height), header["sha256"], len(data)), thumbnail or None)

    def kill(self) -> None:
        """Kill the process; the thread that reads from it sees the end of the stream."""
        self._process.kill()

    def discard(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # unwritten bytes are lost with the process
                if pipe is not None:
                    pipe.close()
        self._process.wait()
