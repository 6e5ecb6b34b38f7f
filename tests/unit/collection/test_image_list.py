"""Images that are listed once, and counted and read as often as needed."""

from pathlib import Path

import pytest
from support.scenes import write_scenes

from resight.collection import image_list
from resight.collection.image_list import ImageList, list_images
from resight.errors import InputError
from resight.types import ImageRef, Skipped


def test_a_list_is_read_again_without_another_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_scenes(tmp_path, 3)
    images = ImageList(tmp_path)
    monkeypatch.delattr(image_list, "walk")
    expected = [ImageRef(f"scene_0{number}.jpg", tmp_path / f"scene_0{number}.jpg") for number in range(3)]
    assert (len(images), list(images), list(images)) == (3, expected, expected)
    assert list_images([images]) == [images]


def test_a_long_list_spills_and_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [ImageRef(str(number), Path(f"{number}.jpg"), attributes={"label": number}) for number in range(3000)]
    monkeypatch.setattr(image_list, "walk", lambda _: iter([*items, Skipped("odd.jpg", "it is not a regular file")]))
    monkeypatch.setattr(image_list, "IN_MEMORY", 1000)
    images = ImageList("photos")
    one, other = iter(images), iter(images)
    assert [next(one), next(other), next(one)] == [items[0], items[0], items[1]]
    assert len(images) == 3001
    assert list(images.refs) == items
    assert list(images)[-1] == Skipped("odd.jpg", "it is not a regular file")


def test_every_field_of_a_reference_survives_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = Path(b"caf\xe9.jpg".decode("utf-8", "surrogateescape"))
    item = ImageRef(
        "a", odd, (1.5, 2.0, 3.0, 4.25), {"label": "é", "n": 3, "x": 0.1, "yes": True}, (5, 6), frozenset({"lat"})
    )
    monkeypatch.setattr(image_list, "walk", lambda _: iter([item]))
    (found,) = ImageList("photos")
    assert found == item
    assert isinstance(found, ImageRef) and found.listed == (5, 6)


def test_ids_of_refs_are_given_and_those_of_files_are_not(tmp_path: Path) -> None:
    write_scenes(tmp_path, 1)
    assert not ImageList(tmp_path).ids_are_given
    assert ImageList(iter([ImageRef("a", tmp_path / "scene_00.jpg")])).ids_are_given


def test_no_images_and_no_refs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no images in"):
        list_images([tmp_path])
    with pytest.raises(InputError, match="an iterable with a PosixPath"):
        ImageList([tmp_path])  # type: ignore[list-item]
