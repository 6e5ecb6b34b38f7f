import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.errors import InputError
from resight.search import calibration as calibrations
from resight.search.calibration import Calibration, apply, choose, fit, load, save
from resight.types import Ranking

HAND_MADE = Calibration(bias=-2.0, weights={"asmk": 10.0, "inliers": 1.0})


def draw_samples(rng: np.random.Generator, count: int = 200) -> list[tuple[dict[str, float], bool]]:
    """Pairs whose similarity and inliers speak for the truth, with some overlap."""
    samples = []
    for number in range(count):
        same = number % 4 == 0
        inliers = float(rng.poisson(40 if same else 3))
        samples.append(({"asmk": float(rng.normal(0.3 if same else 0.1, 0.1)), "inliers": inliers}, same))
    return samples


def chances(calibration: Calibration, samples: list, same: bool) -> np.ndarray:
    return np.array(
        [calibration.probability(calibration.log_odds(signals)) for signals, truth in samples if truth is same]
    )


def test_log_odds_by_hand():
    # -2 + 10 · 0.1 + log(1 + 9)
    assert HAND_MADE.log_odds({"asmk": 0.1, "inliers": 9}) == pytest.approx(-1 + math.log(10))


def test_signals_of_further_key_points_have_the_shape_of_the_first():
    further = Calibration(bias=0.0, weights={"xfeat_inliers": 1.0, "best_significance": 1.0})
    assert further.log_odds({"xfeat_inliers": 9, "best_significance": 99}) == pytest.approx(math.log(1000))


def test_a_missing_signal_counts_as_zero_and_an_unknown_one_not_at_all():
    assert HAND_MADE.log_odds({"asmk": 0.1}) == pytest.approx(-1)
    assert HAND_MADE.log_odds({"asmk": 0.1, "weather": 99}) == pytest.approx(-1)


@pytest.mark.parametrize(("odds", "expected"), [(0, 0.5), (math.log(3), 0.75), (-math.log(9), 0.1)])
def test_probability_of_log_odds(odds: float, expected: float):
    assert HAND_MADE.probability(odds) == pytest.approx(expected)


@given(st.floats(allow_nan=False), st.integers(0, 10**6), st.integers(0, 10**6))
def test_nothing_is_ever_certain(odds: float, same: int, other: int):
    assert 0 < HAND_MADE.probability(odds) < 1
    assert 0 < Calibration(0, {}, pairs=same + other, same=same).probability(odds) < 1


def test_no_answer_is_surer_than_the_pairs_of_the_fit_allow():
    fitted = Calibration(0, {}, pairs=98 + 48, same=98)
    assert fitted.probability(25) == pytest.approx(99 / 100)
    assert fitted.probability(-25) == pytest.approx(1 / 50)
    assert fitted.probability(math.log(3)) == pytest.approx(0.75)


def test_applying_orders_by_the_odds_and_gives_each_its_probability():
    ranking = Ranking(
        "q",
        ("a", "b", "c"),
        np.array([3, 2, 1], np.float32),
        signals={"a": {"asmk": 0.2}, "b": {"asmk": 0.1, "inliers": 9}, "x": {"asmk": 1.0}},
    )
    applied = apply(ranking, HAND_MADE)
    assert applied.ids == ("b", "a", "c")
    np.testing.assert_allclose(applied.scores, [-1 + math.log(10), 0, -2], rtol=1e-6)
    assert applied.scores.dtype == np.float32
    assert applied.probabilities == pytest.approx({"b": 10 / (10 + math.e), "a": 0.5, "c": 1 / (1 + math.e**2)})
    assert ranking.ids == ("a", "b", "c")


def test_equal_odds_keep_their_order():
    ranking = Ranking("q", ("b", "a"), np.array([2, 1], np.float32))
    assert apply(ranking, HAND_MADE).ids == ("b", "a")


def test_without_a_calibration_the_ranking_stays_as_it_is():
    ranking = Ranking("q", ("a",), np.ones(1, np.float32))
    assert apply(ranking, None) is ranking


def test_an_empty_ranking_stays_empty():
    assert apply(Ranking("q", (), np.zeros(0, np.float32)), HAND_MADE).ids == ()


def test_a_fit_tells_the_pairs_apart():
    samples = draw_samples(np.random.default_rng(0))
    fitted = fit(samples)
    assert (fitted.pairs, fitted.same) == (200, 50)
    assert np.median(chances(fitted, samples, True)) > 0.95
    assert np.median(chances(fitted, samples, False)) < 0.05


def test_a_fit_is_right_on_average():
    # The bias is free, so that the probabilities add up to the targets: 51/52 for the same, 1/152 for the others.
    samples = draw_samples(np.random.default_rng(1))
    fitted = fit(samples)
    total = sum(1 / (1 + math.exp(-fitted.log_odds(signals))) for signals, _ in samples)
    assert total == pytest.approx(50 * 51 / 52 + 150 / 152, abs=1e-3)


def test_pairs_that_are_told_apart_perfectly_stay_uncertain():
    samples = [({"inliers": 100.0}, True)] * 20 + [({"inliers": 0.0}, False)] * 20
    fitted = fit(samples)
    assert 0.9 < chances(fitted, samples, True).min() < 0.99
    assert 0.01 < chances(fitted, samples, False).max() < 0.1


def test_a_signal_that_speaks_against_the_truth_gets_no_weight():
    samples = [
        ({**signals, "noise": 0.0 if same else 1.0}, same) for signals, same in draw_samples(np.random.default_rng(2))
    ]
    fitted = fit(samples)
    assert fitted.weights["noise"] == 0
    assert fitted.weights["asmk"] > 0 and fitted.weights["inliers"] > 0


def test_when_every_signal_misleads_only_the_share_is_left():
    fitted = fit([({"asmk": 0.1}, True)] * 10 + [({"asmk": 0.9}, False)] * 30)
    assert fitted.weights == {"asmk": 0}
    assert 1 / (1 + math.exp(-fitted.bias)) == pytest.approx((10 * 11 / 12 + 30 / 32) / 40, abs=1e-4)


@given(
    st.lists(
        st.tuples(
            st.fixed_dictionaries({"asmk": st.floats(-1, 1), "inliers": st.integers(0, 500).map(float)}), st.booleans()
        ),
        max_size=20,
    )
)
def test_whatever_the_pairs_no_weight_is_negative_and_no_answer_certain(pairs: list):
    samples = [*pairs, *[({"asmk": 0.5, "inliers": 30.0}, True)] * 5, *[({"asmk": 0.0, "inliers": 0.0}, False)] * 5]
    fitted = fit(samples)
    assert all(weight >= 0 and math.isfinite(weight) for weight in fitted.weights.values())
    assert all(0 < chance < 1 for same in (True, False) for chance in chances(fitted, samples, same))


@pytest.mark.parametrize(("same", "other"), [(4, 100), (100, 4), (0, 0)])
def test_too_few_pairs_of_a_kind_are_refused(same: int, other: int):
    with pytest.raises(InputError) as caught:
        fit([({"asmk": 1.0}, True)] * same + [({"asmk": 0.0}, False)] * other)
    assert caught.value.actual == f"{same} and {other}"


def test_what_was_saved_is_loaded_the_same(tmp_path: Path):
    both = [HAND_MADE, fit(draw_samples(np.random.default_rng(3)))]
    save(both, tmp_path / "calibration.json")
    assert load(tmp_path / "calibration.json") == both
    assert [path.name for path in tmp_path.iterdir()] == ["calibration.json"]


@pytest.mark.parametrize("content", ["", "{", "5", '[{"slope": 1}]', '["bias"]', "[5]"])
def test_a_file_with_something_else_is_no_calibration(tmp_path: Path, content: str):
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(InputError, match=r"bad\.json is not a calibration"):
        load(tmp_path / "bad.json")


def test_the_calibration_is_chosen_by_its_signals_own_before_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shipped, own = tmp_path / "shipped.json", tmp_path / "own.json"
    monkeypatch.setattr(calibrations, "SHIPPED", shipped)
    both, alone = Calibration(0, {"asmk": 1, "inliers": 1}), Calibration(1, {"asmk": 1})
    mine = Calibration(2, {"inliers": 1, "asmk": 3})
    save([alone, both], shipped)
    save([mine], own)
    assert choose(["inliers", "asmk"]) == both
    assert choose(["inliers", "asmk"], own) == mine
    assert choose(["asmk"], own) == alone
    assert choose(["asmk"], tmp_path / "missing.json") == alone
    assert choose(["vlad"], own) is None
    assert choose(["asmk", "inliers", "vlad"], own) is None


def test_a_calibration_may_know_the_scores_or_leave_them_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shipped = tmp_path / "shipped.json"
    monkeypatch.setattr(calibrations, "SHIPPED", shipped)
    rough, fine = Calibration(0, {"standout": 1}), Calibration(0, {"standout": 1, "asmk": 1})
    save([rough, fine], shipped)
    assert choose(["standout"], scores={"asmk": "sift"}) == fine
    assert choose(["standout"], scores={"tokens": "net"}) == rough
    assert choose(["standout", "inliers"], scores={"asmk": "sift"}) is None  # it would forget what the reranker found


def test_a_similarity_of_a_learnt_encoder_counts_for_that_encoding_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shipped = tmp_path / "shipped.json"
    monkeypatch.setattr(calibrations, "SHIPPED", shipped)
    tied = Calibration(0, {"standout": 1, "tokens": 1}, spaces={"tokens": "net #1"})
    save([tied], shipped)
    assert choose(["standout"], scores={"tokens": "net #1"}) == tied
    assert choose(["standout"], scores={"tokens": "net #2"}) is None


def test_of_several_branches_only_what_is_remarkable_counts():
    # 5 and less is what wrong candidates reach; 12 counts as log(1 + 7).
    calibration = Calibration(-1, {"asmk_standout": 2})
    assert calibration.log_odds({"asmk_standout": 4.9}) == -1
    assert calibration.log_odds({"asmk_standout": 12.0}) == pytest.approx(-1 + 2 * np.log(8))


def test_a_saved_calibration_that_was_changed_is_refused(tmp_path: Path):
    path = tmp_path / "calibration.json"
    save([Calibration(-1.25, {"inliers": 0.5}, 10, 5)], path)
    path.write_text(path.read_text().replace("-1.25", "-1.75"))
    with pytest.raises(InputError, match="is not a calibration"):
        load(path)


def test_an_excess_counts_up_to_a_limit() -> None:
    fitted = Calibration(-1.0, {"layout_excess": 10.0})
    assert fitted.log_odds({"layout_excess": 0.1}) == pytest.approx(0.0)
    assert fitted.log_odds({"layout_excess": 0.2}) == fitted.log_odds({"layout_excess": 0.6}) == pytest.approx(1.0)
    assert fitted.log_odds({"layout_excess": -0.6}) == pytest.approx(-3.0)
