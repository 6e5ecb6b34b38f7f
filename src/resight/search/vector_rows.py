"""Branches whose rows stand for whole images or for regions of them: one vector an image, or a few.

What rerankers need that work on those: which branch it is, and the rows of images as float32.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from resight.errors import RecipeError
from resight.search.rerankers import Gallery
from resight.types import FloatArray, Query


def require_vector_branch(query: Query, who: str) -> int:
    """The first branch whose query rows are neither tokens (they have boxes) nor local features nor visual words."""
    for branch, rows in enumerate(query.descriptors):
        if len(rows) and rows.boxes is None and rows.points is None and rows.words is None:
            return branch
    raise RecipeError(
        f"{who} works on one vector an image, or one a region",
        expected='a branch with a descriptor such as "pooled" or "vlad"',
        actual=f"{len(query.descriptors)} branches, of tokens, local features or visual words",
        fix="add such a branch, or remove the reranker",
    )


def read_vectors(gallery: Gallery, branch: int, ids: Sequence[str]) -> Iterator[FloatArray]:
    """The rows [r, D] of each image, in the order of the ids."""
    for chunk in gallery.descriptors(branch, ids):
        limits = np.searchsorted(chunk.owners, np.arange(len(chunk.ids) + 1))
        for first, last in itertools.pairwise(limits):
            yield np.asarray(chunk.vectors[first:last], np.float32)
