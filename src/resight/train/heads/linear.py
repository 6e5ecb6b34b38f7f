"""A learnt projection: y = L2((x - mean) skip). What says more about light or framing than about the thing goes."""

from dataclasses import dataclass

from resight.plugins import check_range
from resight.train.heads import Head
from resight.types import FloatArray


@dataclass(frozen=True)
class Config:
    dimensions: int = 128  # that come out; never more than go in

    def __post_init__(self) -> None:
        check_range("dimensions", self.dimensions, 1, 65_536)


def build(config: Config, mean: FloatArray, directions: FloatArray) -> Head:  # noqa: ARG001 - directions say it all
    return Head(mean, directions)
