import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from resight.audit.review.votes import VoteBook
from resight.errors import InputError, StorageError

CAST_AND_DIE = """
import os, signal, sys
from pathlib import Path
from resight.audit.votes import VoteBook
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
    with pytest.raises(StorageError, match="cannot keep votes"):
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
