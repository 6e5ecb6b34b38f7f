from pathlib import Path

import pytest

from resight.audit.dedup.pairs import Pair
from resight.audit.leaks.find_leaks import decide, read_votes
from resight.audit.review.votes import Verdict, Vote
from resight.errors import InputError

PAIRS = [Pair(name, "x", "same", chance) for name, chance in (("a", 0.99), ("b", 0.95), ("c", 0.5), ("d", 0.1))]


def cast(name: str, *verdicts: Verdict) -> list[Vote]:
    return [Vote(f"reviewer {number}", name, "x", verdict) for number, verdict in enumerate(verdicts)]


def list_names(pairs: tuple[Pair, ...]) -> list[str]:
    return [pair.a for pair in pairs]


def test_without_votes_the_probability_decides() -> None:
    found = decide(PAIRS, [], least=0.95)
    assert list_names(found.by_probability) == ["a", "b"]
    assert list_names(found.open) == ["c", "d"]
    assert found.by_votes == found.refuted == ()


def test_one_reviewer_is_enough_to_confirm() -> None:
    found = decide(PAIRS, cast("d", "different", "same", "unsure"), least=0.95)
    assert list_names(found.by_votes) == ["d"]
    assert list_names(found.confirmed) == ["d", "a", "b"]


def test_a_vote_overrules_the_probability() -> None:
    found = decide(PAIRS, [*cast("a", "different"), *cast("b", "unsure")], least=0.95)
    assert list_names(found.refuted) == ["a", "b"]
    assert found.confirmed == ()


def test_a_skipped_pair_is_as_good_as_unseen() -> None:
    assert list_names(decide(PAIRS, cast("a", "skip"), least=0.98).by_probability) == ["a"]


def test_votes_are_read_from_what_was_exported(tmp_path: Path) -> None:
    file = tmp_path / "votes.csv"
    file.write_text("pair,a,b,reviewer,verdict,at\n1,a,x,Kim,same,2026-01-01\n")
    assert read_votes(file) == [Vote("Kim", "a", "x", "same", "2026-01-01")]


def test_an_unknown_verdict_in_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "votes.csv"
    file.write_text("a,b,reviewer,verdict\na,x,Kim,yes\n")
    with pytest.raises(InputError, match="not a verdict"):
        read_votes(file)


def test_a_doubtful_pair_waits_for_a_vote_however_probable_it_is() -> None:
    doubtful = frozenset({("a", "x"), ("b", "x")})
    found = decide(PAIRS, cast("b", "same"), least=0.95, doubtful=doubtful)
    assert list_names(found.by_votes) == ["b"]
    assert list_names(found.open) == ["a", "c", "d"]
