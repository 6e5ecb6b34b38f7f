"""Easy, medium and hard: which positives count, what leaves the ranking, and names that carry a protocol."""

import math

import pytest

from resight.errors import InputError, RecipeError
from resight.evaluate import judge, judge_all
from resight.evaluate.judge_query import narrow, split
from resight.evaluate.metrics import build
from resight.types import Judgement

GRADED = Judgement({"e": 2, "h": 1, "f": 2, "n": 0}, ignored=frozenset({"j"}))
RANKING = ["h", "j", "e", "n", "f"]


def test_easy_counts_grade_2_and_ignores_grade_1() -> None:
    # Without h and j: e n f, positives at ranks 1 and 3.
    assert judge(RANKING, GRADED, ["easy/ap"]) == {"easy/ap": (1 + 2 / 3) / 2}


def test_hard_counts_grade_1_and_ignores_grade_2() -> None:
    # Without j, e and f: h n.
    assert judge(["n", *RANKING[:3]], GRADED, ["hard/ap"]) == {"hard/ap": 1 / 2}


def test_medium_counts_both_as_a_metric_without_a_protocol_does() -> None:
    values = judge(RANKING, GRADED, ["medium/ap", "ap"])
    assert values == {"medium/ap": (1 + 1 + 3 / 4) / 3, "ap": (1 + 1 + 3 / 4) / 3}


def test_query_without_a_positive_under_a_protocol_has_no_value_there() -> None:
    values = judge(["a", "b"], Judgement({"b": 2}), ["easy/ap", "hard/ap", "hard/precision_revisited@10", "medium/ap"])
    assert math.isnan(values["hard/ap"])
    assert math.isnan(values["hard/precision_revisited@10"])
    assert (values["easy/ap"], values["medium/ap"]) == (1 / 2, 1 / 2)


def test_query_without_any_positive_is_refused_under_a_protocol_too() -> None:
    with pytest.raises(InputError, match="without positives"):
        judge(["a"], Judgement({"a": 0}), ["hard/ap"])


def test_localising_metric_takes_a_protocol() -> None:
    box = (0.0, 0.0, 4.0, 4.0)
    truth = Judgement({"e": 2, "h": 1}, boxes={"e": box, "h": box})
    values = judge(["h", "e"], truth, ["easy/locscore", "locscore"], {"e": box})
    assert values == {"easy/locscore": 1.0, "locscore": 1 / 2}


def test_narrowing_leaves_other_fields_and_the_argument_alone() -> None:
    easy = narrow(GRADED, "easy")
    assert (dict(easy.grades), easy.ignored) == ({"e": 2, "f": 2, "n": 0}, {"j", "h"})
    assert GRADED.grades["h"] == 1
    assert narrow(GRADED, None) is GRADED


def test_convention_names_the_protocol_and_the_metric() -> None:
    convention = build("hard/precision_revisited@7").convention
    assert convention.startswith("Hard: grade 1 is a positive")
    assert "first 7" in convention
    assert build("easy/uap").convention.startswith("Easy:")


def test_name_is_split_at_the_slash() -> None:
    assert split("easy/ap@20") == ("easy", "ap@20")
    assert split("ap") == (None, "ap")


@pytest.mark.parametrize("name", ["tiny/ap", "/ap", "Easy/ap"])
def test_unknown_protocol_lists_the_known_ones(name: str) -> None:
    with pytest.raises(RecipeError) as caught:
        judge_all([], [name])
    assert "easy, medium, hard" in caught.value.expected


@pytest.mark.parametrize("name", ["easy/", "easy/hard/ap", "easy/recall"])
def test_protocol_without_a_proper_metric_is_refused(name: str) -> None:
    with pytest.raises(RecipeError):
        judge_all([], [name])
