"""Several encoders as one vector."""

import numpy as np
import pytest
from support.builders import draw_texture, global_rows, make_picture

from resight.encode.backbones.fused import concatenate
from resight.encode.encoder import Encoder, build_backbone
from resight.errors import RecipeError
from resight.types import Branch, Choice

EARLY = {"encoder": {"name": "efficientnet_lite", "size": 64, "block": 3}, "descriptor": "pooled"}
LATE = {
    "encoder": {"name": "efficientnet_lite", "size": 64, "block": 9},
    "descriptor": {"name": "pooled", "pooling": "gem"},
}
HEAD = Choice("pooled", {"pooling": "head"})


def vectors(branch: Branch) -> np.ndarray:
    rng = np.random.default_rng(0)
    pictures = [make_picture(draw_texture(rng), str(number)) for number in range(3)]
    return np.stack([rows.vectors[0] for (rows,) in Encoder([branch]).encode(pictures)])


def test_each_part_is_normalised_weighed_and_put_behind_the_other():
    parts = [global_rows(["x"], [[3, 4]]), global_rows(["x"], [[0, 0, 2]])]
    np.testing.assert_allclose(concatenate(parts, [1, 1]), np.array([0.6, 0.8, 0, 0, 1]) / 2**0.5, atol=1e-6)
    np.testing.assert_allclose(concatenate(parts, [3, 4]), np.array([1.8, 2.4, 0, 0, 4]) / 5, atol=1e-6)


def test_without_weights_the_dot_product_is_the_mean_of_the_parts_own():
    fused = vectors(Branch(Choice("fused", {"parts": [EARLY, LATE]}), HEAD))
    alone = [
        vectors(
            Branch(Choice("efficientnet_lite", {"size": 64, "block": block}), Choice("pooled", {"pooling": pooling}))
        )
        for block, pooling in ((3, "mean"), (9, "gem"))
    ]
    assert fused.shape[1] == sum(part.shape[1] for part in alone)
    np.testing.assert_allclose(fused @ fused.T, np.mean([part @ part.T for part in alone], axis=0), atol=1e-5)


def test_weights_and_parts_are_in_the_fingerprint():
    told = {
        build_backbone(Choice("fused", {"parts": parts})).fingerprint
        for parts in ([EARLY, LATE], [LATE, EARLY], [EARLY, {**LATE, "weight": 2}])
    }
    assert len(told) == 3


def test_a_blank_part_leaves_finite_numbers():
    blank = [global_rows(["x"], [[0, 0]]), global_rows(["x"], [[0]])]
    assert concatenate(blank, [1, 1]).tolist() == [0, 0, 0]


def test_tokens_are_refused_with_what_would_work():
    tokens = {**EARLY, "descriptor": "tokens"}
    with pytest.raises(RecipeError, match="only encoders with one vector"):
        vectors(Branch(Choice("fused", {"parts": [EARLY, tokens]}), HEAD))


@pytest.mark.parametrize(
    "parts", [[], [EARLY], [EARLY, {**LATE, "weight": 0}], [EARLY, "sift"], [EARLY, {"encoder": "sift"}]]
)
def test_what_cannot_be_fused_is_refused(parts: list):
    with pytest.raises(RecipeError):
        build_backbone(Choice("fused", {"parts": parts}))
