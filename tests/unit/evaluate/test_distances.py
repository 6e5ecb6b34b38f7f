from pathlib import Path

import numpy as np
import pytest

from resight.errors import InputError
from resight.evaluate.distances import find_neighbours, tabulate_distances
from resight.evaluate.evaluation import Row
from resight.evaluate.summary import QuerySummary, Summary
from resight.geodesy import RADIUS
from resight.types import Dataset, ImageRef

METRE = 360 / (2 * np.pi * RADIUS)  # degrees of latitude


def place(id: str, metres: float | None) -> ImageRef:
    known = {} if metres is None else {"lat": 10 + metres * METRE, "lon": 20.0}
    return ImageRef(id, Path(id), attributes=known)


def make_dataset() -> Dataset:
    database = (place("a", 0), place("b", 10), place("c", 30), place("d", 60), place("e", 100), place("f", None))
    queries = (place("q", 0), place("r", 100), place("s", None))
    return Dataset("street", database, queries, {})


def row(**best: str) -> Row:
    queries = tuple(QuerySummary(query, "", id, None, 0.0, 0.0, {}, None, True, {}) for query, id in best.items())
    return Row("tokens", Summary({}, "street", 6, {}, queries))


def test_the_nearest_images_in_metres_by_hand():
    found = find_neighbours([(10.0, 20.0)], [(10 + 30 * METRE, 20.0), (10.0, 20.0), (10 + 10 * METRE, 20.0)])
    assert found == pytest.approx(np.array([[0, 10, 30]]), abs=1e-6)


def test_the_table_has_percentiles_over_the_queries():
    # q is 0 and r is 0 from its nearest; the 5th nearest of both is 100 m away.
    table = tabulate_distances(make_dataset())
    assert table.columns == ("to", "n", "P10", "P25", "P50", "P75", "P90")
    assert table.rows == (("1-NN", "2", *["0.00"] * 5), ("5-NN", "2", *["100.00"] * 5))
    assert table.notes[-1] == "1 images and 1 queries have no position."


def test_answers_are_measured_where_both_positions_are_known():
    # q was answered with c, 30 m away; r with e, right there; of s nothing is known, and neither of f.
    table = tabulate_distances(make_dataset(), [row(q="c", r="e", s="a")])
    assert table.rows[-1] == ("answer: tokens", "2", "3.00", "7.50", "15.00", "22.50", "27.00")
    assert tabulate_distances(make_dataset(), [row(q="f")]).rows[-1][0] == "5-NN"


def test_a_data_set_without_positions_is_refused():
    dataset = Dataset("things", (place("a", None),), (place("q", 1),), {})
    with pytest.raises(InputError, match="no positions to measure"):
        tabulate_distances(dataset)
