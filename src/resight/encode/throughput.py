"""How many pictures a second an encoder takes on this machine.

In: the name of an encoder. Out: pictures a second through the loop that indexing uses, all cores at work, without
decoding. A network whose weights are not here is timed with random ones: they take the same time.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np

from resight.encode import backbones, models
from resight.encode.backbones import Backbone
from resight.encode.extract import extract
from resight.errors import MissingWeights
from resight.types import Choice, Descriptors, ImageRef, Picture, Skipped

SIZE = 640, 480


def measure(name: str, seconds: float = 3.0) -> float:
    """After a first picture, which pays for what is set up once."""
    (picture,) = _draw(1)
    backbone = build(name, picture)
    started = time.perf_counter()
    done = 0

    def endless() -> Iterator[Picture]:
        for number in count():
            if number >= 2 and time.perf_counter() - started > seconds:
                return
            yield picture

    def encode(pictures: Sequence[Picture]) -> list[tuple[Descriptors, ...]]:
        return [() for _ in list(backbone.extract(pictures))]

    def tally(batch: list[tuple[Picture, tuple[Descriptors, ...]]]) -> None:
        nonlocal done
        done += len(batch)

    extract(endless(), _take, encode, tally, _ignore, batch=1, together=backbone.batch)
    return done / (time.perf_counter() - started)


def build(name: str, picture: Picture) -> Backbone:
    """The encoder after its first picture."""
    try:
        backbone = backbones.build(name)
        list(backbone.extract([picture]))
    except MissingWeights:
        choice = models.resolve(Choice(name, {"untrained": True}))
        backbone = backbones.build(choice.name, **choice.settings)
        list(backbone.extract([picture]))
    return backbone


def _draw(number: int) -> Iterator[Picture]:
    generator = np.random.default_rng(0)
    for each in range(number):
        coarse = generator.integers(0, 255, (SIZE[1] // 8, SIZE[0] // 8, 3), dtype=np.uint8)
        pixels = np.kron(coarse, np.ones((8, 8, 1), np.uint8))
        yield Picture(ImageRef(str(each), Path(str(each))), pixels, SIZE)


def _take(picture: Picture) -> Picture:
    return picture


def _ignore(_: Skipped) -> None:
    pass
