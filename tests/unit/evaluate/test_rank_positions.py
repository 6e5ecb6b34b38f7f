"""Where ids are in a ranking: names, rows, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.errors import InputError
from resight.evaluate import judge
from resight.evaluate.rank_positions import find_positions, number_judgement
from resight.types import Judgement

NAMES = ["ap", "ap_trapezoid", "easy/ap", "hard/precision_revisited@3", "recall_fraction@4"]


@given(st.permutations(range(30)), st.sets(st.integers(0, 29), min_size=2), st.sets(st.integers(0, 29)))
def test_rows_are_judged_as_names_are(order: list[int], positives: set[int], junk: set[int]) -> None:
    grades = {f"i{row}": 1 + row % 2 for row in positives - junk} or {f"i{min(positives)}": 2}
    truth = Judgement(grades, frozenset(f"i{row}" for row in junk) - set(grades))
    by_row = number_judgement(truth, {f"i{row}": row for row in range(30)})
    ranked = order[:20]
    expected = judge([f"i{row}" for row in ranked], truth, NAMES)
    far_apart = Judgement(
        {row * 10**9: g for row, g in by_row.grades.items()}, frozenset(r * 10**9 for r in by_row.ignored)
    )
    for rows, judgement in (
        (np.array(ranked), by_row),
        (np.array(ranked, dtype=np.uint32), by_row),
        (ranked, by_row),
        (np.array(ranked) * 10**9, far_apart),
    ):
        assert judge(rows, judgement, NAMES) == pytest.approx(expected, nan_ok=True, abs=0)


@pytest.mark.parametrize("scale", [1, 10**9])
def test_row_that_is_ranked_twice_is_named(scale: int) -> None:
    with pytest.raises(InputError, match=f"{3 * scale} at ranks 2 and 4"):
        find_positions(np.array([1, 3, 2, 3]) * scale, [1])  # type: ignore[list-item]


@pytest.mark.parametrize(("ranked", "judged"), [([1, 2], "1"), (["1", "2"], 1), (np.array([1, 2]), "1")])
def test_rows_against_names_are_refused_and_never_just_not_found(ranked: object, judged: object) -> None:
    with pytest.raises(InputError, match="use different kinds of ids"):
        judge(ranked, Judgement({judged: 1}), ["ap"])  # type: ignore[arg-type, dict-item]


def test_judged_id_without_a_row_is_named() -> None:
    with pytest.raises(InputError, match="'b' is judged"):
        number_judgement(Judgement({"a": 1, "b": 1}), {"a": 0})


def test_rows_outside_the_ranking_are_not_found() -> None:
    assert find_positions(np.array([4, 0]), [0, 4, 7, -1]) == {4: 0, 0: 1}  # type: ignore[list-item]
    assert find_positions([], ["a"]) == {}
