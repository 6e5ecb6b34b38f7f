"""A picture and a box become a query; which branch gives its patches."""

import numpy as np
import pytest
from support.builders import draw_texture, make_picture

from resight.encode.encoder import Encoder
from resight.encode.query import Encoders, find_patch_branch, keep_all_patches
from resight.errors import BoxError, SpaceMismatch
from resight.types import Branch, Choice, Picture

LITE = Choice("efficientnet_lite", {"block": 3, "size": 64})
POOLED = Branch(LITE, Choice("pooled"))
TOKENS = Branch(LITE, Choice("tokens", {"selection": "grid", "k": 4}))
REGIONS = Branch(LITE, Choice("pooled"), regions=Choice("grid", {"level": 1}))


def open_encoders(*branches: Branch) -> Encoders:
    return Encoders(branches, Encoder(branches).spaces, None, "photos")


def draw() -> Picture:
    return make_picture(draw_texture(np.random.default_rng(0), 320, 240), "a")


@pytest.mark.parametrize(
    ("branches", "number"), [([POOLED], None), ([POOLED, TOKENS], 1), ([REGIONS, TOKENS], 1), ([POOLED, REGIONS], 1)]
)
def test_patches_are_those_of_the_first_tokens_or_else_of_pooled_regions(branches: list[Branch], number: int | None):
    assert find_patch_branch(branches) == number


def test_a_branch_with_all_patches_has_no_regions_and_no_transforms_of_pooled_rows():
    whitened = Branch(LITE, Choice("pooled"), (Choice("whiten", {"file": "a.npz"}),), regions=Choice("grid"))
    assert keep_all_patches(whitened) == Branch(LITE, Choice("tokens"))


def test_a_query_has_one_set_of_rows_per_branch_and_every_patch_of_its_box():
    query = open_encoders(POOLED, TOKENS).encode_query(draw(), (100, 40, 228, 168))
    assert query.outline == (100, 40, 228, 168)
    assert [len(rows) for rows in query.descriptors] == [1, 4]
    assert query.patches is not None and query.patches.boxes is not None
    assert query.patches.boxes[:, :2].min(axis=0).tolist() == [100, 40]
    assert query.patches.boxes[:, 2:].max(axis=0).tolist() == [228, 168]


def test_without_tokens_a_query_has_no_patches_and_stored_rows_serve_as_one():
    encoders = open_encoders(POOLED)
    assert encoders.encode_query(draw()).patches is None
    assert encoders.encode_patches(draw(), None) is None
    assert encoders.stored_rows_are_queries
    assert not open_encoders(TOKENS).stored_rows_are_queries


def test_a_box_of_three_numbers_is_refused():
    with pytest.raises(BoxError, match="3 numbers"):
        open_encoders(POOLED).encode_query(draw(), (1, 2, 3))  # type: ignore[arg-type]


def test_rows_of_another_space_are_refused():
    with pytest.raises(SpaceMismatch, match="photos was encoded in a way"):
        _ = Encoders([POOLED], ["another"], None, "photos").encoder
