"""judge: what leaves the ranking, what counts as found, how boxes are compared, what is refused.

Easy, medium and hard: which positives count, what leaves the ranking, and names that carry a protocol.
"""

import math

import numpy as np
import pytest

from resight.boxes import iou
from resight.errors import BoxError, InputError, RecipeError
from resight.evaluate import judge, judge_all
from resight.evaluate.metrics import build
from resight.evaluate.protocols import apply_protocol, split_name
from resight.types import Judgement

SQUARE = (0.0, 0.0, 10.0, 10.0)
HALF = (0.0, 0.0, 5.0, 10.0)


def test_all_names_of_the_public_face_are_answered_in_their_order() -> None:
    names = ["ap", "ap_trapezoid", "ap@20", "recall@10", "recall_fraction@10", "precision@10"]
    names += ["precision_revisited@10", "locscore", "locscore@0.3", "mlocscore"]
    values = judge(["a"], Judgement({"a": 1}, boxes={"a": SQUARE}), names, boxes={"a": SQUARE})
    assert list(values) == names
    assert values == {name: 0.1 if name == "precision@10" else 1.0 for name in names}


def test_grades_above_zero_are_positives() -> None:
    assert judge(["a", "b", "c"], Judgement({"a": 0, "b": 1, "c": 3}), ["ap"]) == {"ap": (1 / 2 + 2 / 3) / 2}


def test_ignored_ids_leave_before_ranks_are_counted() -> None:
    judgement = Judgement({"a": 1, "b": 1}, ignored=frozenset({"j", "k", "absent"}))
    assert judge(["j", "a", "k", "x", "b"], judgement, ["ap", "precision@2"]) == {
        "ap": (1 + 2 / 3) / 2,
        "precision@2": 0.5,
    }


def test_ignored_positive_is_no_positive() -> None:
    judgement = Judgement({"a": 1, "b": 1}, ignored=frozenset({"a"}))
    assert judge(["a", "b"], judgement, ["ap", "recall_fraction@1"]) == {"ap": 1.0, "recall_fraction@1": 1.0}


def test_positive_outside_the_ranking_counts_as_not_found() -> None:
    assert judge(["a"], Judgement({"a": 1, "b": 1}), ["ap", "recall@1"]) == {"ap": 0.5, "recall@1": 1.0}
    assert judge([], Judgement({"a": 1}), ["ap", "recall@1"]) == {"ap": 0.0, "recall@1": 0.0}


def test_ranking_may_be_a_numpy_array() -> None:
    assert judge(np.array(["x", "a"]), Judgement({"a": 1}), ["ap"]) == {"ap": 0.5}


def test_id_twice_in_the_ranking_is_named() -> None:
    with pytest.raises(InputError, match="'twin' at ranks 2 and 4"):
        judge(["a", "twin", "b", "twin"], Judgement({"a": 1}), ["ap"])


@pytest.mark.parametrize(
    "judgement", [Judgement({}), Judgement({"a": 0}), Judgement({"a": 1}, ignored=frozenset({"a"}))]
)
def test_query_without_positives_is_refused(judgement: Judgement) -> None:
    with pytest.raises(InputError, match="without positives"):
        judge(["a"], judgement, ["ap"])


def test_locscore_weighs_each_hit_by_its_overlap() -> None:
    judgement = Judgement({"a": 1, "b": 1}, boxes={"a": SQUARE, "b": SQUARE})
    values = judge(["a", "x", "b"], judgement, ["locscore", "locscore@0.5"], {"a": SQUARE, "b": HALF, "x": SQUARE})
    assert values == pytest.approx({"locscore": (1 + 2 / 3 * 0.5) / 2, "locscore@0.5": (1 + 2 / 3) / 2})


def test_hit_without_a_shown_box_overlaps_by_zero_but_counts_as_a_hit_to_those_below() -> None:
    judgement = Judgement({"a": 1, "b": 1}, boxes={"a": SQUARE, "b": SQUARE})
    assert judge(["a", "b"], judgement, ["locscore"], {"b": SQUARE}) == {"locscore": 1 / 2}


def test_positive_without_a_true_box_leaves_the_ranking_of_locscore_only() -> None:
    judgement = Judgement({"a": 1, "b": 1}, ignored=frozenset({"j"}), boxes={"b": SQUARE})
    ranking = ["j", "a", "x", "b"]
    values = judge(ranking, judgement, ["ap", "locscore"], {"a": SQUARE, "b": SQUARE})
    assert values == {"ap": (1 + 2 / 3) / 2, "locscore": 1 / 2}


def test_no_true_box_at_all_gives_nan_for_locscore_only() -> None:
    values = judge(["a"], Judgement({"a": 1}), ["ap", "locscore", "mlocscore"], {"a": SQUARE})
    assert values["ap"] == 1.0
    assert math.isnan(values["locscore"])
    assert math.isnan(values["mlocscore"])


def test_true_box_of_an_image_that_is_no_positive_changes_nothing() -> None:
    judgement = Judgement({"a": 1}, boxes={"a": SQUARE, "x": SQUARE})
    assert judge(["x", "a"], judgement, ["locscore"], {"a": SQUARE, "x": SQUARE}) == {"locscore": 0.5}


@pytest.mark.parametrize("name", ["locscore", "locscore@0.3", "mlocscore"])
def test_localising_metric_without_boxes_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="need the boxes"):
        judge(["a"], Judgement({"a": 1}, boxes={"a": SQUARE}), [name])


BAD = [
    (5.0, 0.0, 1.0, 9.0),
    (0.0, 5.0, 9.0, 1.0),
    (0.0, 0.0, math.nan, 9.0),
    (-math.inf, 0.0, 1.0, 1.0),
    (0.0, 1.0),
    None,
]


@pytest.mark.parametrize("box", BAD)
def test_bad_shown_box_is_refused_and_named(box: object) -> None:
    with pytest.raises(BoxError, match="shown box of 'x'"):
        judge(["a", "x"], Judgement({"a": 1}, boxes={"a": SQUARE}), ["locscore"], {"a": SQUARE, "x": box})  # type: ignore[dict-item]


@pytest.mark.parametrize("box", BAD)
def test_bad_true_box_is_refused_and_named(box: object) -> None:
    with pytest.raises(BoxError, match="true box of 'a'"):
        judge(["a"], Judgement({"a": 1}, boxes={"a": box}), ["locscore"], {"a": SQUARE})  # type: ignore[dict-item]


def test_overlap_is_intersection_over_union() -> None:
    first = np.array([SQUARE, SQUARE, SQUARE, SQUARE, (3.0, 3.0, 3.0, 3.0), (3.0, 3.0, 3.0, 3.0)])
    second = np.array([SQUARE, HALF, (5.0, 5.0, 15.0, 15.0), (20.0, 20.0, 30.0, 30.0), SQUARE, (3.0, 3.0, 3.0, 3.0)])
    assert iou(first, second) == pytest.approx([1, 1 / 2, 25 / 175, 0, 0, 0])


def test_boxes_that_only_touch_do_not_overlap() -> None:
    assert iou(np.array([SQUARE]), np.array([(10.0, 0.0, 20.0, 10.0)])) == [0.0]


def test_many_queries_are_judged_one_at_a_time() -> None:
    drawn = []

    def rankings():  # type: ignore[no-untyped-def]
        for id in ("a", "b"):
            drawn.append(id)
            yield [id, "c"], Judgement({"a": 1}), None

    answers = judge_all(rankings(), ["ap"])
    assert drawn == []
    assert next(answers) == {"ap": 1.0}
    assert drawn == ["a"]
    assert list(answers) == [{"ap": 0.0}]


def test_names_are_checked_before_the_first_ranking_is_drawn() -> None:
    with pytest.raises(RecipeError):
        judge_all(iter([]), ["recall"])


def test_arguments_are_left_as_they_were() -> None:
    ranking, grades, shown = ["a", "j", "b"], {"a": 1, "b": 1}, {"a": SQUARE}
    judge(ranking, Judgement(grades, frozenset({"j"}), {"a": HALF}), ["ap", "locscore"], shown)
    assert (ranking, grades, shown) == (["a", "j", "b"], {"a": 1, "b": 1}, {"a": SQUARE})


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


def test_a_protocol_leaves_other_fields_and_the_argument_alone() -> None:
    easy = apply_protocol(GRADED, "easy")
    assert (dict(easy.grades), easy.ignored) == ({"e": 2, "f": 2, "n": 0}, {"j", "h"})
    assert GRADED.grades["h"] == 1
    assert apply_protocol(GRADED, None) is GRADED


def test_convention_names_the_protocol_and_the_metric() -> None:
    convention = build("hard/precision_revisited@7").convention
    assert convention.startswith("Hard: grade 1 is a positive")
    assert "first 7" in convention
    assert build("easy/uap").convention.startswith("Easy:")


def test_name_is_split_at_the_slash() -> None:
    assert split_name("easy/ap@20") == ("easy", "ap@20")
    assert split_name("ap") == (None, "ap")


@pytest.mark.parametrize("name", ["tiny/ap", "/ap", "Easy/ap"])
def test_unknown_protocol_lists_the_known_ones(name: str) -> None:
    with pytest.raises(RecipeError) as caught:
        judge_all([], [name])
    assert "easy, medium, hard" in caught.value.expected


@pytest.mark.parametrize("name", ["easy/", "easy/hard/ap", "easy/recall"])
def test_protocol_without_a_proper_metric_is_refused(name: str) -> None:
    with pytest.raises(RecipeError):
        judge_all([], [name])
