import math

import pytest

from resight.audit.dedup.pairs import (
    Judged,
    Pair,
    choose,
    classify,
    find_cut,
    judge,
    list_between,
    list_within,
    parse_kinds,
    read_pairs,
    write_pairs,
)
from resight.audit.dedup.verify import Finding, Registration
from resight.errors import InputError, ManifestError

WHOLE = (0.0, 0.0, 1.0, 1.0)


def make_judged(a, b, probability=0.9, agreement=0.9):
    """A near copy, or with little agreement another view."""
    return (a, b), Judged(Finding(a, b, False, 50, 80, 1.0, Registration(agreement, 1, 1, WHOLE, WHOLE)), probability)


def find(inliers=100, agreement=0.9, share_a=1.0, share_b=1.0, perspective=1.0):
    return Finding(0, 1, False, inliers, 200, perspective, Registration(agreement, share_a, share_b, WHOLE, WHOLE))


def ask_nothing(*_):
    return None


def test_the_kept_image_comes_first_and_names_the_group():
    pairs = list_within(["small", "large"], [1, 0], dict([make_judged(0, 1)]), {}, ask_nothing)
    assert pairs == [Pair("large", "small", "near_copy", 0.9, 1, "large")]


def test_exact_copies_join_the_group_of_what_stands_for_them():
    pairs = list_within(["a", "b"], [0, 1], dict([make_judged(0, 1)]), {"b": ("c", "d")}, ask_nothing)
    assert [(pair.a, pair.b, pair.kind, pair.group, pair.keep) for pair in pairs] == [
        ("a", "b", "near_copy", 1, "a"),
        ("b", "c", "copy", 1, "a"),
        ("b", "d", "copy", 1, "a"),
    ]


def test_exact_copies_of_an_image_that_is_alone_are_a_group_of_their_own():
    assert list_within(["a"], [0], {}, {"a": ("b",)}, ask_nothing) == [Pair("a", "b", "copy", 1.0, 1, "a")]


def test_a_pair_across_two_groups_has_no_group():
    # 0 takes 1; 2 takes 3; the link of 1 and 3 joins nothing.
    judged = dict([make_judged(0, 1), make_judged(2, 3), make_judged(1, 3, 0.6)])
    pairs = list_within(["a", "b", "c", "d"], [0, 2, 1, 3], judged, {}, ask_nothing)
    assert {(pair.a, pair.b): pair.group for pair in pairs} == {("a", "b"): 1, ("c", "d"): 2, ("b", "d"): None}


def test_between_collections_the_first_is_kept_and_copies_in_the_second_are_listed_too():
    pairs = list_between((["x"], ["x", "y"]), [0], dict([make_judged(0, 1)]), [(0, 0)], {"y": ("z",)})
    assert pairs == [
        Pair("x", "x", "copy", 1.0, 1, "x"),
        Pair("x", "y", "near_copy", 0.9, 1, "x"),
        Pair("x", "z", "near_copy", 0.9, 1, "x"),
    ]


def test_an_image_of_the_second_is_in_the_group_of_its_likeliest():
    pairs = list_between((["p", "q"], ["x"]), [0, 1], dict([make_judged(0, 0, 0.6), make_judged(1, 0, 0.99)]), [], {})
    assert [(pair.a, pair.group) for pair in pairs if pair.group] == [("q", 1)]
    assert len(pairs) == 2


def test_pairs_come_back_from_the_file_as_they_were(tmp_path):
    pairs = [Pair("a, with comma", "b", "near_copy", 0.75, 3, "b"), Pair("c", "d", "same", 0.5)]
    write_pairs(pairs, tmp_path / "pairs.csv")
    assert read_pairs(tmp_path / "pairs.csv") == pairs


def test_the_columns_are_those_of_the_design(tmp_path):
    write_pairs([Pair("x", "y", "copy", 1.0, 1, "x")], tmp_path / "pairs.csv")
    assert (tmp_path / "pairs.csv").read_text().splitlines() == [
        "a,b,kind,probability,group,keep",
        "x,y,copy,1.000000,1,x",
    ]


def test_a_kind_that_does_not_exist_is_named_with_its_line(tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b,kind\nx,y,similar\n")
    with pytest.raises(ManifestError, match="line 2"):
        read_pairs(tmp_path / "pairs.csv")


def test_kinds_are_read_from_a_list_with_commas():
    assert parse_kinds("copy, same") == {"copy", "same"}


@pytest.mark.parametrize("text", ["", "copy,twin"])
def test_unknown_kinds_are_refused(text):
    with pytest.raises(InputError):
        parse_kinds(text)


def test_a_picture_that_agrees_and_is_not_tilted_is_a_near_copy():
    assert classify(find()) == "near_copy"


def test_a_crop_is_a_near_copy_since_all_of_it_is_covered():
    assert classify(find(share_a=0.3)) == "near_copy"


@pytest.mark.parametrize("change", [{"agreement": 0.3}, {"perspective": 1.4}, {"share_a": 0.5, "share_b": 0.5}])
def test_what_disagrees_or_is_tilted_or_overlaps_in_part_is_another_view(change):
    assert classify(find(**change)) == "same"


def test_inliers_and_agreement_both_speak_for_a_pair():
    chances = [judge(find(inliers, agreement)) for inliers, agreement in ((5, 0.1), (12, 0.2), (60, 0.9))]
    assert chances == sorted(chances)
    assert chances[0] < 0.1
    assert chances[-1] > 0.95


def test_shades_alone_speak_for_a_pair_when_nearly_everything_agrees():
    assert judge(find(inliers=0, agreement=0.98)) > 0.5 > judge(find(inliers=0, agreement=0.4))


def test_only_kinds_and_probabilities_that_are_asked_for_are_chosen():
    judged = dict([make_judged(0, 1, 0.9), make_judged(0, 2, 0.9, agreement=0.2), make_judged(0, 3, 0.4)])
    assert list(choose(judged, ["copy", "near_copy"], 0.5)) == [(0, 1)]
    assert list(choose(judged, ["same"], 0.0)) == [(0, 2)]


def test_the_rate_of_false_alarms_cuts_the_list():
    # 1 - p: 0, 0.1, 0.3; of one pair 0, of two 0.05, of three 0.133.
    chances = [0.7, 1.0, 0.9]
    assert find_cut(chances, 0.05) == 0.9
    assert find_cut(chances, 0.14) == 0.7
    assert find_cut(chances, 0.0) == 1.0


def test_equally_likely_pairs_are_listed_together_or_not_at_all():
    # The first 0.9 alone would do (0.05 of two), both do not (0.067 of three).
    assert find_cut([1.0, 0.9, 0.9], 0.06) == 1.0


def test_nothing_is_listed_where_even_the_likeliest_pair_is_too_doubtful():
    assert find_cut([0.9], 0.05) == math.inf
    assert find_cut([], 0.05) == math.inf
