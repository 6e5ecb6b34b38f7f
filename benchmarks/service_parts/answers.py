"""Whether the service's answer is the library's: ids in order, probabilities, scores and boxes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from resight.types import Hit


def is_same(told: Sequence[Mapping[str, Any]], hits: Sequence[Hit]) -> bool:
    return len(told) == len(hits) and all(_agree(one, hit) for one, hit in zip(told, hits, strict=True))


def _agree(told: Mapping[str, Any], hit: Hit) -> bool:
    numbers = [(told["score"], hit.score), (told["probability"], hit.probability)]
    numbers += zip(told["box"] or (), hit.box or (), strict=False)
    return (
        told["id"] == hit.id and (told["box"] is None) == (hit.box is None) and all(_equal(*pair) for pair in numbers)
    )


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-4)
