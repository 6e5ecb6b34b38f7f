import pytest

from resight.audit.dedup.pairs import Pair, parse_kinds, read_pairs, write_pairs
from resight.errors import InputError, ManifestError


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
