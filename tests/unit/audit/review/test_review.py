import json
from pathlib import Path

import pytest

from resight.audit.dedup.pairs import Pair
from resight.audit.review.review import Review
from resight.errors import InputError, ManifestError
from resight.search.calibration import Calibration

PAIRS = [
    Pair("a1", "b1", "same", 0.99),
    Pair("a2", "b2", "same", 0.55),
    Pair("a3", "b3", "near_copy", 0.20),
    Pair("a4", "b4", "same", 0.45),
]


def make(folder: Path, pairs: list[Pair] = PAIRS, **settings: object) -> Review:
    return Review.create(folder, "Leaks", folder / "eval.resight", folder / "train.resight", pairs, **settings)  # type: ignore[arg-type]


def test_the_least_certain_pair_comes_first_and_ties_come_as_they_stand(tmp_path: Path) -> None:
    review = make(tmp_path)
    seen = []
    while (number := review.next("kim")) is not None:
        seen.append(number)
        review.vote("kim", number, "same")
    assert seen == [2, 4, 3, 1]


def test_a_given_order_is_kept(tmp_path: Path) -> None:
    assert make(tmp_path, order="given").next("kim") == 1


def test_a_review_goes_on_where_it_was_left(tmp_path: Path) -> None:
    make(tmp_path).vote("kim", 2, "same")
    again = Review.open(tmp_path)
    assert again.next("kim") == 4
    assert again.next("lee") == 2  # nobody sees what others have done


def test_undo_brings_the_last_pair_back(tmp_path: Path) -> None:
    review = make(tmp_path)
    review.vote("kim", 2, "same")
    review.vote("kim", 4, "skip")
    assert review.undo("kim") == 4
    assert review.next("kim") == 4
    assert review.undo("kim") == 2
    assert review.undo("kim") is None


def test_undo_that_names_its_pair_may_be_asked_again_and_takes_no_second_vote(tmp_path: Path) -> None:
    review = make(tmp_path)
    for number in (2, 4):
        review.vote("kim", number, "same")
    assert review.last("kim") == 4
    assert [review.undo("kim", 4), review.undo("kim", 4)] == [4, 4]
    assert review.last("kim") == 2
    assert review.progress("kim").voted == 1
    assert review.last("lee") is None


def test_undo_leaves_votes_on_pairs_that_are_not_listed(tmp_path: Path) -> None:
    make(tmp_path).vote("kim", 2, "same")
    make(tmp_path).vote("kim", 1, "same")
    renewed = make(tmp_path, PAIRS[1:])
    assert renewed.undo("kim") == 1  # that is a2, the only listed one with a vote
    assert renewed.undo("kim") is None
    assert make(tmp_path).progress("kim").voted == 1


def test_how_a_review_is_shown_outlives_a_new_list_of_pairs(tmp_path: Path) -> None:
    make(tmp_path, blind=False, order="given")
    renewed = make(tmp_path)
    assert (renewed.blind, renewed.order) == (False, "given")
    assert make(tmp_path, blind=True).blind


def test_a_pair_that_is_listed_twice_is_asked_once(tmp_path: Path) -> None:
    review = make(tmp_path, [PAIRS[0], PAIRS[1], PAIRS[0]], order="given")
    assert review.pairs == (PAIRS[0], PAIRS[1])
    for number in (1, 2):
        assert review.next("kim") == number
        review.vote("kim", number, "same")
    assert review.next("kim") is None


def test_the_calibration_of_the_search_is_kept_until_other_pairs_come(tmp_path: Path) -> None:
    calibration = Calibration(-3.0, {"inliers": 1.5}, 1000, 500)
    assert make(tmp_path, calibration=calibration).calibration == calibration
    assert make(tmp_path).calibration is None


def test_progress_counts_verdicts_and_a_skipped_pair_is_not_voted_on(tmp_path: Path) -> None:
    review = make(tmp_path)
    for number, verdict in ((1, "same"), (2, "unsure"), (3, "skip")):
        review.vote("kim", number, verdict)
    progress = review.progress("kim")
    assert (progress.total, progress.voted, progress.skipped, progress.left) == (4, 2, 1, 1)
    assert progress.counts == {"same": 1, "unsure": 1, "skip": 1}


def test_skipped_pairs_come_again_only_when_asked_for_and_none_other_is_left(tmp_path: Path) -> None:
    review = make(tmp_path)
    for number in (2, 4):
        review.vote("kim", number, "skip")
    assert review.next("kim", skipped=True) == 3
    for number in (3, 1):
        review.vote("kim", number, "same")
    assert review.next("kim") is None
    assert review.next("kim", skipped=True) == 2
    review.vote("kim", 2, "skip")
    assert review.next("kim", skipped=True) == 4  # the one that was skipped longest ago


def test_votes_outlive_a_new_list_of_pairs(tmp_path: Path) -> None:
    make(tmp_path).vote("kim", 2, "same")
    renewed = make(tmp_path, [PAIRS[3], PAIRS[1]])
    assert renewed.next("kim") == 1
    assert renewed.export_csv().splitlines()[1].startswith("2,a2,b2,kim,same,")


def test_votes_on_pairs_that_are_gone_do_not_count(tmp_path: Path) -> None:
    make(tmp_path).vote("kim", 1, "same")
    renewed = make(tmp_path, PAIRS[1:])
    assert renewed.progress("kim").voted == 0
    assert renewed.agreement().reviewers == {}
    assert renewed.undo("kim") is None


def test_export_quotes_what_a_table_needs_quoted(tmp_path: Path) -> None:
    review = make(tmp_path, [Pair('a,"1"', "b", "same", 0.5)])
    review.vote("Kim, L.", 1, "different")
    assert review.export_csv().splitlines()[1].startswith('1,"a,""1""",b,"Kim, L.",different,')


def test_collections_inside_the_folder_move_with_it(tmp_path: Path) -> None:
    make(tmp_path / "one")
    (tmp_path / "one").rename(tmp_path / "two")
    review = Review.open(tmp_path / "two")
    assert review.a == tmp_path / "two" / "eval.resight"


def test_collections_elsewhere_are_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    review = Review.create(Path("review"), "x", Path("a.resight"), Path("a.resight"), PAIRS)
    assert review.a == review.b == tmp_path / "a.resight"


def test_a_pair_that_is_not_there_is_refused_with_the_range(tmp_path: Path) -> None:
    review = make(tmp_path)
    for number in (0, 5):
        with pytest.raises(InputError, match="from 1 to 4"):
            review.vote("kim", number, "same")


@pytest.mark.parametrize("text", ["", "[]", '{"title": "x"}', '{"title": 1, "a": "a", "b": "b"}'])
def test_a_folder_that_is_no_review_is_refused(tmp_path: Path, text: str) -> None:
    make(tmp_path)
    (tmp_path / "review.json").write_text(text)
    with pytest.raises(ManifestError, match="not a review"):
        Review.open(tmp_path)


def test_review_json_may_be_written_by_hand(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "review.json").write_text(json.dumps({"title": "x", "a": "p", "b": "q"}))
    review = Review.open(tmp_path)
    assert (review.order, review.blind) == ("uncertain", True)


def test_exported_votes_hold_no_formula(tmp_path: Path) -> None:
    review = make(tmp_path, [Pair("=1+1", "@b", "same", 0.5)])
    review.vote("kim", 1, "same")
    assert review.export_csv().splitlines()[1].startswith("1,'=1+1,'@b,kim,same,")
