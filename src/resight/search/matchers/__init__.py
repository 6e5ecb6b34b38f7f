"""Matchers: the local features of two images in, pairs of key points out. Geometric verification uses them."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from resight import plugins
from resight.types import FloatArray

Pairs = NDArray[np.int64]


@dataclass(frozen=True)
class LocalFeatures:
    """The local features of one image."""

    id: str
    vectors: FloatArray  # [n, D] unit rows
    points: FloatArray  # [n, 4] x, y, size, angle; the last two are NaN if the detector does not estimate them


class Matcher(Protocol):
    def match(self, query: LocalFeatures, image: LocalFeatures, mutual: bool = True) -> Pairs:
        """Pairs [t, 2] of row numbers, best first; mutual False: several rows of `query` may share one of `image`."""
        ...


def build(name: str, **settings: Any) -> Matcher:
    matcher: Matcher = plugins.load(__name__, name, settings)
    return matcher
