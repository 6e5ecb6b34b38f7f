from pathlib import Path

import numpy as np

from resight.collection.attributes import read_positions
from resight.search.gallery import restrict
from resight.store import ImageRecord
from resight.types import Positions


def record(id: str, **attributes: object) -> ImageRecord:
    return ImageRecord(id, Path(id), "", 0, 0, (1, 1), attributes)  # type: ignore[arg-type]


def test_positions_are_those_of_images_with_numbers_on_the_earth():
    found = read_positions(
        [
            record("a", lat=52.5, lon=13, heading=90),
            record("b", lat=-90.0, lon=180.0),
            record("none"),
            record("half", lat=1.0),
            record("text", lat="52", lon="13"),
            record("off", lat=91.0, lon=0.0),
            record("nan", lat=float("nan"), lon=0.0),
            record("truth", lat=True, lon=True),
        ]
    )
    assert found.ids == ("a", "b")
    assert found.lats.tolist() == [52.5, -90] and found.lons.tolist() == [13, 180]
    assert found.headings[0] == 90 and np.isnan(found.headings[1])


def test_no_records_have_no_positions():
    found = read_positions([])
    assert len(found) == 0
    assert found.lats.shape == found.lons.shape == found.headings.shape == (0,)


class Known:
    def positions(self) -> Positions:
        return Positions(("a", "b", "c"), np.array([1.0, 2, 3]), np.array([4.0, 5, 6]), np.array([7.0, 8, 9]))


def test_images_that_a_filter_leaves_out_have_no_position():
    found = restrict(Known(), frozenset({"c", "a", "x"})).positions()  # type: ignore[arg-type]
    assert found.ids == ("a", "c")
    assert [found.lats.tolist(), found.lons.tolist(), found.headings.tolist()] == [[1, 3], [4, 6], [7, 9]]
    assert len(restrict(Known(), frozenset()).positions()) == 0  # type: ignore[arg-type]


def test_without_a_filter_all_are_known():
    assert len(restrict(Known(), None).positions()) == 3  # type: ignore[arg-type]
