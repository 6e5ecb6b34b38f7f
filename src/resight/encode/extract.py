"""The loop over many images: sources in, rows out, in bounded memory.

It knows neither data sets nor stores: `read` decodes one source, `encode` takes a few pictures, `write` stores a batch.
Some threads read while others encode; the number of pictures in flight is bounded, and the order of the sources stays.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TypeVar, cast

import numpy as np
from threadpoolctl import ThreadpoolController

from resight.types import Descriptors, Picture, Skipped

NO_PIXELS = np.zeros((0, 0, 3), np.uint8)
Rows = tuple[Descriptors, ...]
Encoded = tuple[Picture, Rows]
Encode = Callable[[Sequence[Picture]], Sequence[Rows]]
Source = TypeVar("Source")
Given = TypeVar("Given")
Made = TypeVar("Made")


def extract(
    sources: Iterable[Source],
    read: Callable[[Source], Picture | Skipped],
    encode: Encode,
    write: Callable[[list[Encoded]], None],
    skip: Callable[[Skipped], None],
    *,
    batch: int = 32,
    together: int = 1,
    workers: int | None = None,
    count: Callable[[], None] | None = None,
) -> None:
    """Read and encode every source, and hand the rows to `write`, `batch` images at a time.

    `together` pictures are encoded at once. Each core has two threads: one reads, the other encodes. `count` is called
    for every encoded image, before it is written.
    """
    pending: list[Encoded] = []
    for encoded in encode_ahead(sources, read, encode, together, workers or os.cpu_count() or 1):
        if isinstance(encoded, Skipped):
            skip(encoded)
            continue
        pending.append(encoded)
        if count:
            count()
        if len(pending) >= batch:
            write(pending)
            pending = []
    if pending:
        write(pending)


def encode_ahead(
    sources: Iterable[Source],
    read: Callable[[Source], Picture | Skipped],
    encode: Encode,
    together: int,
    workers: int,
) -> Iterator[Encoded | Skipped]:
    """Pictures (without their pixels, to free memory) and rows, in order; Skipped where a source is unreadable."""

    def encode_some(items: Sequence[Picture | Skipped]) -> list[Encoded | Skipped]:
        pictures = [item for item in items if isinstance(item, Picture)]
        rows = iter(encode(pictures) if pictures else ())
        return [item if isinstance(item, Skipped) else (replace(item, pixels=NO_PIXELS), next(rows)) for item in items]

    with (
        ThreadPoolExecutor(workers, thread_name_prefix="read") as readers,
        ThreadPoolExecutor(workers, thread_name_prefix="encode") as encoders,
        one_blas_thread(readers),
    ):
        pictures = run_ahead(sources, read, readers, workers + together)
        for done in run_ahead(gather(pictures, together), encode_some, encoders, 2 * workers):
            yield from done


class SharedLimit:
    """A limit of the process that runs at the same time share: the first sets it, the last lifts it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = 0
        self._lift: Callable[[], None] = lambda: None

    @contextmanager
    def hold(self, set: Callable[[], Callable[[], None]]) -> Iterator[None]:
        """`set` sets the limit, and returns what lifts it."""
        with self._lock:
            if not self._runs:
                self._lift = set()
            self._runs += 1
        try:
            yield
        finally:
            with self._lock:
                self._runs -= 1
                if not self._runs:
                    self._lift()


_blas = SharedLimit()


def one_blas_thread(pool: ThreadPoolExecutor) -> AbstractContextManager[None]:
    """BLAS threads inside those of `pool` would wait for each other in busy loops."""

    def set_limit() -> Callable[[], None]:
        # Another thread than the main one looks up the libraries: an interrupt would get lost in its callback.
        limit = pool.submit(ThreadpoolController).result().limit(limits=1, user_api="blas")
        return cast("Callable[[], None]", limit.restore_original_limits)

    return _blas.hold(set_limit)


def run_ahead(
    items: Iterable[Given], work: Callable[[Given], Made], pool: ThreadPoolExecutor, ahead: int
) -> Iterator[Made]:
    """The results in the order of the items, at most `ahead` of them running or waiting to be taken."""
    flying: deque[Future[Made]] = deque()
    try:
        for item in items:
            flying.append(pool.submit(work, item))
            if len(flying) >= ahead:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()
    finally:
        for future in flying:  # after an error, or when the consumer leaves early
            future.cancel()


def gather(items: Iterable[Given], count: int) -> Iterator[list[Given]]:
    """Lists of `count` items; the last may be shorter."""
    some: list[Given] = []
    for item in items:
        some.append(item)
        if len(some) == count:
            yield some
            some = []
    if some:
        yield some
