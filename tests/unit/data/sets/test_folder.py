from pathlib import Path

import pytest

from resight.data import sets
from resight.errors import InputError


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")


def test_load_gives_a_database_and_no_queries(tmp_path):
    touch(tmp_path, "a.jpg", "b.jpg")
    dataset = sets.build("folder").load(tmp_path)
    assert [ref.id for ref in dataset.database] == ["a.jpg", "b.jpg"]
    assert (dataset.queries, dataset.judgements, dataset.name) == ((), {}, tmp_path.name)
    assert dataset.database[0].attributes == {}


def test_labels_are_folders_below_the_root_and_what_lies_in_the_root_has_none(tmp_path):
    touch(tmp_path, "cats/a.jpg", "dogs/big/b.jpg", "cats/big/b.jpg", "c.jpg")
    dataset = sets.build("folder", labels=True).load(tmp_path)
    assert {ref.id: ref.attributes.get("label") for ref in dataset.database} == {
        "c.jpg": None,
        "cats/a.jpg": "cats",
        "cats/big/b.jpg": "cats/big",
        "dogs/big/b.jpg": "dogs/big",
    }


def test_a_folder_without_images_is_refused(tmp_path):
    touch(tmp_path, "notes.txt")
    with pytest.raises(InputError, match="no images"):
        sets.build("folder").load(tmp_path)
