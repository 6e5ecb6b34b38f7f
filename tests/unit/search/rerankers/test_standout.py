"""The standout of a signal: the candidates' robust z-scores, with numbers worked out by hand."""

from typing import cast

import numpy as np
import pytest

from resight.search import rerankers
from resight.search.gallery import Gallery
from resight.search.rerankers.standout import measure, measure_leads
from resight.types import Query, Ranking

QUERY = Query("q", (1, 1), (0, 0, 1, 1), ())
UNUSED = cast(Gallery, None)


def test_the_best_stands_out_by_its_distance_from_the_median_in_spreads() -> None:
    values = [10.0, 4.0, 4.0, 3.0, 3.0, 3.0, 2.0, 2.0, 1.0]
    # Median 3; deviations 7, 1, 1, 0, 0, 0, 1, 1, 2: their median is 1, so that a spread is 1.4826.
    ids = tuple("abcdefghi")
    signals = {name: {"layout": value} for name, value in zip(ids, values, strict=True)}
    ranking = Ranking("q", ids, np.array(values, np.float32), signals=signals)
    found = rerankers.build("standout").rerank(QUERY, ranking, UNUSED)
    assert found.ids == ids
    assert found.signals["a"]["layout_standout"] == pytest.approx(7 / 1.4826, rel=1e-4)
    assert found.signals["d"]["layout_standout"] == 0
    assert found.signals["a"]["layout"] == 10
    # The second best stand out by 1 spread each.
    assert found.signals["a"]["layout_lead"] == pytest.approx(6 / 1.4826, rel=1e-4)
    assert found.signals["b"]["layout_lead"] == pytest.approx(-6 / 1.4826, rel=1e-4)


def test_images_that_no_reranker_looked_at_do_not_stand_out() -> None:
    signals = {name: {"layout": float(row)} for row, name in enumerate("abcdefgh", start=1)} | {"z": {"tokens": 0.5}}
    ranking = Ranking("q", tuple(signals), np.arange(9, 0, -1, dtype=np.float32), signals=signals)
    found = rerankers.build("standout", of="layout").rerank(QUERY, ranking, UNUSED)
    # Of 1 to 8 the median is 4.5; the distances from it have the median 2.
    assert found.signals["h"]["layout_standout"] == pytest.approx(3.5 / (2 * 1.4826), rel=1e-4)
    assert found.signals["z"] == {"tokens": 0.5, "layout_standout": 0.0, "layout_lead": 0.0}


def test_two_that_are_equally_good_lead_nobody() -> None:
    assert measure_leads(np.array([2, 7, 7, 1], np.float32)).tolist() == [-5, 0, 0, -6]
    assert measure_leads(np.array([3], np.float32)).tolist() == [0]


def test_the_excess_is_the_distance_from_the_median_candidate():
    assert measure(np.array([0.1, 0.2, 0.9], np.float32), "excess").tolist() == pytest.approx([-0.1, 0, 0.7])
    assert len(measure(np.zeros(0, np.float32), "excess")) == 0
    assert rerankers.build("standout", of="layout", measures=("excess",)).signals == ("layout_excess",)
