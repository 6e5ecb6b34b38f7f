import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from resight.audit.review.votes import Verdict, Vote, VoteBook, compute_cohen, compute_fleiss, measure_agreement
from resight.errors import InputError, StorageError

CAST_AND_DIE = """
import os, signal, sys
from pathlib import Path
from resight.audit.review.votes import VoteBook
VoteBook(Path(sys.argv[1])).cast("kim", "a", "b", "same")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_votes_come_back_in_the_order_in_which_they_were_cast(tmp_path: Path) -> None:
    book = VoteBook(tmp_path / "votes.sqlite")
    book.cast("kim", "a", "b", "same")
    book.cast("lee", "a", "b", "different")
    book.cast("kim", "c", "d", "unsure")
    assert [(vote.reviewer, vote.a, vote.verdict) for vote in book.read()] == [
        ("kim", "a", "same"),
        ("lee", "a", "different"),
        ("kim", "c", "unsure"),
    ]
    assert [vote.a for vote in book.read("kim")] == ["a", "c"]


def test_the_last_vote_on_a_pair_counts(tmp_path: Path) -> None:
    book = VoteBook(tmp_path / "votes.sqlite")
    book.cast("kim", "a", "b", "same")
    book.cast("kim", "c", "d", "same")
    book.cast("kim", "a", "b", "different")
    assert [(vote.a, vote.verdict) for vote in book.read()] == [("c", "same"), ("a", "different")]


def test_a_vote_is_taken_back_once_and_one_that_was_cast_anew_stays(tmp_path: Path) -> None:
    book = VoteBook(tmp_path / "votes.sqlite")
    vote = book.cast("kim", "a", "b", "same")
    assert book.remove(vote)
    assert not book.remove(vote)
    book.cast("kim", "a", "b", "same")
    assert not book.remove(vote)
    assert [vote.a for vote in book.read()] == ["a"]


def test_taking_a_vote_back_leaves_the_votes_of_others(tmp_path: Path) -> None:
    book = VoteBook(tmp_path / "votes.sqlite")
    book.cast("lee", "a", "b", "same")
    assert book.remove(book.cast("kim", "a", "b", "same"))
    assert [vote.reviewer for vote in book.read()] == ["lee"]


def test_a_vote_survives_a_killed_process(tmp_path: Path) -> None:
    file = tmp_path / "votes.sqlite"
    died = subprocess.run([sys.executable, "-c", CAST_AND_DIE, str(file)], check=False)
    assert died.returncode == -9
    assert [vote.verdict for vote in VoteBook(file).read()] == ["same"]


def test_votes_are_written_through_to_the_disk(tmp_path: Path) -> None:
    book = VoteBook(tmp_path / "votes.sqlite")
    with book._open() as connection:
        assert connection.execute("pragma journal_mode").fetchone() == ("wal",)
        assert connection.execute("pragma synchronous").fetchone() == (2,)  # FULL


def test_many_threads_may_vote_at_once(tmp_path: Path) -> None:
    book = VoteBook(tmp_path / "votes.sqlite")

    def vote(reviewer: str) -> None:
        for number in range(10):
            book.cast(reviewer, str(number), "b", "same")

    threads = [threading.Thread(target=vote, args=(f"r{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(book.read()) == 40


@pytest.mark.parametrize("name", ["", "  ", "=1+1", "x" * 61, "a\nb"])
def test_names_that_cannot_be_shown_in_a_table_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="reviewer"):
        VoteBook(tmp_path / "votes.sqlite").cast(name, "a", "b", "same")


def test_an_unknown_verdict_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="same, different, unsure, skip"):
        VoteBook(tmp_path / "votes.sqlite").cast("kim", "a", "b", "maybe")


def test_a_file_that_is_no_database_is_a_storage_error(tmp_path: Path) -> None:
    file = tmp_path / "votes.sqlite"
    file.write_bytes(b"not a database" * 100)
    with pytest.raises(StorageError, match="cannot store votes"):
        VoteBook(file).cast("kim", "a", "b", "same")


def test_a_vote_waits_for_another_writer(tmp_path: Path) -> None:
    book = VoteBook(tmp_path / "votes.sqlite")
    book.cast("kim", "a", "b", "same")
    other = sqlite3.connect(book.path, isolation_level=None, check_same_thread=False)
    other.execute("begin immediate")
    threading.Timer(0.3, lambda: other.execute("commit")).start()
    book.cast("kim", "c", "d", "same")
    other.close()
    assert len(book.read()) == 2


def cast(reviewer: str, *verdicts: Verdict) -> list[Vote]:
    """Votes on the pairs (0, x), (1, x), …"""
    return [Vote(reviewer, str(number), "x", verdict) for number, verdict in enumerate(verdicts)]


def test_cohens_kappa_of_a_worked_example() -> None:
    # 50 pairs: both same 20, kim same and lee different 5, the other way round 10, both different 15.
    # p_o = 35/50 = .7; p_e = .5 · .6 + .5 · .4 = .5; κ = .2 / .5 = .4
    kim = ["same"] * 25 + ["different"] * 25
    lee = ["same"] * 20 + ["different"] * 5 + ["same"] * 10 + ["different"] * 15
    assert compute_cohen(kim, lee) == pytest.approx(0.4)


def test_cohens_kappa_is_negative_where_reviewers_contradict_each_other() -> None:
    # p_o = 0; p_e = 2 · .5 · .5 = .5; κ = -1
    assert compute_cohen(["same", "different"], ["different", "same"]) == pytest.approx(-1.0)


def test_fleiss_kappa_of_the_published_example() -> None:
    # Fleiss 1971's layout, 14 raters, 10 subjects, 5 categories; the sums worked by hand give P = .378, P_e = .213.
    table = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    rows = [[str(category) for category, count in enumerate(row) for _ in range(count)] for row in table]
    assert compute_fleiss(rows) == pytest.approx(0.210, abs=5e-4)


def test_fleiss_kappa_of_three_reviewers_by_hand() -> None:
    # Pair 1: s s s → 1; pair 2: s d d → (0 + 2) / 6 = 1/3; P = 2/3. s 4/6, d 2/6: P_e = 5/9. κ = (1/9) / (4/9) = 1/4
    assert compute_fleiss([["s", "s", "s"], ["s", "d", "d"]]) == pytest.approx(0.25)


def test_kappa_is_undefined_where_all_votes_are_alike() -> None:
    assert compute_cohen(["same"] * 3, ["same"] * 3) is None
    assert compute_fleiss([["same", "same"]] * 3) is None


def test_kappa_is_undefined_without_common_pairs() -> None:
    assert compute_cohen([], []) is None
    assert compute_fleiss([]) is None
    assert compute_fleiss([["same"], ["different"]]) is None  # one reviewer agrees with nobody


def test_a_skipped_pair_is_no_vote_and_unsure_is_one() -> None:
    votes = [*cast("kim", "same", "different", "unsure", "same"), *cast("lee", "same", "different", "unsure", "skip")]
    found = measure_agreement(votes)
    assert found.reviewers == {"kim": 4, "lee": 3}
    (two,) = found.two
    assert (two.pairs, two.agreed, two.kappa) == (3, 3, pytest.approx(1.0))


def test_fleiss_counts_the_pairs_that_all_voted_on() -> None:
    votes = [*cast("a", "same", "different", "same"), *cast("b", "same", "different"), *cast("c", "same", "same")]
    found = measure_agreement(votes)
    assert found.pairs == 2
    # rows: s s s and d d s: as in the example by hand, with the letters exchanged on the second.
    assert found.fleiss == pytest.approx(0.25)
    assert [(two.first, two.second) for two in found.two] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_no_votes_give_no_agreement() -> None:
    found = measure_agreement([])
    assert (found.reviewers, found.two, found.pairs, found.fleiss) == ({}, (), 0, None)
