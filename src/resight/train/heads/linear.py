"""A trained projection, y = L2((x - mean) skip), that suppresses light and framing in favour of the instance."""

from dataclasses import dataclass

from resight.plugins import check_range
from resight.train.heads import Head
from resight.types import FloatArray


@dataclass(frozen=True)
class Config:
    dimensions: int = 128  # dimensions of the output, at most those of the input

    def __post_init__(self) -> None:
        check_range("dimensions", self.dimensions, 1, 65_536)


def build(config: Config, mean: FloatArray, directions: FloatArray) -> Head:  # noqa: ARG001 - the directions suffice
    return Head(mean, directions)
