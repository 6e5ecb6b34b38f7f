"""Images that are listed once, and counted and read as often as needed."""

from pathlib import Path

import numpy as np
import pytest
from support.samples import gldv2
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
    monkeypatch.setattr(image_list, "walk", lambda *_: iter([*items, Skipped("odd.jpg", "it is not a regular file")]))
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
    monkeypatch.setattr(image_list, "walk", lambda *_: iter([item]))
    (found,) = ImageList("photos")
    assert found == item
    assert isinstance(found, ImageRef) and found.listed == (5, 6)


def test_ids_of_refs_are_given_and_those_of_files_are_not(tmp_path: Path) -> None:
    write_scenes(tmp_path, 1)
    assert not ImageList(tmp_path).ids_are_given
    assert ImageList(iter([ImageRef("a", tmp_path / "scene_00.jpg")])).ids_are_given


def test_a_data_set_gives_its_database_with_its_own_ids_and_attributes(tmp_path: Path) -> None:
    gldv2.write(tmp_path, np.random.default_rng(0))
    images = ImageList(f"gldv2,which=clean:{tmp_path}")
    assert images.ids_are_given and images.name.startswith("gldv2")
    assert [(ref.id, ref.attributes["label"]) for ref in images.refs] == [
        (id, label) for label, ids in gldv2.TRAIN.items() for id in ids
    ]
    assert len(ImageList(Path(f"gldv2,which=retrieval:{tmp_path}"))) == len(gldv2.INDEX)


def test_files_that_are_no_images_are_counted(tmp_path: Path) -> None:
    write_scenes(tmp_path, 1)
    (tmp_path / "scene_00.jpg").rename(tmp_path / "scene")
    (tmp_path / "README").write_text("about")
    images = ImageList(tmp_path)
    assert [ref.id for ref in images.refs] == ["scene"]
    assert images.not_images == 1
    (tmp_path / "scene").unlink()
    with pytest.raises(InputError) as refused:
        list_images([tmp_path])
    assert refused.value.actual == "1 files that are not images"


def test_no_images_and_no_refs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no images in"):
        list_images([tmp_path])
    with pytest.raises(InputError, match="no images in"):
        list_images([[tmp_path]])
