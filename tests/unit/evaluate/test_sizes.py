"""Bytes that a search reads, with sizes worked out by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from resight.evaluate.evaluation import BYTES, COMPRESSION, MEGABYTES, ROWS
from resight.evaluate.sizes import Sizes, list_facts, measure_sizes
from resight.types import Branch, Choice, Descriptors, Recipe

POOLED = Branch(Choice("resnet18"), Choice("pooled"))
PQ = Choice("ivfpq", {"m": 2, "keep": "none"})
PACKED = Choice("maxsim", {"kind": "int8", "keep": "none"})


class TwoImages:
    """Branch 0: 3 regions of 4 float32 an image; branch 1: 5 key points with 2 words each."""

    def __len__(self) -> int:
        return 2

    def descriptors(self, branch: int) -> list[Descriptors]:
        if branch == 0:
            return [Descriptors(("a", "b"), np.ones((6, 4), np.float32), np.repeat(np.arange(2, dtype=np.int32), 3))]
        owners = np.repeat(np.arange(2, dtype=np.int32), 5)
        words = np.ones((10, 2), np.int32)
        return [Descriptors(("a", "b"), np.ones((10, 1), np.uint8), owners, words=words)]


def encode(**searcher: float) -> Any:
    view = SimpleNamespace(searcher=lambda branch, whole: SimpleNamespace(**searcher))  # noqa: ARG005
    return SimpleNamespace(collection=TwoImages(), view=lambda recipe: view)  # noqa: ARG005


def test_rows_that_an_index_reads_as_they_are_count_as_they_are_stored() -> None:
    # 3 rows of 4 · 4 bytes an image
    assert measure_sizes(encode(), Recipe("r", (POOLED,)), frozenset({0})) == Sizes(48, 48, 3)


def test_words_count_and_further_branches_add_up() -> None:
    # 48 bytes of regions; 5 rows of 1 byte and 2 words of 4 bytes: 45
    recipe = Recipe("r", (POOLED, Branch(Choice("sift"), Choice("asmk"))))
    assert measure_sizes(encode(), recipe, frozenset({0, 1})) == Sizes(93, 93, 8)


def test_product_quantisation_counts_by_its_lists_and_not_by_its_rows() -> None:
    sizes = measure_sizes(encode(bytes_kept=20), Recipe("r", (POOLED,), index=PQ), frozenset({0}))
    assert sizes == Sizes(stored=48, kept=10, rows=3)
    facts = {name: fact.value for name, fact in list_facts(sizes, images=500_000).items()}
    assert facts == {BYTES: 10, ROWS: 3, MEGABYTES: 5, COMPRESSION: 4.8}


def test_packed_tokens_count_if_nothing_else_is_stored() -> None:
    codes = encode(bytes_per_token=2.5)  # of 3 tokens per image
    assert measure_sizes(codes, Recipe("r", (POOLED,), index=PACKED), frozenset({0})).kept == 7.5
    exact = Choice("maxsim", {"kind": "int8"})
    assert measure_sizes(codes, Recipe("r", (POOLED,), index=exact), frozenset({0})).kept == 48


def test_the_index_of_a_branch_counts_before_that_of_the_recipe() -> None:
    own = Branch(Choice("resnet18"), Choice("pooled"), index=PQ)
    assert measure_sizes(encode(bytes_kept=4), Recipe("r", (own,)), frozenset({0})).kept == 2


def test_a_branch_that_only_trains_an_index_is_not_searched() -> None:
    teacher = Branch(Choice("sift"), Choice("asmk"), weight=0)
    recipe = Recipe("r", (POOLED, teacher), index=PQ)
    assert measure_sizes(encode(bytes_kept=20), recipe, frozenset({0, 1})) == Sizes(48, 10, 3)


def test_a_branch_for_rerankers_counts_as_it_is_stored() -> None:
    second = Branch(Choice("sift"), Choice("asmk"), weight=0)
    recipe = Recipe("r", (POOLED, second), index=PQ, rerankers=(Choice("geometry"),))
    assert measure_sizes(encode(bytes_kept=20), recipe, frozenset({0, 1})) == Sizes(93, 55, 8)
