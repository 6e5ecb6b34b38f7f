"""Matchers: the local features of two images in, pairs of key points out. Geometric verification uses them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from resight import plugins
from resight.types import FloatArray
from resight.vectors import l2_normalise

Pairs = NDArray[np.int64]


@dataclass(frozen=True)
class LocalFeatures:
    """The local features of one image."""

    id: str
    rows: NDArray[Any]  # [n, D] of any dtype: only their directions count
    points: FloatArray  # [n, 4] x, y, size, angle; the last two are NaN if the detector does not estimate them

    @cached_property
    def vectors(self) -> FloatArray:
        """The rows at unit length."""
        return l2_normalise(self.rows.astype(np.float32), floor=1e-6)


class Matcher(Protocol):
    def match(self, query: LocalFeatures, image: LocalFeatures, mutual: bool = True) -> Pairs:
        """Pairs [t, 2] of row numbers, best first; mutual False: several rows of `query` may share one of `image`."""
        ...


def build(name: str, **settings: Any) -> Matcher:
    matcher: Matcher = plugins.load(__name__, name, settings)
    return matcher
