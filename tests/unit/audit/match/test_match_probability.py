"""Signals of a match, worked out by hand."""

import pytest

from resight.audit.match.match_probability import LIMIT, Evidence, find_floor
from resight.audit.match.ranked_candidates import Candidate, Ranked
from resight.search.calibration import Calibration


def ranked(*odds: tuple[int, float]) -> Ranked:
    return Ranked(tuple(Candidate(entry, value, "a", "b") for entry, value in odds))


FORWARD = [ranked((0, 3.0), (1, 1.0)), ranked((0, 2.0)), ranked()]
BACKWARD = {0: ranked((0, 4.0), (1, 3.5)), 1: ranked((2, 1.0), (0, 0.5))}


def test_margins_over_other_candidates_and_over_rivals():
    evidence = Evidence(FORWARD, None, 2)
    assert evidence.list_signals(0, 0) == {"log_odds": 3.0, "margin": 2.0, "rival": 1.0}
    assert evidence.list_signals(1, 0) == {"log_odds": 2.0, "margin": LIMIT, "rival": -1.0}
    assert evidence.list_signals(0, 1) == {"log_odds": 1.0, "margin": -2.0, "rival": LIMIT}
    assert evidence.list_signals(0, 1, frozenset({0}))["margin"] == LIMIT
    assert evidence.is_mutual(0, 0) is None


def test_the_other_direction():
    evidence = Evidence(FORWARD, BACKWARD, 2)
    assert evidence.list_signals(0, 0) == {
        "log_odds": 3.0,
        "margin": 2.0,
        "rival": 1.0,
        "back": 4.0,
        "back_margin": 0.5,
    }
    assert evidence.list_signals(0, 1)["back_margin"] == -0.5
    assert evidence.is_mutual(0, 0) is True
    assert evidence.is_mutual(1, 0) is False
    assert evidence.is_mutual(0, 1) is False


def test_what_the_other_direction_does_not_list_counts_as_its_last():
    backward = {0: ranked((0, 4.0), (2, 3.0))}
    signals = Evidence(FORWARD, backward, 2).list_signals(1, 0)
    assert (signals["back"], signals["back_margin"]) == (3.0, -1.0)


def test_no_pair_below_the_floor_can_be_listed():
    fitted = Calibration(-2.0, {"log_odds": 0.5, "margin": 0.1})
    floor = find_floor(fitted, 0.8)
    signals = {"log_odds": floor, "margin": LIMIT}
    assert fitted.probability(fitted.log_odds(signals)) == pytest.approx(0.8)
    assert find_floor(None, 0.5) == 0
