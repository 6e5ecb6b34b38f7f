"""A hundred candidates by the layout of their tokens: the compiled kernel against numpy, places and means included."""

import statistics
from dataclasses import dataclass
from unittest import mock

import numpy as np

from resight.search.rerankers import layout
from resight.types import Descriptors
from speed_parts.real_tokens import TokenSet
from speed_parts.results import Part, Row, compare, interleave
from speed_parts.synthetic_tokens import make_random

CANDIDATES = 100
ROUNDS = 7
BOUND = 1e-5


@dataclass(frozen=True)
class Size:
    name: str
    tokens: int
    d: int
    side: int  # of the grid of patches
    bar: float | None = 4.0


SIZES = (
    Size("32 merged", 32, 384, 14),
    Size("all 64 of 128 px, lite2, block 11", 64, 120, 8),
    Size("all 256 of 256 px, lite2, block 11", 256, 120, 16, None),
)


def measure(small: bool, real: TokenSet | None) -> Part:  # noqa: ARG001 - the answers do not depend on the vectors
    rows, figures = zip(*(measure_size(size, 2 if small else ROUNDS) for size in SIZES), strict=True)
    return Part(rows, figures={name: value for found in figures for name, value in found.items()})


def measure_size(size: Size, rounds: int) -> tuple[Row, dict[str, float]]:
    asked = make_random(CANDIDATES, size.tokens, size.d)
    random = np.random.default_rng(0)
    images = [describe(str(number), rows, size, random) for number, rows in enumerate(asked.database)]
    query = describe("query", asked.queries[0], size, random)
    overlay = layout.build(layout.Config()).overlay

    def score() -> np.ndarray:
        return layout.score_layout(query, layout.place_candidates(images), overlay)

    def score_by_numpy() -> np.ndarray:
        with mock.patch.dict("os.environ", RESIGHT_KERNELS="numpy"):
            return score()

    off = float(np.abs(score() - score_by_numpy()).max())
    times = interleave({"numpy": score_by_numpy, "compiled": score}, rounds if size.tokens < 200 else 2)
    work = f"layout of {CANDIDATES} × {size.name}"
    row = Row(
        work,
        "synthetic",
        "numpy",
        compare(times, "numpy", "compiled"),
        size.bar,
        f"within {off:.0e}",
        right=off < BOUND,
    )
    return row, {f"{work}, {name}, ms": 1000 * statistics.median(values) for name, values in times.items()}


def describe(name: str, vectors: np.ndarray, size: Size, random: np.random.Generator) -> Descriptors:
    """Tokens on a grid of patches: on all of them in order, or on some."""
    cells = np.sort(random.permutation(size.side**2)[: size.tokens])
    x, y = cells % size.side, cells // size.side
    patches = np.stack([x, y, x + 1, y + 1], axis=1).astype(np.float32)
    whole = np.tile(np.array([0, 0, size.side, size.side], np.float32), (len(patches), 1))
    return Descriptors((name,), vectors, np.zeros(len(vectors), np.int32), boxes=whole, seeds=patches)
