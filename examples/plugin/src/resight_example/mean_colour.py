"""The mean colour of each cell of a grid. In: pictures. Out: Features with `grid`, `patches` and `head` (all cells).

A network of your own has this shape: `extract` gets pictures [H, W, 3] of uint8 RGB, several at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from resight.encode.backbones import About
from resight.types import Features, Picture

ABOUT = About("colours", 3, "cell of a grid", "none", "Apache-2.0", 16)  # what `resight encoders` prints


@dataclass(frozen=True)
class Config:
    cells: int = 4  # per side of the grid


def build(config: Config) -> "MeanColour":
    return MeanColour(config.cells)


class MeanColour:
    max_side: int | None = 512  # a decoder may reduce larger pictures to it
    batch = 8  # pictures per call

    def __init__(self, cells: int) -> None:
        self.fingerprint = f"mean_colour({cells})"  # must change whenever the features change
        self._cells = cells

    def extract(self, pictures: Sequence[Picture], scale: float = 1.0) -> Iterator[Features]:
        cells = max(round(self._cells * scale), 1)
        for picture in pictures:
            small = Image.fromarray(picture.pixels).resize((cells, cells), Image.Resampling.BOX)
            colours = np.asarray(small, np.float32).reshape(1, cells * cells, 3) / 255
            yield Features(
                ids=(picture.ref.id,),
                patches=colours,
                sizes=np.array([picture.size], np.int32),
                grid=(cells, cells),
                head=colours.reshape(1, -1),
            )
