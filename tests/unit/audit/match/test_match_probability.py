"""Signals of a match, worked out by hand."""

import pytest

from resight.audit.match.match_probability import LIMIT, Evidence, find_floor
from resight.audit.match.ranked_candidates import Candidate, Ranked
from resight.search.calibration import Calibration


def ranked(*odds: tuple[int, float]) -> Ranked:
    return Ranked(tuple(Candidate(entry, value, "a", "b") for entry, value in odds))


FORWARD = [ranked((0, 0.30), (1, 0.28)), ranked((0, 0.29)), ranked()]
BACKWARD = {0: ranked((0, 0.40), (1, 0.38)), 1: ranked((2, 0.10), (0, 0.08))}


def test_margins_over_other_candidates_and_over_rivals():
    evidence = Evidence(FORWARD, None, 2)
    assert evidence.list_signals(0, 0) == pytest.approx({"score": 0.3, "margin": 0.02, "rival": 0.01})
    assert evidence.list_signals(1, 0) == pytest.approx({"score": 0.29, "margin": LIMIT, "rival": -0.01})
    assert evidence.list_signals(0, 1) == pytest.approx({"score": 0.28, "margin": -0.02, "rival": LIMIT})
    assert evidence.is_mutual(0, 0) is None


def test_the_other_direction():
    evidence = Evidence(FORWARD, BACKWARD, 2)
    both = {"score": 0.3, "margin": 0.02, "rival": 0.01, "back": 0.4, "back_margin": 0.02}
    assert evidence.list_signals(0, 0) == pytest.approx(both)
    assert evidence.list_signals(0, 1)["back_margin"] == pytest.approx(-0.02)
    assert evidence.is_mutual(0, 0) is True
    assert evidence.is_mutual(1, 0) is False
    assert evidence.is_mutual(0, 1) is False


def test_what_the_other_direction_does_not_list_counts_as_its_last():
    backward = {0: ranked((0, 0.40), (2, 0.39))}
    signals = Evidence(FORWARD, backward, 2).list_signals(1, 0)
    assert (signals["back"], signals["back_margin"]) == pytest.approx((0.39, -0.01))


def test_no_pair_below_the_floor_can_be_listed():
    fitted = Calibration(-2.0, {"score": 0.5, "margin": 0.1})
    floor = find_floor(fitted, 0.8)
    signals = {"score": floor, "margin": LIMIT}
    assert fitted.probability(fitted.log_odds(signals)) == pytest.approx(0.8)
    assert find_floor(None, 0.5) == 0
