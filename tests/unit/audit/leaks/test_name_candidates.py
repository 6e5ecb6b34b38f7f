from pathlib import Path

import pytest

from resight.audit.leaks.name_candidates import Candidate, find_candidates, read_verdicts, write_candidates
from resight.errors import InputError

NAMES = {
    "1": "Parvis Notre-Dame - place Jean-Paul-II (Paris)",
    "2": "Parish church of St Mary",
    "3": "Hôtel des Invalides",
    "4": "Christ_Church,_Oxford",
    "5": "Oxfordshire Museum",
    "6": "PARIS",
}


def list_found(*texts: str) -> dict[str, str]:
    return {one.name: one.text for one in find_candidates(NAMES, texts)}


def test_a_text_is_found_as_a_whole_word_and_not_within_another() -> None:
    """ "Paris" is not in "Parish", nor "Oxford" in "Oxfordshire"; brackets, commas and underscores end a word."""
    assert list_found("Paris", "oxford") == {"1": "Paris", "4": "oxford", "6": "Paris"}


def test_case_accents_and_blanks_do_not_matter_and_a_text_may_be_several_words() -> None:
    assert list_found("HOTEL  des", "", " ") == {"3": "HOTEL  des"}
    assert list_found("notre-dame") == {"1": "notre-dame"}
    assert list_found("(paris)") == {"1": "(paris)"}


def test_a_candidate_waits_for_one_reviewer_who_confirms() -> None:
    verdicts = {
        "1": (("Kim", "different"), ("Ana", "same")),
        "4": (("Kim", "unsure"),),
        "6": (("Kim", "skip"),),
    }
    found = find_candidates(NAMES, ["paris", "oxford", "invalides"], verdicts, matched={"3"})
    assert {one.name: one.decision for one in found} == {
        "1": "confirmed",
        "3": "confirmed",  # by a vote on a pair
        "4": "refuted",
        "6": "open",
    }


def test_verdicts_survive_a_second_run(tmp_path: Path) -> None:
    file = tmp_path / "candidates.csv"
    assert read_verdicts(file) == {}
    found = (
        Candidate("1", "paris", "open"),
        Candidate("6", "paris", "confirmed", (("Kim", "same"), ("Ana", "unsure"))),
    )
    write_candidates(found, file, NAMES, {"1": 30, "6": 5})
    assert file.read_text(encoding="utf-8").splitlines()[1:] == [
        "1,Parvis Notre-Dame - place Jean-Paul-II (Paris),30,paris,,",
        "6,PARIS,5,paris,Kim,same",
        "6,PARIS,5,paris,Ana,unsure",
    ]
    assert read_verdicts(file) == {"6": (("Kim", "same"), ("Ana", "unsure"))}


@pytest.mark.parametrize(("line", "problem"), [("1,Kim,yes", "not a verdict"), ("1,,same", "reviewer's name")])
def test_a_wrong_decision_is_refused(tmp_path: Path, line: str, problem: str) -> None:
    (tmp_path / "candidates.csv").write_text(f"class,reviewer,verdict\n{line}\n")
    with pytest.raises(InputError, match=problem):
        read_verdicts(tmp_path / "candidates.csv")
