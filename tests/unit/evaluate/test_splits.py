from pathlib import Path

import pytest

from resight.errors import InputError, ManifestError
from resight.evaluate.strata import check_split, read_split


def test_a_split_is_read_and_other_columns_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "overlap.csv"
    file.write_text("id,class,split,matches\nq1,x,overlapping,3\nq2,,other,0\n")
    assert read_split(file) == {"q1": "overlapping", "q2": "other"}


def test_a_query_in_two_parts_is_refused_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "split.csv"
    file.write_text("id,split\nq1,a\nq1,b\n")
    with pytest.raises(ManifestError, match="line 3"):
        read_split(file)


def test_a_split_of_other_queries_is_refused() -> None:
    check_split({"q1": "a"}, ["q1", "q2"])
    with pytest.raises(InputError, match="none of the queries"):
        check_split({"q9": "a"}, ["q1", "q2"])
