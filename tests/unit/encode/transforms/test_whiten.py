from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from resight.encode import transforms
from resight.encode import whitening as whitenings
from resight.encode.encoder import Encoder
from resight.errors import RecipeError, SpaceMismatch
from resight.types import Branch, Choice, Descriptors

FACTS = whitenings.Facts("pca", 2, 2, 0, 0.0, 0.5, 2, 1.0)


def save(folder: Path, mean: object, projection: object) -> Path:
    path = folder / "w.npz"
    whitenings.save(whitenings.make(np.array(mean), np.array(projection), FACTS), path)
    return path


def rows(vectors: object, owners: list[int]) -> Descriptors:
    boxes = np.arange(4 * len(owners), dtype=np.float32).reshape(-1, 4)
    return Descriptors(("a", "b"), np.array(vectors, np.float32), np.array(owners, np.int32), boxes=boxes, space="s")


def test_every_row_is_centred_projected_and_made_of_unit_length(tmp_path: Path):
    whiten = transforms.build("whiten", file=save(tmp_path, [1, 1], [[3, 0], [0, 4]]))
    given = rows([[2, 2], [1, 3], [0, 0]], [0, 0, 1])
    out = whiten.apply(given, "query")
    np.testing.assert_allclose(out.vectors, [[0.6, 0.8], [0, 1], [0, 0]], atol=1e-6)
    assert out.vectors.dtype == np.float32
    assert (out.ids, out.space) == (given.ids, given.space)
    assert np.array_equal(out.owners, given.owners) and np.array_equal(out.boxes, given.boxes)


def test_the_fingerprint_is_that_of_what_the_file_holds(tmp_path: Path):
    first = transforms.build("whiten", file=save(tmp_path, [1, 1], [[3, 0], [0, 4]])).fingerprint
    again = transforms.build("whiten", file=save(tmp_path, [1, 1], [[3, 0], [0, 4]])).fingerprint
    other = transforms.build("whiten", file=save(tmp_path, [1, 1], [[3, 0], [0, 5]])).fingerprint
    assert first == again != other
    assert first.startswith("whiten(")


def test_rows_of_another_width_are_refused(tmp_path: Path):
    whiten = transforms.build("whiten", file=save(tmp_path, [0, 0], [[1, 0], [0, 1]]))
    with pytest.raises(RecipeError, match=r"(?s)2 dimensions.*3 dimensions"):
        whiten.apply(rows([[1, 2, 3]], [0]), "database")


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_codes_are_refused(tmp_path: Path, dtype: type):
    whiten = transforms.build("whiten", file=save(tmp_path, [0, 0], [[1, 0], [0, 1]]))
    codes = replace(rows([[1, 2]], [0]), vectors=np.ones((1, 2), dtype))
    with pytest.raises(RecipeError, match="pooled"):
        whiten.apply(codes, "database")


def test_a_file_has_to_be_named(tmp_path: Path):
    with pytest.raises(RecipeError, match="file"):
        transforms.build("whiten")
    with pytest.raises(RecipeError, match="not a whitening"):
        transforms.build("whiten", file=tmp_path / "missing.npz")


LITE = Choice("efficientnet_lite", {"variant": "lite0", "size": 64})


def build_encoder(scales: list[float], descriptor: Choice, *more: Choice) -> Encoder:
    multiscale = (Choice("multiscale", {"scales": scales}),) if scales else ()
    return Encoder([Branch(LITE, descriptor, transforms=(*multiscale, *more))])


@pytest.mark.parametrize("scales", [[], [1.0], [0.5, 1.0, 1.4]])
def test_any_scale_accepts_other_scales_of_the_same_network_and_nothing_else(tmp_path: Path, scales: list[float]):
    """Learnt at the scales 0.5 and 1; used at one scale, at another list, and without multiscale."""
    pooled = Choice("pooled")
    space = build_encoder([0.5, 1.0], pooled).spaces[0]
    path = tmp_path / "w.npz"
    learnt = whitenings.make(np.zeros(320), np.eye(320), replace(FACTS, space=space))
    whitenings.save(learnt, path)
    strict, lenient = (Choice("whiten", {"file": path, "any_scale": any_scale}) for any_scale in (False, True))
    with pytest.raises(SpaceMismatch, match="another kind"):
        build_encoder(scales, pooled, strict)
    assert learnt.fingerprint in build_encoder(scales, pooled, lenient).spaces[0]
    with pytest.raises(SpaceMismatch, match="another kind"):
        build_encoder(scales, Choice("pooled", {"pooling": "max"}), lenient)
