"""What images may be filtered by."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from resight.collection.attributes import NAMES, VALUES, AttributeSummary, AttributeTable, summarise
from resight.errors import InputError
from resight.search import filters
from resight.store import ImageRecord
from resight.types import Attribute

ROWS: dict[str, dict[str, Attribute]] = {
    "a": {"label": "crater", "year": 1990, "lat": 1.0, "lon": 2.0, "bright": True},
    "b": {"label": "dune", "year": 2001},
    "c": {"label": "crater", "year": 2001.5, "lat": 50.0, "lon": 2.0},
}


@dataclass
class Shelf:
    """A store of attributes; notes which of them were read."""

    rows: Mapping[str, Mapping[str, Attribute]]
    stamps: Mapping[str, int]
    read: list[str] = field(default_factory=list)

    def metadata(self, ids: Sequence[str]) -> Iterator[ImageRecord]:
        self.read.extend(ids)
        return (ImageRecord(name, Path(name), "", 1, 1, (8, 8), self.rows[name]) for name in ids)


@pytest.fixture
def table() -> AttributeTable:
    return AttributeTable.read(Shelf(ROWS, {"a": 1, "b": 2, "c": 3}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("where", "near", "chosen"),
    [
        ([], None, "abc"),
        (["label=crater"], None, "ac"),
        (["label=crater", "year>1990"], None, "c"),
        (["bright=TRUE"], None, "a"),
        (["label=red"], None, ""),
        (["label=dune OR year<1995"], None, "ab"),
        (["year IN (1990, 2001) AND (label=dune OR bright=true)"], None, "ab"),
        (["label NOT IN (dune, gate)"], None, "ac"),
        ([], (1.0, 2.0, 1000.0), "a"),
        (["label=crater"], (50.0, 2.0, 1000.0), "c"),
    ],
)
def test_the_images_that_meet_all_conditions_are_chosen(
    table: AttributeTable, where: list[str], near: tuple[float, float, float] | None, chosen: str
):
    assert table.filter(filters.parse(where, near)) == frozenset(chosen)


def test_an_attribute_that_no_image_has_is_an_error_that_lists_those_that_some_have(table: AttributeTable):
    with pytest.raises(InputError) as caught:
        table.filter(filters.parse(["label=crater", "yeer>3"]))
    assert caught.value.problem == "no image has the attribute 'yeer'"
    assert caught.value.expected == "one of bright, label, lat, lon, year"
    assert caught.value.fix == "did you mean 'year'?"
    assert (
        AttributeTable({}, {}).filter(filters.parse(["yeer>3"])) == frozenset()
    )  # an empty collection has no attributes


def test_of_another_state_only_what_has_changed_is_read(table: AttributeTable):
    later = Shelf({**ROWS, "c": {"label": "moved"}, "d": {"label": "new"}}, {"b": 2, "c": 4, "d": 5})
    after = AttributeTable.read(later, table)  # type: ignore[arg-type]
    assert later.read == ["c", "d"]
    assert after.filter(filters.parse(["label!=none"])) == frozenset("bcd")
    assert after.filter(filters.parse(["label=crater"])) == frozenset()
    assert table.filter(filters.parse(["label=crater"])) == frozenset("ac")


def test_positions_are_those_of_the_images_that_have_one(table: AttributeTable):
    assert table.positions.ids == ("a", "c")
    assert table.positions.lats.tolist() == [1.0, 50.0]


def test_attributes_are_told_with_their_kind_and_common_values(table: AttributeTable):
    assert table.summarise() == (
        AttributeSummary("label", "text", 3, values=(("crater", 2), ("dune", 1))),
        AttributeSummary("year", "number", 3, 1990.0, 2001.5, ((1990, 1), (2001, 1), (2001.5, 1))),
        AttributeSummary("lat", "number", 2, 1.0, 50.0, ((1.0, 1), (50.0, 1))),
        AttributeSummary("lon", "number", 2, 2.0, 2.0, ((2.0, 2),)),
        AttributeSummary("bright", "boolean", 1, values=((True, 1),)),
    )


def test_true_and_one_are_two_values_and_make_a_text():
    (told,) = summarise([{"x": True}, {"x": 1}, {"x": 1}])
    assert [told.kind, told.values, [type(value) for value, _ in told.values]] == [
        "text",
        ((1, 2), (True, 1)),
        [int, bool],
    ]


def test_no_more_names_and_values_are_told_than_somebody_would_read():
    rows = [{f"name {number}": number for number in range(NAMES + 5)}, *({"name 0": value} for value in range(99))]
    told = summarise(rows)
    assert [len(told), told[0].name, told[0].count, len(told[0].values)] == [NAMES, "name 0", 100, VALUES]
    assert [told[0].minimum, told[0].maximum] == [0.0, 98.0]
