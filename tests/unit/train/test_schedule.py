import pytest

from resight.train.optim import find_rate


def test_it_warms_up_in_a_line_and_falls_as_half_a_cosine():
    rates = [find_rate(step, total=8, warm=4) for step in range(8)]
    assert rates == pytest.approx([0.25, 0.5, 0.75, 1, 1, 0.853553, 0.5, 0.146447], abs=1e-6)


def test_without_a_warm_up_it_starts_in_full():
    assert find_rate(0, total=10, warm=0) == 1


def test_a_warm_up_longer_than_the_training_never_ends():
    assert find_rate(9, total=10, warm=20) == 0.5
