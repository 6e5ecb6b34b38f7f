"""One search for every form of an image, and many at once."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import resight
from resight.errors import ImageError, InputError


@pytest.fixture(scope="module")
def photos(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> resight.Collection:
    folder = tmp_path_factory.mktemp("forms")
    opened = resight.open(folder / "c.resight", "sift")
    opened.add(scenes)
    return opened


@pytest.mark.parametrize(
    "hold",
    [
        str,
        lambda path: path.read_bytes(),
        lambda path: path.open("rb"),
        Image.open,
        lambda path: np.asarray(Image.open(path)),
        lambda path: resight.load_image(path),
    ],
)
def test_every_form_of_an_image_finds_the_same(photos: resight.Collection, view: Path, hold: Any) -> None:
    expected = photos.search(view, k=3)
    given = hold(view)
    found = photos.search(given, k=3)
    if hasattr(given, "close"):
        given.close()
    assert [hit.id for hit in found] == [hit.id for hit in expected]
    assert found[0].score == pytest.approx(expected[0].score, abs=1e-4)


def test_a_text_is_a_file_or_else_the_id_of_a_stored_image(
    photos: resight.Collection, view: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert photos.search("scene_05.jpg", k=1)[0].id == "scene_05.jpg"
    assert photos.encode_query("scene_05.jpg").id == "scene_05.jpg"
    (tmp_path / "scene_05.jpg").write_bytes(view.read_bytes())
    assert photos.search("scene_05.jpg", k=1)[0].id == "scene_07.jpg"
    with pytest.raises(ImageError) as caught:
        photos.search("scene_5.jpg")
    assert "scene_05.jpg" in caught.value.fix


def test_a_batch_finds_what_single_searches_find(photos: resight.Collection, scenes: Path, view: Path) -> None:
    images = [view, "scene_03.jpg", Image.open(scenes / "scene_04.jpg"), photos.encode_query(view)]
    alone = [photos.search(image, k=4) for image in images]
    seen: list[tuple[int, int]] = []
    assert photos.search(images, k=4, progress=lambda *done: seen.append(done)) == alone
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert photos.search(tuple(images), k=4) == alone
    found = photos.search(iter(images), k=4)
    assert isinstance(found, Iterator)
    assert list(found) == alone
    assert [answer.hits[0].id for answer in photos.ask(images[:2], k=1)] == ["scene_07.jpg", "scene_03.jpg"]
    assert photos.search([]) == []


def test_an_array_of_images_is_a_batch(photos: resight.Collection, view: Path) -> None:
    pixels = np.asarray(Image.open(view))
    found = photos.search(np.stack([pixels, pixels]), k=1)
    assert found == [photos.search(pixels, k=1)] * 2
    assert found[0][0].id == "scene_07.jpg"


def test_an_endless_batch_is_read_only_a_little_ahead(photos: resight.Collection, view: Path) -> None:
    taken = 0

    def endless() -> Iterator[Path]:
        nonlocal taken
        while True:
            taken += 1
            yield view

    answers = photos.search(endless(), k=1)
    assert next(answers)[0].id == "scene_07.jpg"
    assert taken < 100


def test_an_image_that_cannot_be_read_ends_a_batch_or_takes_the_place_of_its_answer(
    photos: resight.Collection, view: Path
) -> None:
    images: list[Any] = [view, b"no image", view, None, "nowhere.jpg"]
    with pytest.raises(ImageError, match="image 2 of the batch: cannot read"):
        photos.search(images)
    found = photos.search(images, k=1, errors="return")
    assert [isinstance(one, resight.ResightError) for one in found] == [False, True, False, True, True]
    assert found[0] == found[2]
    with pytest.raises(InputError, match="errors"):
        photos.search(images, errors="ignore")  # type: ignore[call-overload]


def test_a_box_and_filters_hold_for_every_image_of_a_batch(photos: resight.Collection, scenes: Path) -> None:
    box = (50.0, 50.0, 300.0, 300.0)
    paths = sorted(scenes.iterdir())[:3]
    together = photos.search(paths, k=2, box=box, where=["lat>=1"])
    assert together == [photos.search(path, k=2, box=box, where=["lat>=1"]) for path in paths]
    with pytest.raises(resight.ResightError, match="image 1 of the batch"):
        photos.search([io.BytesIO(paths[0].read_bytes())], box=(0.0, 0.0, 3.0, 3.0))


def test_images_in_memory_are_added_and_found(tmp_path: Path, scenes: Path) -> None:
    photos = resight.open(tmp_path / "c.resight", "sift")
    pictures = {path.stem: np.asarray(Image.open(path)) for path in sorted(scenes.iterdir())[:4]}
    report = photos.add({**pictures, "broken": b"?"}, save_to=tmp_path / "kept")
    assert (report.added, [one.path for one in report.skipped]) == (4, ["broken"])
    assert photos.search(pictures["scene_02"], k=1)[0].path == tmp_path / "kept" / "scene_02.png"
    assert photos.add(pictures, save_to=tmp_path / "kept").unchanged == 4
