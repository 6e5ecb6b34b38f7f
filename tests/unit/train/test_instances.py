"""resight.train.instances: folders, pairs and votes; the split."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from resight.errors import ManifestError
from resight.train.instances import Instance, find_instances, split_instances


def make_files(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def name_instances(folder: Path, pairs: Path | None = None) -> dict[str, list[str]]:
    return {thing.name: [ref.id for ref in thing.images] for thing in find_instances(folder, pairs).known}


def test_a_folder_is_a_thing_and_single_images_are_counted(tmp_path: Path) -> None:
    make_files(tmp_path, ["cup/1.jpg", "cup/2.jpg", "pot/1.jpg", "old/pot/1.jpg", "old/pot/2.jpg"])
    found = find_instances(tmp_path)
    assert name_instances(tmp_path) == {
        "cup": ["cup/1.jpg", "cup/2.jpg"],
        "old/pot": ["old/pot/1.jpg", "old/pot/2.jpg"],
    }
    assert found.single == 1


def test_pairs_join_over_several_pairs_and_leave_out_what_is_not_the_same(tmp_path: Path) -> None:
    photos = make_files(tmp_path / "photos", [f"{name}.jpg" for name in "abcdef"])
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("a,b,same\nc.jpg,b.jpg,1\nb.jpg,a.jpg,1\nd.jpg,e.jpg,0\n")
    assert name_instances(photos, pairs) == {"a.jpg": ["a.jpg", "b.jpg", "c.jpg"]}


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
    assert name_instances(photos, votes) == {"a.jpg": ["a.jpg", "b.jpg"]}


def test_images_that_lie_in_no_folder_are_counted_and_belong_to_no_thing(tmp_path: Path) -> None:
    make_files(tmp_path, ["1.jpg", "2.jpg", "3.jpg", "cup/1.jpg", "cup/2.jpg"])
    assert name_instances(tmp_path) == {"cup": ["cup/1.jpg", "cup/2.jpg"]}
    found = find_instances(tmp_path)
    assert (found.loose, found.single) == (3, 0)


def test_yes_and_no_may_be_written_in_many_ways(tmp_path: Path) -> None:
    photos = make_files(tmp_path / "photos", [f"{name}.jpg" for name in "abcdefghijklmnop"])
    words = ("Yes", "TRUE", " same ", "no", "False", "DIFFERENT", "Unsure", "skip")
    pairs = ("ab", "cd", "ef", "gh", "ij", "kl", "mn", "op")
    rows = [f"{a}.jpg,{b}.jpg,{word}" for (a, b), word in zip(pairs, words, strict=True)]
    (tmp_path / "pairs.csv").write_text("\n".join(["a,b,same", *rows]))
    assert list(name_instances(photos, tmp_path / "pairs.csv")) == ["a.jpg", "c.jpg", "e.jpg"]


@pytest.mark.parametrize("word", ["maybe", ""])
def test_a_word_that_says_neither_is_refused_with_its_line(word: str, tmp_path: Path) -> None:
    photos = make_files(tmp_path / "photos", ["a.jpg", "b.jpg"])
    (tmp_path / "pairs.csv").write_text(f"a,b,same\na.jpg,b.jpg,yes\na.jpg,b.jpg,{word}\n")
    with pytest.raises(ManifestError, match="line 3: the verdict cannot be read") as caught:
        find_instances(photos, tmp_path / "pairs.csv")
    assert caught.value.actual == repr(word)


def test_pairs_that_contradict_each_other_are_told(tmp_path: Path) -> None:
    photos = make_files(tmp_path / "photos", [f"{name}.jpg" for name in "abcd"])
    (tmp_path / "pairs.csv").write_text("a,b,same\na.jpg,b.jpg,1\nb.jpg,c.jpg,1\nc.jpg,a.jpg,0\na.jpg,d.jpg,0\n")
    assert find_instances(photos, tmp_path / "pairs.csv").contradictions == (("a.jpg", "c.jpg"),)


def test_a_pair_of_an_image_that_is_not_there_is_refused_with_its_line(tmp_path: Path) -> None:
    photos = make_files(tmp_path / "photos", ["a.jpg"])
    (tmp_path / "pairs.csv").write_text("a,b\na.jpg,z.jpg\n")
    with pytest.raises(ManifestError, match=r"line 2.*'z.jpg'"):
        find_instances(photos, tmp_path / "pairs.csv")


def test_no_thing_is_in_two_parts_and_none_is_lost() -> None:
    instances = [Instance(str(number), ()) for number in range(20)]
    split = split_instances(instances, np.random.default_rng(0))
    assert [len(part) for part in (split.train, split.validation, split.test)] == [12, 3, 5]
    assert {*split.train, *split.validation, *split.test} == set(instances)
