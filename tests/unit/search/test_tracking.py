import numpy as np
import pytest

from resight.errors import RecipeError
from resight.geodesy import RADIUS, Positions, metres_between, to_vectors
from resight.search.position import Candidates
from resight.search.tracking import Config, expect, move, track
from resight.types import Ranking

METRE = 360 / (2 * np.pi * RADIUS)  # degrees of latitude
# A street from south to north, an image every 30 m, and another street far away that looks the same at its images 5-8.
STREET = [(50 + 30 * METRE * number, 10.0) for number in range(12)]
ELSEWHERE = [(51 + 500 * METRE * number, 10.0) for number in range(12)]
IDS = tuple([f"s{number}" for number in range(12)] + [f"e{number}" for number in range(12)])


def lay_out(headings: dict[str, float] | None = None) -> Positions:
    lats, lons = np.array(STREET + ELSEWHERE, np.float64).T
    return Positions(IDS, lats, lons, np.array([(headings or {}).get(name, np.nan) for name in IDS]))


def see(**chances: float) -> Ranking:
    return Ranking("q", (), np.zeros(0, np.float32), probabilities=chances)


def test_what_came_before_decides_between_two_places_that_look_alike():
    frames = [see(s3=0.9), see(s4=0.9), see(s5=0.3, e5=0.3)]
    *_, last = track(frames, lay_out())
    (alone,) = track(frames[2:], lay_out())
    assert last is not None and alone is not None
    assert metres_between(*STREET[5], [last.lat], [last.lon])[0] < 10
    assert last.known and not alone.known
    assert "s5" in last.support


def test_a_camera_that_is_elsewhere_is_followed_there():
    *_, last = track([see(s3=0.9), see(s4=0.9), see(e5=0.9), see(e5=0.9)], lay_out())
    assert last is not None
    assert "e5" in last.support and last.known


def test_a_frame_without_candidates_has_no_estimate_and_forgets_nothing():
    found = list(track([see(s3=0.9), see(), see(s4=0.3, e5=0.3)], lay_out()))
    assert found[1] is None
    assert found[2] is not None and "s4" in found[2].support


def test_the_first_frame_expects_nothing():
    now = Candidates(np.array([0, 1]), np.ones(2))
    assert expect(None, now, lay_out(), to_vectors(*np.array(STREET + ELSEWHERE).T), Config()).tolist() == [1, 1]


def test_moves_are_shares_of_all_images_that_can_be_reached():
    positions = lay_out()
    vectors = to_vectors(positions.lats, positions.lons)
    before = Candidates(np.array([5]), np.ones(1))
    everywhere = Candidates(np.arange(len(IDS)), np.ones(len(IDS)))
    moves = move(before, everywhere, positions, vectors, Config(step=30))
    assert moves.sum() == pytest.approx(1)
    # 30 m on: exp(-30² / (2 (30² + 2 · 25²))) of staying.
    assert moves[0, 6] / moves[0, 5] == pytest.approx(np.exp(-900 / (2 * (900 + 1250))), rel=1e-4)
    assert moves[0, 12:].sum() < 1e-9


def test_a_camera_seldom_turns_about():
    positions = lay_out({"s5": 0.0, "s6": 180.0, "s4": 10.0})
    vectors = to_vectors(positions.lats, positions.lons)
    before, now = Candidates(np.array([5]), np.ones(1)), Candidates(np.array([4, 6]), np.ones(2))
    ((same, turned),) = move(before, now, positions, vectors, Config(turn=0.2))
    assert turned == pytest.approx(0.2 * same, rel=1e-4)


@pytest.mark.parametrize("wrong", [{"step": 0}, {"jump": 0}, {"turn": 2}, {"trust": -1}])
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(RecipeError):
        Config(**wrong)
