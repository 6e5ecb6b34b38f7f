"""Several sizes of a picture, averaged to one vector."""

import numpy as np
import pytest
from support.builders import draw_texture, global_rows, make_picture

from resight.encode.encoder import Encoder
from resight.encode.transforms import build
from resight.errors import RecipeError
from resight.types import Branch, Choice, Descriptors

LITE0 = Choice("efficientnet_lite", {"size": 64, "block": 3})
POOLED = Choice("pooled", {"pooling": "mean"})


def at(*scales: float, query: tuple[float, ...] | None = None) -> Branch:
    settings = {"scales": list(scales)} | ({"query_scales": list(query)} if query else {})
    return Branch(LITE0, POOLED, (Choice("multiscale", settings),))


def look(branch: Branch, role: str = "database") -> np.ndarray:
    picture = make_picture(draw_texture(np.random.default_rng(0)))
    ((rows,),) = Encoder([branch]).encode([picture], role)
    return rows.vectors[0]


def test_the_rows_of_an_image_are_averaged_and_normalised():
    rows = Descriptors(("a", "b"), np.float32([[1, 0], [0, 1], [1, 0], [1, 0]]), np.int32([0, 0, 1, 1]))
    made = build("multiscale", scales=[0.5, 1.0]).apply(rows, "database")
    np.testing.assert_allclose(made.vectors, [[2**-0.5, 2**-0.5], [1, 0]], atol=1e-6)
    assert made.owners.tolist() == [0, 1]
    assert made.ids == ("a", "b")


def test_the_scales_are_those_of_the_paper_and_for_queries_the_same():
    transform = build("multiscale")
    assert transform.scales("database") == transform.scales("query") == (0.4, 0.5, 0.7, 1.0, 1.4)


def test_the_vector_is_the_mean_of_those_at_each_scale():
    single = [look(at(scale)) for scale in (0.5, 1.0, 2.0)]
    assert not np.allclose(single[0], single[1], atol=1e-3)
    mean = np.mean(single, axis=0)
    np.testing.assert_allclose(look(at(0.5, 1.0, 2.0)), mean / np.linalg.norm(mean), atol=1e-6)


def test_the_scale_of_one_changes_nothing():
    np.testing.assert_allclose(look(at(1.0)), look(Branch(LITE0, POOLED)), atol=1e-6)


def test_queries_have_scales_of_their_own_in_the_same_space():
    branch = at(1.0, query=(0.5, 1.0))
    np.testing.assert_allclose(look(branch), look(at(1.0)), atol=1e-6)
    np.testing.assert_allclose(look(branch, "query"), look(at(0.5, 1.0)), atol=1e-6)
    assert Encoder([branch]).spaces == Encoder([at(1.0)]).spaces != Encoder([at(0.5)]).spaces


def test_pictures_are_decoded_as_large_as_the_largest_scale_needs():
    assert Encoder([at(0.5, 2.0)]).max_side == 2 * Encoder([Branch(LITE0, POOLED)]).max_side
    assert Encoder([at(0.5, query=(3.0,))]).query_side == 3 * Encoder([Branch(LITE0, POOLED)]).query_side


def test_branches_share_the_passes_at_the_scales_that_they_have_in_common(monkeypatch: pytest.MonkeyPatch):
    from resight.encode.backbones.efficientnet_lite import EfficientNetLite

    seen: list[float] = []
    extract = EfficientNetLite.extract
    monkeypatch.setattr(
        EfficientNetLite,
        "extract",
        lambda self, pictures, scale=1.0: seen.append(scale) or extract(self, pictures, scale),
    )
    encoder = Encoder([Branch(LITE0, POOLED), at(0.5, 1.0), at(1.0, 2.0)])
    list(encoder.encode([make_picture(draw_texture(np.random.default_rng(0)))]))
    assert sorted(seen) == [0.5, 1.0, 2.0]


def test_tokens_cannot_be_averaged():
    with pytest.raises(RecipeError, match="one vector per image"):
        look(Branch(LITE0, Choice("tokens"), (Choice("multiscale"),)))


def test_key_points_have_no_scales():
    branch = Branch(Choice("sift"), Choice("vlad"), (Choice("multiscale"),))
    with pytest.raises(RecipeError, match="SIFT searches all scales itself"):
        look(branch)


def test_it_stands_before_other_transforms():
    from resight.encode import transforms

    class Later:
        fingerprint = "later"

        def apply(self, rows: Descriptors, role: str) -> Descriptors:  # noqa: ARG002
            return rows

    original = transforms.build
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transforms, "build", lambda name, **how: Later() if name == "later" else original(name, **how))
        with pytest.raises(RecipeError, match="is not the first"):
            Encoder([Branch(LITE0, POOLED, (Choice("later"), Choice("multiscale")))])


@pytest.mark.parametrize(
    "settings", [{"scales": []}, {"scales": [0.0]}, {"query_scales": []}, {"scales": [float("nan")]}]
)
def test_scales_that_mean_nothing_are_refused(settings: dict):
    with pytest.raises(RecipeError):
        build("multiscale", **settings)


def test_rows_go_in_unchanged():
    rows = global_rows(["a"], [[3.0, 4.0]])
    build("multiscale", scales=[1.0]).apply(rows, "database")
    assert rows.vectors.tolist() == [[3, 4]]
