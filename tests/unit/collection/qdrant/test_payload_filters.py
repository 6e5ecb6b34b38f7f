"""A condition that is put to Qdrant lets through what the same condition lets through here."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from resight.collection.qdrant.export_plan import MARKER_NUMBER, number_image
from resight.collection.qdrant.payload_filters import find_kind, list_fields, make_fields, translate
from resight.errors import InputError
from resight.index.qdrant_backend.backend import Backend, Point, VectorLayout, VectorQuery, load_backend
from resight.search import filters

pytest.importorskip("qdrant_client")

IMAGES = [
    {"label": "crater", "year": 1900, "seen": True, "a.b c": "x", "lat": 48.0, "lon": 2.0},
    {"label": "Crater", "year": 1950.5, "seen": False, "a.b c": "y", "lat": 48.001, "lon": 2.0},
    {"label": "12", "year": -3, "seen": True, "lat": 48.1, "lon": 2.0},
    {"label": "012", "year": 1e300},
    {"label": "true", "mixed": 5, "lat": 48.0, "lon": 179.9999},
    {"label": "TRUE", "mixed": "five", "seen": "True"},
    {"label": "nan", "mixed": True, "lat": 91.0, "lon": 2.0},
    {},
]
KINDS = {
    name: sorted({find_kind(image[name]) for image in IMAGES if name in image})
    for name in {name for image in IMAGES for name in image}
}


@pytest.fixture(scope="module", params=["client", "edge"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    if request.param == "edge":
        pytest.importorskip("qdrant_edge")
        opened: Backend = load_backend("edge").open_edge(tmp_path_factory.mktemp("edge") / "shard")
    else:
        opened = load_backend("client").open_memory("images")
    opened.create({"v": VectorLayout(1)})
    opened.index_payload(list_fields(KINDS))
    opened.upsert(
        [Point(number, {"v": np.ones(1, np.float32)}, make_fields(image)) for number, image in enumerate(IMAGES)]
    )
    yield opened
    opened.close()


def find(place: Backend, where: list[str], near: tuple[float, float, float] | None = None) -> set[int]:
    found = place.query(VectorQuery("v", np.ones(1, np.float32), 100), translate(filters.parse(where, near), KINDS))
    return {int(point.number) for point in found}


EQUALITY, ORDER = ("=", "!="), ("=", "!=", "<", "<=", ">", ">=")
CONDITIONS = [
    *product(("label", "seen", "a.b c"), EQUALITY, ("crater", "12", "true", "TRUE", "x", "nan", "")),
    *product(("year",), ORDER, ("1900", "1900.0", "-3", "1950.5")),
    *product(("mixed",), EQUALITY, ("5", "5.0", "five", "True", "true")),
]


@pytest.mark.parametrize("condition", ["".join(parts) for parts in CONDITIONS])
def test_the_same_images_pass(place: Backend, condition: str):
    (one,) = filters.parse([condition])
    assert find(place, [condition]) == {number for number, image in enumerate(IMAGES) if one.holds(image)}


@pytest.mark.parametrize("near", [(48.0, 2.0, 50), (48.0, 2.0, 200), (48.0, 2.0, 12_000), (48.0, -179.9999, 100)])
def test_the_same_images_lie_in_a_circle(place: Backend, near: tuple[float, float, float]):
    (circle,) = filters.parse(near=near)
    expected = {number for number, image in enumerate(IMAGES) if circle.holds(image)}
    assert expected
    assert find(place, [], near) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "label=crater OR year<0",
        "(label=crater OR year=-3) AND seen=true",
        "label IN (crater, 12, nan)",
        "label NOT IN (crater, Crater)",
        "seen=true AND (year>1000 OR label IN (12, TRUE))",
    ],
)
def test_the_same_images_pass_joined_conditions(place: Backend, condition: str):
    parsed = filters.parse([condition])
    expected = {number for number, image in enumerate(IMAGES) if all(one.holds(image) for one in parsed)}
    assert expected
    assert find(place, [condition]) == expected


def test_an_attribute_that_no_image_has_is_refused_and_an_alias_is_resolved():
    with pytest.raises(InputError, match="no image has the attribute 'lable'") as caught:
        translate(filters.parse(["label=a OR lable=b"]), KINDS)
    assert caught.value.fix == "did you mean 'label'?"
    craters = {"diameter_km": ["number"]}
    assert translate(filters.parse(["diameter>2"]), craters) == translate(filters.parse(["diameter_km>2"]), craters)


def test_all_conditions_have_to_hold(place: Backend):
    assert find(place, ["year>=0", "seen=true"], (48.0, 2.0, 1000)) == {0}


@pytest.mark.parametrize("condition", ["label<m", "year<abc", "label>=3", "mixed>4", "seen<1"])
def test_what_would_need_an_order_of_texts_is_refused_by_name(condition: str):
    with pytest.raises(InputError, match=f"{condition}[\\s\\S]*order texts"):
        translate(filters.parse([condition]), KINDS)


def test_a_name_that_no_path_can_hold_is_refused_and_has_no_index():
    with pytest.raises(InputError, match="quotation mark"):
        translate(filters.parse(['a"b=1']), {})
    assert list_fields({'a"b': ["number"]}) == {"position": "geo"}


def test_without_conditions_there_is_none():
    assert translate((), {}) is None


def test_fields_are_indexed_by_the_kinds_of_their_values():
    assert list_fields({"year": ["number"], "mixed": ["number", "text", "truth"]}) == {
        "position": "geo",
        'numbers."year"': "float",
        'numbers."mixed"': "float",
        'attributes."mixed"': "keyword",
        'truths."mixed"': "keyword",
    }


def test_the_number_of_an_image_depends_on_its_id_alone():
    assert number_image("ü/日本.jpg") == number_image("ü/日本.jpg")
    assert len({number_image("a"), number_image("b"), number_image(""), MARKER_NUMBER}) == 4
