"""The loop over many images: pictures in, rows out, in bounded memory.

It knows neither where pictures come from nor where rows go: `pictures` is an iterator, `write` a function
that keeps a batch. Reading runs ahead in a thread, at most `AHEAD` pictures, while the encoder works.
"""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from resight.types import Descriptors, Picture

AHEAD = 4
NO_PIXELS = np.zeros((0, 0, 3), np.uint8)
Encoded = tuple[Picture, tuple[Descriptors, ...]]
Item = TypeVar("Item")


def extract(
    pictures: Iterable[Picture],
    encode: Callable[[Picture], tuple[Descriptors, ...]],
    write: Callable[[list[Encoded]], None],
    batch: int = 32,
) -> None:
    """Encode every picture and hand the rows to `write`, `batch` images at a time."""
    pending: list[Encoded] = []
    for picture in read_ahead(pictures, AHEAD):
        rows = encode(picture)
        pending.append((replace(picture, pixels=NO_PIXELS), rows))  # pixels are not kept until the batch is full
        if len(pending) >= batch:
            write(pending)
            pending = []
    if pending:
        write(pending)


def read_ahead(items: Iterable[Item], depth: int) -> Iterator[Item]:
    """The same items, produced in a thread; its exceptions are raised here, and leaving early ends it."""
    slots: queue.Queue[tuple[bool, Item | BaseException | None]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(entry: tuple[bool, Item | BaseException | None]) -> None:
        while not stopped.is_set():
            try:
                slots.put(entry, timeout=0.1)
                return
            except queue.Full:
                continue

    def produce() -> None:
        try:
            for item in items:
                put((True, item))
                if stopped.is_set():
                    return
        except BaseException as error:  # handed over to the consumer, which raises it
            put((False, error))
        else:
            put((False, None))

    thread = threading.Thread(target=produce, name="read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            more, value = slots.get()
            if not more:
                if isinstance(value, BaseException):
                    raise value
                return
            yield value  # type: ignore[misc]
    finally:
        stopped.set()
        thread.join()
