import numpy as np

from resight.geodesy import Positions
from resight.search.gallery import filter_gallery


class Known:
    def positions(self) -> Positions:
        return Positions(("a", "b", "c"), np.array([1.0, 2, 3]), np.array([4.0, 5, 6]), np.array([7.0, 8, 9]))


def test_images_that_a_filter_leaves_out_have_no_position():
    found = filter_gallery(Known(), frozenset({"c", "a", "x"})).positions()  # type: ignore[arg-type]
    assert found.ids == ("a", "c")
    assert [found.lats.tolist(), found.lons.tolist(), found.headings.tolist()] == [[1, 3], [4, 6], [7, 9]]
    assert len(filter_gallery(Known(), frozenset()).positions()) == 0  # type: ignore[arg-type]


def test_without_a_filter_all_are_known():
    assert len(filter_gallery(Known(), None).positions()) == 3  # type: ignore[arg-type]
