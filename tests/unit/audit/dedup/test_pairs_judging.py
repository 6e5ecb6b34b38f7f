import pytest

from resight.audit.dedup.pairs import classify, judge
from resight.audit.dedup.verify import Finding, Registration

WHOLE = (0.0, 0.0, 1.0, 1.0)


def find(inliers=100, agreement=0.9, share_a=1.0, share_b=1.0, perspective=1.0):
    return Finding(0, 1, False, inliers, 200, perspective, Registration(agreement, share_a, share_b, WHOLE, WHOLE))


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
