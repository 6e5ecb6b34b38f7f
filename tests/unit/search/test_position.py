import numpy as np
import pytest

from resight.geodesy import RADIUS, PositionEstimate, Positions, metres_between
from resight.search.position import (
    CANDIDATES,
    PRIOR,
    SCALE,
    SHARPNESS,
    estimate_position,
    find_radius,
    gather_positions,
    weigh,
)
from resight.types import Ranking

METRE = 360 / (2 * np.pi * RADIUS)  # degrees of latitude
OFFSET = SCALE * np.sqrt(2 * np.log(10))  # 53.6 m hold nine tenths of a Gaussian of 25 m along each axis


def place(*points: tuple[float, float]) -> Positions:
    lats, lons = np.array(points, np.float64).reshape(-1, 2).T
    return Positions(tuple("abcdefgh"[: len(points)]), lats, lons, np.full(len(points), np.nan))


def ask(positions: Positions, **chances: float) -> PositionEstimate | None:
    ids = tuple(chances)
    return estimate_position(Ranking("q", ids, np.zeros(len(ids), np.float32), probabilities=chances), positions)


def test_one_sure_answer_is_where_it_was_taken():
    found = ask(place((52.5, 13.25), (52.6, 13.25)), a=0.99, b=1e-6)
    assert found is not None
    assert (found.lat, found.lon) == pytest.approx((52.5, 13.25))
    odds = PRIOR * 99**SHARPNESS
    assert found.probability == pytest.approx(odds / (1 + odds), abs=1e-6)
    assert found.known and found.support == ("a",)
    assert found.metres == pytest.approx(OFFSET)
    assert found.coverage == 0.9


def test_answers_side_by_side_are_averaged_by_their_weight():
    # 20 m apart and equally sure: the middle, to which each is 10 m away.
    found = ask(place((10.0, 20.0), (10 + 20 * METRE, 20.0)), a=0.5, b=0.5)
    assert found is not None
    assert found.lat == pytest.approx(10 + 10 * METRE, abs=0.01 * METRE + 3 * METRE)
    assert found.support == ("a", "b")
    assert found.metres == pytest.approx(np.hypot(10, OFFSET), rel=0.05)
    assert found.probability == pytest.approx(2 * PRIOR / (1 + 2 * PRIOR))


def test_two_places_that_are_equally_likely_are_no_answer():
    found = ask(place((10.0, 20.0), (10 + 1000 * METRE, 20.0)), a=0.5, b=0.5)
    assert found is not None
    assert not found.known
    assert found.probability == pytest.approx(PRIOR / (1 + 2 * PRIOR))
    assert found.metres == pytest.approx(np.hypot(1000, OFFSET), rel=1e-3)


def test_many_that_agree_beat_one_that_is_surer():
    crowd = [(10 + number * METRE, 20.0) for number in range(5)]
    found = ask(place(*crowd, (11.0, 20.0)), a=0.3, b=0.3, c=0.3, d=0.3, e=0.3, f=0.4)
    assert found is not None
    assert metres_between(10.0, 20.0, [found.lat], [found.lon])[0] < 5
    assert set(found.support) == set("abcde")


def test_nothing_that_is_like_it_is_said():
    found = ask(place((52.5, 13.25), (52.6, 13.25)), a=0.001, b=0.001)
    assert found is not None
    assert not found.known and found.probability < 0.01


def test_a_place_may_lie_on_the_antimeridian_and_on_a_pole():
    found = ask(place((0.0, 180 - 5 * METRE), (0.0, -180 + 5 * METRE)), a=0.5, b=0.5)
    assert found is not None
    assert metres_between(0.0, 180.0, [found.lat], [found.lon])[0] < 1
    assert found.metres == pytest.approx(np.hypot(5, OFFSET), rel=0.02)
    found = ask(place((90 - 5 * METRE, 0.0), (90 - 5 * METRE, 120.0), (90 - 5 * METRE, -120.0)), a=0.5, b=0.5, c=0.5)
    assert found is not None
    assert metres_between(90.0, 0.0, [found.lat], [found.lon])[0] < 1


def test_equal_positions_are_one_place():
    found = ask(place(*[(48.0, 2.0)] * 3), a=0.2, b=0.2, c=0.2)
    assert found is not None
    assert (found.lat, found.lon, found.metres) == pytest.approx((48.0, 2.0, OFFSET))


def test_without_positions_or_probabilities_there_is_no_estimate():
    assert ask(place(), a=0.9) is None
    assert ask(place((1.0, 1.0))) is None
    assert ask(place((1.0, 1.0)), z=0.9) is None


def test_images_without_a_position_do_not_count():
    found = ask(place((1.0, 1.0)), z=0.99, a=0.5)
    assert found is not None
    assert found.support == ("a",)


def test_only_the_best_candidates_are_weighed():
    ids = [str(number) for number in range(CANDIDATES + 10)]
    chances = {name: 0.001 * (number + 1) for number, name in enumerate(ids)}
    ranking = Ranking("q", (), np.zeros(0, np.float32), probabilities=chances)
    found = weigh(ranking, {name: row for row, name in enumerate(ids)})
    assert found.rows.tolist() == list(range(CANDIDATES + 9, 9, -1))
    assert found.odds[0] == pytest.approx(PRIOR * (0.04 / 0.96) ** SHARPNESS)


def test_the_radius_holds_nine_tenths_of_the_weight():
    distances, weights = np.array([300.0, 0.0, 40.0]), np.array([0.09, 0.6, 0.31])
    assert find_radius(distances, weights) == pytest.approx(np.hypot(40, OFFSET))
    assert find_radius(distances, np.array([0.11, 0.6, 0.29])) == pytest.approx(np.hypot(300, OFFSET))


def test_positions_are_those_of_images_with_numbers_on_the_earth():
    found = gather_positions(
        [
            ("a", {"lat": 52.5, "lon": 13, "heading": 90}),
            ("b", {"lat": -90.0, "lon": 180.0}),
            ("none", {}),
            ("half", {"lat": 1.0}),
            ("text", {"lat": "52", "lon": "13"}),
            ("off", {"lat": 91.0, "lon": 0.0}),
            ("nan", {"lat": float("nan"), "lon": 0.0}),
            ("truth", {"lat": True, "lon": True}),
        ]
    )
    assert found.ids == ("a", "b")
    assert found.lats.tolist() == [52.5, -90] and found.lons.tolist() == [13, 180]
    assert found.headings[0] == 90 and np.isnan(found.headings[1])


def test_no_images_have_no_positions():
    found = gather_positions([])
    assert len(found) == 0
    assert found.lats.shape == found.lons.shape == found.headings.shape == (0,)
