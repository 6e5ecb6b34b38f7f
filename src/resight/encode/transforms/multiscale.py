"""One vector from several sizes of the picture: v = L2((1/S) Σ v_s), each v_s of unit length.

The backbone runs at S sizes of its input, one pass each; database and queries may have different sizes (Radenović et
al., TPAMI 2019; CiDeR, Table A19). It must precede all other transforms, and needs a descriptor with one vector per
image.
"""

from dataclasses import dataclass, replace

import numpy as np

from resight.errors import RecipeError
from resight.plugins import check_range
from resight.types import Descriptors, Role
from resight.vectors import l2_normalise

SCALES = (0.4, 0.5, 0.7, 1.0, 1.4)


@dataclass(frozen=True)
class Config:
    scales: tuple[float, ...] = SCALES  # input sizes for database images, relative to the encoder's own
    query_scales: tuple[float, ...] | None = None  # input sizes for queries, relative to the encoder's; None: as scales

    def __post_init__(self) -> None:
        for name, values in (("scales", self.scales), ("query_scales", self.query_scales)):
            if values is not None and not values:
                raise RecipeError(f"{name} is empty", expected="at least one scale", actual="[]", fix="e.g. [1.0]")
            for value in values or ():
                check_range(name, value, 0.05, 8)


def build(config: Config) -> "Multiscale":
    return Multiscale(config)


class Multiscale:
    def __init__(self, config: Config) -> None:
        self._scales: dict[Role, tuple[float, ...]] = {
            "database": config.scales,
            "query": config.scales if config.query_scales is None else config.query_scales,
        }
        self.fingerprint = f"multiscale({' '.join(f'{scale:g}' for scale in config.scales)})"

    def scales(self, role: Role) -> tuple[float, ...]:
        return self._scales[role]

    def apply(self, descriptors: Descriptors, role: Role) -> Descriptors:
        """The rows of each image, one per scale → one row per image."""
        counts = np.bincount(descriptors.owners, minlength=len(descriptors.ids))
        expected = len(self._scales[role])
        if (counts != expected).any():
            raise RecipeError(
                "multiscale needs one vector per image",
                expected=f"one row for each of {expected} scales",
                actual=f"{counts.max()} rows of an image",
                fix="use it with the descriptor pooled or vlad",
            )
        sums = np.add.reduceat(np.asarray(descriptors.vectors, np.float32), np.arange(0, len(descriptors), expected))
        owners = np.arange(len(descriptors.ids), dtype=np.int32)
        return replace(descriptors, vectors=l2_normalise(sums), owners=owners, boxes=None, seeds=None, points=None)
