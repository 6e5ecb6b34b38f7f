"""What every descriptor promises, with its default settings."""

import numpy as np
import pytest
from support.builders import draw_texture, fill_picture, make_picture

from resight import plugins
from resight.encode import backbones, descriptors
from resight.encode.descriptors import Descriptor
from resight.errors import MissingExtra, RecipeError
from resight.types import Descriptors, Features, Picture, Role

ROLES: tuple[Role, Role] = ("database", "query")


def detect(picture: Picture) -> Features:
    (features,) = backbones.build("sift").extract([picture])
    return features


def draw_grid() -> Features:
    """What a vision transformer gives for two images: 4 × 6 patches, a CLS token and its attention."""
    rng = np.random.default_rng(0)
    return Features(
        ids=("texture", "second"),
        patches=rng.normal(size=(2, 24, 16)).astype(np.float32),
        sizes=np.array([[320, 240], [300, 200]], np.int32),
        grid=(4, 6),
        cls=rng.normal(size=(2, 16)).astype(np.float32),
        attention=rng.dirichlet(np.ones(24), 2).astype(np.float32),
    )


@pytest.fixture(params=plugins.names("resight.encode.descriptors"), scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def descriptor(name: str) -> Descriptor:
    try:
        return descriptors.build(name)
    except MissingExtra as missing:
        pytest.skip(missing.problem)


@pytest.fixture(scope="module")
def features(descriptor: Descriptor) -> Features:
    """Features of the kind that the descriptor takes: key points where it can, else a grid of patches."""
    points = detect(make_picture(draw_texture(np.random.default_rng(0)), "texture"))
    try:
        descriptor.describe(points, "database")
    except RecipeError:
        return draw_grid()
    return points


def assert_well_formed(rows: Descriptors, ids: tuple[str, ...]) -> None:
    count = len(rows.vectors)
    assert rows.ids == ids
    assert rows.vectors.ndim == 2
    assert rows.owners.shape == (count,) and rows.owners.dtype == np.int32
    assert np.all(np.diff(rows.owners) >= 0)
    assert count == 0 or (rows.owners[0] >= 0 and rows.owners[-1] < len(ids))
    for array, width in ((rows.boxes, (4,)), (rows.weights, ()), (rows.points, (4,)), (rows.words, ())):
        assert array is None or array.shape == (count, *width)
    assert np.isfinite(rows.vectors).all()


@pytest.mark.parametrize("role", ROLES)
def test_rows_are_well_formed_and_keep_the_ids(descriptor: Descriptor, features: Features, role: Role):
    rows = descriptor.describe(features, role)
    assert_well_formed(rows, features.ids)
    assert len(rows) >= len(features.ids)


def test_both_roles_give_rows_that_can_be_compared(descriptor: Descriptor, features: Features):
    image, query = (descriptor.describe(features, role) for role in ROLES)
    assert image.vectors.dtype == query.vectors.dtype
    assert image.vectors.shape[1] == query.vectors.shape[1]
    assert (image.words is None) == (query.words is None)
    assert (image.points is None) == (query.points is None)


@pytest.mark.parametrize("role", ROLES)
def test_an_image_without_key_points_has_rows_of_the_usual_width(
    descriptor: Descriptor, features: Features, role: Role
):
    if features.points is None:
        pytest.skip("it describes a grid of patches, which is never empty")
    rows = descriptor.describe(detect(fill_picture(64, 64)), role)
    usual = descriptor.describe(features, role)
    assert_well_formed(rows, ("blank",))
    assert len(rows) <= 1
    assert rows.vectors.shape[1] == usual.vectors.shape[1]
    assert rows.vectors.dtype == usual.vectors.dtype
    assert (rows.words is None, rows.points is None) == (usual.words is None, usual.points is None)


@pytest.mark.parametrize("role", ROLES)
def test_describing_again_gives_the_same_rows(name: str, descriptor: Descriptor, features: Features, role: Role):
    first, second = descriptor.describe(features, role), descriptors.build(name).describe(features, role)
    for field in ("vectors", "owners", "boxes", "weights", "points", "words"):
        assert np.array_equal(getattr(first, field), getattr(second, field))


def test_the_features_are_only_read(descriptor: Descriptor, features: Features):
    before = features.patches.copy()
    descriptor.describe(features, "database")
    assert np.array_equal(features.patches, before)


def test_the_fingerprint_does_not_change(name: str, descriptor: Descriptor):
    assert descriptor.fingerprint
    assert descriptors.build(name).fingerprint == descriptor.fingerprint
