"""The loop over many images: sources in, rows out, in bounded memory.

It knows neither where pictures come from nor where rows go: `read` is a function of one source, `encode` of a few
pictures, `write` keeps a batch. Some threads read while others encode; what is in flight is bounded, and the order
stays that of the sources.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

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
) -> None:
    """Read and encode every source, and hand the rows to `write`, `batch` images at a time.

    `together` pictures are encoded at once. There are two threads a core: one reads, the other encodes.
    """
    pending: list[Encoded] = []
    for encoded in encode_ahead(sources, read, encode, together, workers or os.cpu_count() or 1):
        if isinstance(encoded, Skipped):
            skip(encoded)
            continue
        pending.append(encoded)
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
    """Pictures (without their pixels, which nobody needs any more) and rows, in order; what cannot be read between."""

    def encode_some(items: Sequence[Picture | Skipped]) -> list[Encoded | Skipped]:
        pictures = [item for item in items if isinstance(item, Picture)]
        rows = iter(encode(pictures) if pictures else ())
        return [item if isinstance(item, Skipped) else (replace(item, pixels=NO_PIXELS), next(rows)) for item in items]

    with (
        ThreadPoolExecutor(workers, thread_name_prefix="read") as readers,
        ThreadPoolExecutor(workers, thread_name_prefix="encode") as encoders,
        # Threads below threads would wait for each other, and do so at full speed. The libraries are looked up by
        # another thread than the main one: an interrupt would get lost in the callback that does it.
        readers.submit(ThreadpoolController).result().limit(limits=1, user_api="blas"),
    ):
        pictures = run_ahead(sources, read, readers, workers + together)
        for done in run_ahead(gather(pictures, together), encode_some, encoders, 2 * workers):
            yield from done


def run_ahead(
    items: Iterable[Given], work: Callable[[Given], Made], pool: ThreadPoolExecutor, ahead: int
) -> Iterator[Made]:
    """The results in the order of the items, at most `ahead` of them under way or waiting to be taken."""
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
