"""Which variants share a collection, and how each finds its own branches in it."""

import numpy as np

from resight.evaluate.bench import hide_branches
from resight.evaluate.variants import group, join, weigh
from resight.types import Branch, Choice, Descriptors, Query, Recipe

A, B = Choice("efficientnet_lite", {"size": 64}), Choice("efficientnet_lite", {"size": 96})
POOLED, TOKENS = Choice("pooled"), Choice("tokens")


def make(*branches: Branch, rerankers: tuple[str, ...] = ()) -> Recipe:
    return Recipe("r", branches, rerankers=tuple(Choice(name) for name in rerankers))


def test_variants_with_the_same_encoders_share_a_collection() -> None:
    variants = [make(Branch(A, POOLED)), make(Branch(B, POOLED)), make(Branch(A, TOKENS)), make(Branch(A, POOLED))]
    assert group(variants) == [[0, 2, 3], [1]]


def test_variants_with_rerankers_share_one_only_when_their_branches_are_the_same() -> None:
    both = (Branch(A, POOLED), Branch(A, TOKENS, weight=0))
    other = (Branch(A, POOLED), Branch(A, Choice("aggregated"), weight=0))
    variants = [
        make(*both, rerankers=("late",)),
        make(*other, rerankers=("late",)),
        make(*both, rerankers=("geometry",)),
    ]
    assert group(variants) == [[0, 2], [1]]


def test_joined_branches_are_the_distinct_encodings_of_all() -> None:
    variants = [make(Branch(A, POOLED)), make(Branch(A, TOKENS, weight=2)), make(Branch(A, POOLED), Branch(A, POOLED))]
    assert [branch.descriptor for branch in join(variants)] == [POOLED, TOKENS, POOLED]
    assert {branch.weight for branch in join(variants)} == {0.0}


def test_a_variant_gives_weight_to_its_own_branches_alone() -> None:
    own = Branch(A, TOKENS, weight=2, index=Choice("late"))
    branches = join([make(Branch(A, POOLED)), make(own)])
    weighed, positions = weigh(make(own), branches)
    assert (weighed.branches, positions) == ((branches[0], own), {1})
    assert [branch.weight for branch in weighed.branches] == [0, 2]


def test_a_branch_that_a_variant_has_twice_is_found_twice() -> None:
    twice = make(Branch(A, POOLED), Branch(A, POOLED, index=Choice("hnsw")))
    weighed, positions = weigh(twice, join([twice]))
    assert (weighed.branches, positions) == (twice.branches, {0, 1})


def test_a_query_shows_a_variant_nothing_of_other_branches() -> None:
    boxes = np.zeros((2, 4), np.float32)
    rows = Descriptors(("q",), np.ones((2, 3), np.float32), np.zeros(2, np.int32), boxes=boxes, space="s")
    query = Query("q", (10, 10), (0, 0, 10, 10), (rows, rows))
    first, second = hide_branches(query, frozenset({1})).descriptors
    assert (first.boxes, len(first), first.space) == (None, 0, "s")
    assert second is rows
    assert hide_branches(query, None) is query
