"""Lookalikes by vectors: nearest neighbours in the stored rows, without those that show the same instance.

Similarity is the cosine of the means of the stored rows of one branch. `diversity` trades it against likeness to
earlier choices (maximal marginal relevance, Carbonell and Goldstein, SIGIR 1998):

    next = argmax_x (1 - diversity) · sim(query, x) - diversity · max_chosen sim(x, chosen)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from resight.audit.dedup.branches import choose_branches, pool, pool_rows
from resight.collection.view import View
from resight.errors import RecipeError
from resight.search.filters import Filter
from resight.search.request import SearchRequest
from resight.store import ImageRecord
from resight.types import FloatArray, Picture, Recipe

DEPTH = 100  # fewest neighbours to consider


@dataclass(frozen=True)
class Neighbour:
    id: str
    similarity: float
    probability: float | None  # that it is the same instance after all


def find_by_vectors(
    view: View, recipe: Recipe, picture: Picture, k: int, filters: tuple[Filter, ...], diversity: float, same: float
) -> list[Neighbour]:
    """At most k, without the image itself and other images of the same instance."""
    branch = _choose_branch(recipe)
    if not len(view):
        return []
    answer = view.ask(SearchRequest(picture, max(DEPTH, 5 * k), filters=filters))
    itself = {record.id for record in view.records([hit.id for hit in answer.hits]) if is_same_file(record, picture)}
    others = [hit for hit in answer.hits if (hit.probability or 0.0) < same and hit.id not in itself]
    if not others:
        return []
    vectors = pool(view, branch, [hit.id for hit in others])
    similarity = vectors @ pool_rows(answer.query.descriptors[branch])[0]
    return [
        Neighbour(others[row].id, float(similarity[row]), others[row].probability)
        for row in choose_diverse(similarity, vectors, k, diversity)
    ]


def choose_diverse(similarity: FloatArray, vectors: FloatArray, k: int, diversity: float) -> Sequence[int]:
    """Rows in the order of choice, from similarities to the query [n] and unit vectors [n, D]."""
    chosen: list[int] = []
    nearest = np.zeros(len(similarity), np.float32)  # similarity to the nearest earlier choice
    for _ in range(min(k, len(similarity))):
        scores = (1 - diversity) * similarity - diversity * nearest
        scores[chosen] = -np.inf
        chosen.append(int(scores.argmax()))
        likeness = vectors @ vectors[chosen[-1]]
        nearest = likeness if len(chosen) == 1 else np.maximum(nearest, likeness)
    return chosen


def is_same_file(record: ImageRecord, picture: Picture) -> bool:
    """The same file or a copy of it; another region of the same picture is another object."""
    ours, theirs = picture.ref.box, record.ref.box
    one_part = ours is None or theirs is None or ours == theirs
    return one_part and (record.sha256 == picture.sha256 or record.path == picture.ref.path.resolve())


def _choose_branch(recipe: Recipe) -> int:
    dense = choose_branches(recipe).dense
    if not dense:
        raise RecipeError(
            "this collection has no vectors to compare images by",
            expected="a branch of vectors, such as aggregated, tokens, pooled or vlad",
            actual=", ".join(branch.descriptor.name for branch in recipe.branches),
            fix="index the images with a preset such as sift_tokens or tokens",
        )
    return dense[0]
