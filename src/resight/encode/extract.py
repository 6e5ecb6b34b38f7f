"""The loop over many images: pictures in, rows out, in bounded memory.

It knows neither where pictures come from nor where rows go: `pictures` is an iterator, `encode` a function of one
picture, `write` a function that keeps a batch. Threads encode while the next pictures are read; what is in flight is
bounded, and the order stays that of the pictures.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from resight.types import Descriptors, Picture

NO_PIXELS = np.zeros((0, 0, 3), np.uint8)
Encoded = tuple[Picture, tuple[Descriptors, ...]]
Encode = Callable[[Picture], tuple[Descriptors, ...]]


def extract(
    pictures: Iterable[Picture],
    encode: Encode,
    write: Callable[[list[Encoded]], None],
    batch: int = 32,
    workers: int | None = None,
) -> None:
    """Encode every picture and hand the rows to `write`, `batch` images at a time; one worker a core by default."""
    pending: list[Encoded] = []
    for encoded in encode_ahead(pictures, encode, workers or os.cpu_count() or 1):
        pending.append(encoded)
        if len(pending) >= batch:
            write(pending)
            pending = []
    if pending:
        write(pending)


def encode_ahead(pictures: Iterable[Picture], encode: Encode, workers: int) -> Iterator[Encoded]:
    """Pictures (without their pixels, which nobody needs any more) and rows, in order, at most 2 a worker in flight."""
    flying: deque[tuple[Picture, Future[tuple[Descriptors, ...]]]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="encode") as pool:
        try:
            for picture in pictures:
                flying.append((replace(picture, pixels=NO_PIXELS), pool.submit(encode, picture)))
                if len(flying) >= 2 * workers:
                    yield _land(flying)
            while flying:
                yield _land(flying)
        finally:
            for _, future in flying:  # after an error, or when the consumer leaves early
                future.cancel()


def _land(flying: deque[tuple[Picture, Future[tuple[Descriptors, ...]]]]) -> Encoded:
    picture, future = flying.popleft()
    return picture, future.result()
