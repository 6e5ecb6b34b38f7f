"""What every transform promises. One that needs a file or settings gets them from SETTINGS."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight import plugins
from resight.encode import heads, transforms
from resight.encode import whitening as whitenings
from resight.encode.transforms import Transform
from resight.errors import MissingExtra
from resight.types import Descriptors, Role

ROLES: tuple[Role, Role] = ("database", "query")
ROWS, WIDTH = 2, 16  # rows an image, and their dimensions


def draw_rows(seed: int = 0, images: int = 3) -> Descriptors:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(0.3, 1, size=(images * ROWS, WIDTH)).astype(np.float32)
    return Descriptors(
        ids=tuple(f"image {number}" for number in range(images)),
        vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
        owners=np.repeat(np.arange(images, dtype=np.int32), ROWS),
    )


def learn_whitening(folder: Path) -> dict[str, Any]:
    whitenings.save(whitenings.learn_pca(lambda: [draw_rows(1, 50).vectors]), folder / "whitening.npz")
    return {"file": str(folder / "whitening.npz")}


def make_head(folder: Path) -> dict[str, Any]:
    arrays = {"mean": np.full(WIDTH, 0.1, np.float32), "skip": draw_rows(2, 8).vectors[:, :5]}
    heads.save(heads.make(arrays, heads.Facts("", "linear", 8, 16)), folder / "head.safetensors")
    return {"file": str(folder / "head.safetensors")}


SETTINGS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "head": make_head,
    "multiscale": lambda _: {"scales": [0.5, 1.0]},  # as many as there are rows an image
    "whiten": learn_whitening,
}


@pytest.fixture(params=plugins.names("resight.encode.transforms"), scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def settings(name: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return SETTINGS[name](tmp_path_factory.mktemp(name)) if name in SETTINGS else {}


@pytest.fixture(scope="module")
def transform(name: str, settings: dict[str, Any]) -> Transform:
    try:
        return transforms.build(name, **settings)
    except MissingExtra as missing:
        pytest.skip(missing.problem)


@pytest.mark.parametrize("role", ROLES)
def test_rows_come_out_well_formed_for_the_same_images(transform: Transform, role: Role):
    rows, out = draw_rows(), transform.apply(draw_rows(), role)
    assert out.ids == rows.ids
    assert out.vectors.ndim == 2 and out.vectors.dtype == np.float32
    assert out.owners.shape == (len(out),) and out.owners.dtype == np.int32
    assert np.all(np.diff(out.owners) >= 0)
    assert set(out.owners.tolist()) == set(range(len(rows.ids)))
    for array, width in ((out.boxes, (4,)), (out.weights, ()), (out.points, (4,)), (out.words, ()), (out.seeds, (4,))):
        assert array is None or array.shape == (len(out), *width)


@pytest.mark.parametrize("role", ROLES)
def test_rows_are_of_unit_length(transform: Transform, role: Role):
    lengths = np.linalg.norm(transform.apply(draw_rows(), role).vectors, axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)


def test_rows_of_zeros_stay_finite(transform: Transform):
    rows = draw_rows()
    rows.vectors[:] = 0
    assert np.isfinite(transform.apply(rows, "database").vectors).all()


@pytest.mark.parametrize("role", ROLES)
def test_what_goes_in_is_only_read(transform: Transform, role: Role):
    rows, before = draw_rows(), draw_rows()
    rows.vectors.flags.writeable = rows.owners.flags.writeable = False
    transform.apply(rows, role)
    for field in fields(Descriptors):
        assert np.array_equal(getattr(rows, field.name), getattr(before, field.name))


@pytest.mark.parametrize("role", ROLES)
def test_the_same_rows_give_the_same_answer(name: str, settings: dict[str, Any], transform: Transform, role: Role):
    first = transform.apply(draw_rows(), role)
    second = transforms.build(name, **settings).apply(draw_rows(), role)
    assert np.array_equal(first.vectors, second.vectors)
    assert np.array_equal(first.owners, second.owners)


def test_both_roles_give_rows_that_can_be_compared(transform: Transform):
    image, query = (transform.apply(draw_rows(), role).vectors for role in ROLES)
    assert image.shape[1] == query.shape[1]
    assert image.dtype == query.dtype


@pytest.mark.parametrize("role", ROLES)
def test_images_do_not_change_one_another(transform: Transform, role: Role):
    together, alone = (transform.apply(draw_rows(images=images), role) for images in (3, 1))
    kept = together.vectors[together.owners == 0]
    # Numbers are drawn row by row, so that the first image is the same in both.
    np.testing.assert_allclose(kept, alone.vectors, atol=1e-6)


def test_the_fingerprint_does_not_change(name: str, settings: dict[str, Any], transform: Transform):
    before = transform.fingerprint
    transform.apply(draw_rows(), "database")
    assert before
    assert transform.fingerprint == before == transforms.build(name, **settings).fingerprint
