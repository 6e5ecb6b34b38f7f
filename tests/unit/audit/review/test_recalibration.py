import math
from pathlib import Path

import numpy as np
import pytest

from resight.audit.dedup.pairs import Pair
from resight.audit.review.recalibration import (
    CORRECTION,
    FEWEST,
    LEAST_SCALE,
    Correction,
    correct_calibration,
    fit_correction,
    load_correction,
    require_both_verdicts,
    save,
    share_of_same,
)
from resight.audit.review.votes import Vote
from resight.errors import InputError
from resight.search.calibration import Calibration


def judge(probabilities: list[float], truths: list[bool]) -> Correction:
    pairs = [Pair(str(number), "x", "same", chance) for number, chance in enumerate(probabilities)]
    votes = [Vote("kim", str(number), "x", "same" if same else "different") for number, same in enumerate(truths)]
    return fit_correction(pairs, votes)


def test_a_pair_counts_once_whoever_voted() -> None:
    votes = [
        Vote("kim", "a", "b", "same"),
        Vote("lee", "a", "b", "same"),
        Vote("ann", "a", "b", "different"),
        Vote("ann", "c", "d", "unsure"),
        Vote("kim", "e", "f", "skip"),
    ]
    assert share_of_same(votes) == {("a", "b"): pytest.approx(2 / 3)}


def test_votes_that_agree_with_the_machine_hardly_move_it() -> None:
    rng = np.random.default_rng(0)
    chances = rng.uniform(0.02, 0.98, 400)
    found = judge(chances.tolist(), (rng.random(400) < chances).tolist())
    assert found.scale == pytest.approx(1, abs=0.2)
    assert found.shift == pytest.approx(0, abs=0.3)
    assert found.after == pytest.approx(found.before, abs=0.01)


def test_many_votes_correct_a_machine_that_is_too_sure() -> None:
    # It says 95 % (log-odds 2.94) where 70 % (.85) are true, and 5 % where 30 % are: the right scale is .85 / 2.94.
    chances = [0.95] * 200 + [0.05] * 200
    truths = [number % 10 < 7 for number in range(200)] + [number % 10 < 3 for number in range(200)]
    found = judge(chances, truths)
    assert found.correct(0.95) == pytest.approx(0.70, abs=0.02)
    assert found.correct(0.05) == pytest.approx(0.30, abs=0.02)
    assert found.after < found.before - 0.1
    assert found.before == pytest.approx(-0.7 * math.log(0.95) - 0.3 * math.log(0.05), abs=1e-9)


def test_a_few_votes_do_not_overturn_it() -> None:
    found = judge([0.9] * FEWEST, [False] * FEWEST)
    assert 0.2 < found.correct(0.9) < 0.8  # ten in a row against it, and it still leaves room
    assert judge([0.9] * 200, [False] * 200).correct(0.9) < 0.1


def test_ten_votes_do_not_erase_what_the_machine_knows() -> None:
    found = judge([0.9 + 0.01 * number for number in range(10)], [False] * 10)
    assert found.scale > 0.4
    assert found.correct(0.9999) - found.correct(0.01) > 0.9


def test_however_many_votes_contradict_it_a_surer_pair_stays_surer() -> None:
    found = judge([0.9] * 500, [False] * 500)
    assert found.scale == LEAST_SCALE
    assert found.correct(0.9) < 0.05 < found.correct(0.9999)


def test_votes_at_even_odds_say_nothing_about_the_scale() -> None:
    assert judge([0.5] * 20, [True] * 15 + [False] * 5).scale == 1


def test_votes_of_one_kind_are_too_little_to_calibrate_by() -> None:
    with pytest.raises(InputError, match="all different"):
        require_both_verdicts(judge([0.9] * 20, [False] * 20))
    with pytest.raises(InputError, match="all the same"):
        require_both_verdicts(judge([0.9] * 20, [True] * 20))
    require_both_verdicts(judge([0.9] * 20, [False] + [True] * 19))


def test_a_saved_correction_comes_back(tmp_path: Path) -> None:
    assert load_correction(tmp_path / CORRECTION) is None
    found = judge([0.9] * 20, [False] * 4 + [True] * 16)
    save(found, tmp_path / CORRECTION)
    assert load_correction(tmp_path / CORRECTION) == found


@pytest.mark.parametrize(
    "text", ["", "[]", '{"scale": 1}', '{"scale": 0, "shift": 0, "pairs": 9, "same": 1, "before": 1, "after": 1}']
)
def test_a_file_that_is_no_correction_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / CORRECTION).write_text(text)
    with pytest.raises(InputError, match="not a correction"):
        load_correction(tmp_path / CORRECTION)


def test_a_correction_never_turns_the_ranking_round() -> None:
    found = judge([0.9] * 100 + [0.1] * 100, [False] * 100 + [True] * 100)
    assert found.correct(0.9) >= found.correct(0.1)


def test_a_vote_against_a_certainty_is_bounded() -> None:
    found = judge([1.0] * 20 + [0.0] * 20, [False] + [True] * 19 + [False] * 20)
    assert math.isfinite(found.before) and math.isfinite(found.after)
    assert found.correct(1.0) > 0.85


def test_too_few_votes_are_refused() -> None:
    with pytest.raises(InputError, match="10 pairs"):
        judge([0.9] * 9, [True] * 9)


def test_a_corrected_calibration_gives_the_corrected_probability() -> None:
    calibration = Calibration(-3.0, {"inliers": 1.5}, 1000, 500)
    correction = Correction(0.5, -0.4, 60, 40.0, 0.5, 0.4)
    odds = calibration.log_odds({"inliers": 20.0})
    changed = correct_calibration(calibration, correction)
    assert changed.log_odds({"inliers": 20.0}) == pytest.approx(0.5 * odds - 0.4)
    before = calibration.probability(odds)
    assert changed.probability(changed.log_odds({"inliers": 20.0})) == pytest.approx(correction.correct(before))
    assert (changed.pairs, changed.same) == (1060, 540)
