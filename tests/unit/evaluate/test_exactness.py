import pytest

from resight.evaluate.exactness import share


@pytest.mark.parametrize(
    ("same", "total", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),  # z² / (n + z²) = 3.8415 / 13.8415
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),  # 0.5 ± 1.96 / 1.38415 × √(0.025 + 0.0096)
        (198, 200, 0.9643, 0.9973),
    ],
)
def test_a_share_has_the_interval_of_wilson(same: int, total: int, low: float, high: float):
    found = share(3, same, total)
    assert (found.rank, found.same, found.rate) == (3, same, same / total)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
