"""Sandboxed decoding: image bytes from elsewhere in, a Decoded image, a thumbnail or an ImageError out.

Images are decoded in processes of their own, which hold no secrets, open no files and reach no network (`protection`).
A process that crashes, hangs or exceeds its memory is killed and replaced; only its image is refused. One thread at a
time talks to each process, over standard input and output (`decode_worker` defines the messages).
"""

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from resight.data.decode import MAX_PIXELS, Decoded
from resight.data.formats import MODERN, START, identify
from resight.data.sandbox import decode_worker
from resight.data.sandbox.decode_worker import DecodeRequest
from resight.errors import ImageError, ResightError

LIFETIME = 2000  # images, after which a process is replaced: a memory leak stays small
STARTING = 60.0  # seconds that a process may take until it listens
PIPE = 2**20  # bytes: an image needs few system calls
VARIABLES = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL", "SYSTEMROOT")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """Of one image."""

    seconds: float = 20.0
    memory: int = 2**30  # bytes of data in a process, its libraries' included
    pixels: int = MAX_PIXELS
    bytes: int = 2**29  # of its file, which the parent reads


class Sandbox:
    """Decode processes, started as images need them; any thread may use it."""

    def __init__(self, count: int, limits: Limits) -> None:
        self.limits = limits
        self.replaced = 0  # processes that had to be killed
        self.protections: tuple[str, ...] = ()  # those that hold in the process that started last
        self._is_closed = False
        self._idle: queue.LifoQueue[DecodeProcess | None] = queue.LifoQueue()
        # Linux ends a process when the thread that started it ends: this one lives as long as the sandbox.
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="sandbox")
        for _ in range(count):
            self._idle.put(None)

    def start(self, count: int = 1) -> None:
        """Start processes now, so that the first images need not wait for them."""
        processes = [self._idle.get() or self._start() for _ in range(count)]
        try:
            for process in processes:
                self._greet(process)
        finally:
            for process in processes:
                self._give_back(process)

    def decode(self, data: bytes, name: str, max_side: int | None = None, max_pixels: int = MAX_PIXELS) -> Decoded:
        """`resight.data.decode.decode`, in a process."""
        return self.run(data, DecodeRequest(name, max_side, max_pixels))[0]

    def run(self, data: bytes, request: DecodeRequest) -> tuple[Decoded, bytes]:
        """The image and its thumbnail."""
        limited = replace(request, max_pixels=min(request.max_pixels, self.limits.pixels))
        modern = identify(data[:START]) in MODERN
        return self.use(lambda process: process.decode(data, limited), modern)

    def use(self, work: "Callable[[DecodeProcess], Result]", modern: bool = False) -> Result:
        """Do `work` with a process of one's own, of `modern` formats or not; it is killed if that takes too long."""
        process = self._idle.get()
        try:
            if process is not None and modern and not process.modern:
                process.discard()
                process = None
            process = process or self._start(modern)
            self._greet(process)
            with _deadline(self.limits.seconds, process):
                return work(process)
        finally:
            self._give_back(process)

    def close(self) -> None:
        """End the idle processes at once, and those in use with their image (on Linux, at once, too)."""
        self._starter.shutdown(wait=False)
        self._is_closed = True
        idle: list[DecodeProcess | None] = []
        with contextlib.suppress(queue.Empty):
            while True:
                idle.append(self._idle.get_nowait())
        for process in idle:
            self._give_back(process)

    def _give_back(self, process: "DecodeProcess | None") -> None:
        if process is not None and (process.is_spent or self._is_closed):
            process.discard()
            self.replaced += process.failed
            process = None
        self._idle.put(process)

    def _start(self, modern: bool = False) -> "DecodeProcess":
        return self._starter.submit(DecodeProcess, self.limits, modern).result()

    def _greet(self, process: "DecodeProcess") -> None:
        """Wait until a new process has protected itself."""
        if not process.is_ready:
            with _deadline(STARTING, process):
                self.protections = process.greet()


class DecodeProcess:
    def __init__(self, limits: Limits, modern: bool = False) -> None:
        self.failed = self.is_ready = False
        self.modern = modern  # decodes HEIC, AVIF and JPEG XL, too
        self._left = LIFETIME
        self._limits = limits
        # -P: a folder in which a command runs may hold files named as modules.
        arguments = map(str, (limits.memory, os.getpid(), int(modern)))
        command = [sys.executable, "-P", "-m", decode_worker.__name__, *arguments]
        self.environment = _make_environment()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.environment,
            pipesize=PIPE,
            start_new_session=True,  # Ctrl-C in the terminal interrupts the parent alone
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_spent(self) -> bool:
        return self.failed or self._left <= 0 or self._process.poll() is not None

    def greet(self) -> tuple[str, ...]:
        """The protections that hold in the process, once it listens."""
        assert self._process.stdout is not None
        self.failed = True  # until the whole message is read: after an interrupt, nobody may use this process
        try:
            header, _ = decode_worker.receive(self._process.stdout, 0)
            names = tuple(map(str, header["protections"]))
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            self._process.kill()
            raise ResightError(
                "a process that decodes images does not start",
                expected=f"a running process of {sys.executable}",
                actual=f"it ended with exit code {self._process.wait()}",
                fix="free memory; if a container forbids processes, let it start them",
            ) from error
        self.is_ready, self.failed = True, False
        return names

    def decode(self, data: bytes, request: DecodeRequest) -> tuple[Decoded, bytes]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._left -= 1
        self.failed = True  # until the whole answer is read and makes sense
        largest = 3 * self._limits.pixels + decode_worker.THUMBNAIL_LIMIT
        try:
            decode_worker.send(self._process.stdin, asdict(request), data)
            header, body = decode_worker.receive(self._process.stdout, largest)
            if header.pop("is_last"):
                self._left = 0
            found = None if "problem" in header else decode_worker.read_response(header, body)
        except (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
            raise ImageError(
                f"cannot read {request.name}: decoding it took too much time or memory",
                expected=f"an image of at most {request.max_pixels:,} pixels that decodes within "
                f"{self._limits.seconds:g} seconds and {self._limits.memory >> 20:,} MiB",
                actual="no answer within these limits",
                fix="export it again as JPEG or PNG, in a smaller size",
            ) from error
        self.failed = False
        if found is None:
            raise ImageError(**{part: str(header.get(part, "")) for part in ("problem", "expected", "actual", "fix")})
        return found

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


@contextlib.contextmanager
def _deadline(seconds: float, process: DecodeProcess) -> Iterator[None]:
    alarm = threading.Timer(seconds, process.kill)
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()


def _make_environment() -> dict[str, str]:
    """No secrets, and one BLAS thread: each further one would use limited memory, and could not start."""
    public = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    return {**public, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
