"""resight.train.things: folders, pairs and votes; the split."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from resight.errors import ManifestError
from resight.train.things import Thing, find_things, split_things


def make_files(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def name_things(folder: Path, pairs: Path | None = None) -> dict[str, list[str]]:
    return {thing.name: [ref.id for ref in thing.images] for thing in find_things(folder, pairs).known}


def test_a_folder_is_a_thing_and_single_images_are_counted(tmp_path: Path) -> None:
    make_files(tmp_path, ["cup/1.jpg", "cup/2.jpg", "pot/1.jpg", "old/pot/1.jpg", "old/pot/2.jpg"])
    found = find_things(tmp_path)
    assert name_things(tmp_path) == {"cup": ["cup/1.jpg", "cup/2.jpg"], "old/pot": ["old/pot/1.jpg", "old/pot/2.jpg"]}
    assert found.single == 1


def test_pairs_join_over_several_pairs_and_leave_out_what_is_not_the_same(tmp_path: Path) -> None:
    photos = make_files(tmp_path / "photos", [f"{name}.jpg" for name in "abcdef"])
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("a,b,same\nc.jpg,b.jpg,1\nb.jpg,a.jpg,1\nd.jpg,e.jpg,0\n")
    assert name_things(photos, pairs) == {"a.jpg": ["a.jpg", "b.jpg", "c.jpg"]}


def test_of_votes_the_majority_counts_and_a_tie_is_not_the_same(tmp_path: Path) -> None:
    photos = make_files(tmp_path / "photos", [f"{name}.jpg" for name in "abcd"])
    votes = tmp_path / "votes.csv"
    said = [
        ("a", "b", "same"),
        ("a", "b", "same"),
        ("b", "a", "different"),
        ("c", "d", "same"),
        ("c", "d", "different"),
    ]
    rows = [f"{a}.jpg,{b}.jpg,{number},{verdict}" for number, (a, b, verdict) in enumerate(said)]
    votes.write_text("\n".join(["a,b,reviewer,verdict", *rows]))
    assert name_things(photos, votes) == {"a.jpg": ["a.jpg", "b.jpg"]}


def test_a_pair_of_an_image_that_is_not_there_is_refused_with_its_line(tmp_path: Path) -> None:
    photos = make_files(tmp_path / "photos", ["a.jpg"])
    (tmp_path / "pairs.csv").write_text("a,b\na.jpg,z.jpg\n")
    with pytest.raises(ManifestError, match=r"line 2.*'z.jpg'"):
        find_things(photos, tmp_path / "pairs.csv")


def test_no_thing_is_in_two_parts_and_none_is_lost() -> None:
    things = [Thing(str(number), ()) for number in range(20)]
    split = split_things(things, np.random.default_rng(0))
    assert [len(part) for part in (split.train, split.validation, split.test)] == [12, 3, 5]
    assert {*split.train, *split.validation, *split.test} == set(things)
