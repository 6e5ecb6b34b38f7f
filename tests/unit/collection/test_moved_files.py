"""Photos that were moved keep their images; images of deleted photos are removed on request only."""

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from support.builders import draw_texture
from typer.testing import CliRunner

import resight
from resight.apps.cli import app
from resight.collection import Collection, moved_files
from resight.encode.encoder import Encoder
from resight.errors import InputError
from resight.types import ImageRef

COUNT = 6
run = CliRunner().invoke


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for seed in range(COUNT):
        cv2.imwrite(str(folder / f"{seed}.png"), draw_texture(np.random.default_rng(seed), 96))
    return folder


@pytest.fixture
def collection(tmp_path: Path, photos: Path) -> Collection:
    collection = resight.open(tmp_path / "c.resight", "sift")
    assert collection.add(photos).added == COUNT
    return collection


@pytest.fixture
def no_encoding(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - made before
    def refuse(*_: object) -> None:
        raise AssertionError("an image was encoded again")

    monkeypatch.setattr(Encoder, "encode", refuse)


def read_all(collection: Collection) -> dict[str, np.ndarray]:
    ids = sorted(record.id for record in collection.records())
    return {
        f"{branch} {name}": next(collection.descriptors(branch, [name])).vectors
        for branch in range(len(collection.recipe.branches))
        for name in ids
    }


@pytest.mark.usefixtures("no_encoding")
def test_a_moved_folder_does_not_double_the_collection(collection: Collection, photos: Path, tmp_path: Path) -> None:
    before = read_all(collection)
    photos.rename(tmp_path / "elsewhere")
    for _ in range(2):
        report = collection.add(tmp_path / "elsewhere")
        assert (report.added, report.updated, report.unchanged, len(collection)) == (0, 0, COUNT, COUNT)
    assert {record.path.parent for record in collection.records()} == {tmp_path / "elsewhere"}
    after = read_all(collection)
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.usefixtures("no_encoding")
def test_files_sorted_into_folders_keep_their_ids(collection: Collection, photos: Path, tmp_path: Path) -> None:
    for path in sorted(photos.iterdir()):
        target = tmp_path / "sorted" / f"year {path.stem}" / f"renamed {path.name}"
        target.parent.mkdir(parents=True)
        path.rename(target)
    assert collection.add(tmp_path / "sorted").moved == COUNT
    assert collection.add(tmp_path / "sorted").unchanged == COUNT  # found by path, under the ids that they had
    assert sorted(record.id for record in collection.records()) == [f"{seed}.png" for seed in range(COUNT)]


def test_a_copy_is_another_image(collection: Collection, photos: Path, tmp_path: Path) -> None:
    shutil.copytree(photos, tmp_path / "copy")
    report = collection.add(tmp_path / "copy")
    assert (report.added, report.moved, len(collection)) == (COUNT, 0, 2 * COUNT)


def test_a_new_file_at_a_new_path_is_another_image(collection: Collection, photos: Path) -> None:
    (photos / "0.png").unlink()
    cv2.imwrite(str(photos / "new.png"), draw_texture(np.random.default_rng(100), 96))
    report = collection.add(photos)
    assert (report.added, report.moved, len(collection)) == (1, 0, COUNT + 1)


def test_labels_of_a_manifest_survive_when_its_folder_is_indexed(tmp_path: Path, photos: Path) -> None:
    collection = resight.open(tmp_path / "m.resight", "sift")
    collection.add([ImageRef("named", photos / "0.png", attributes={"label": "gate"})])
    collection.add(photos)
    assert next(collection.records(["named"])).attributes["label"] == "gate"


@pytest.mark.usefixtures("no_encoding")
def test_relink_by_prefix_and_by_content(collection: Collection, photos: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    photos.rename(new)
    (new / "0.png").unlink()
    (new / "1.png").write_bytes(b"other content")
    report = collection.relink(new, old=photos)
    assert (report.moved, report.missing, report.changed) == (COUNT - 2, ("0.png",), ("1.png",))
    (tmp_path / "deep").mkdir()
    (new / "2.png").rename(tmp_path / "deep" / "x.png")
    report = collection.relink(tmp_path / "deep")
    assert report.moved == 1
    assert next(collection.records(["2.png"])).path == tmp_path / "deep" / "x.png"
    with pytest.raises(InputError, match="no image below"):
        collection.relink(new, old=tmp_path / "never")


def test_a_relinked_collection_finds_its_images(collection: Collection, photos: Path, tmp_path: Path) -> None:
    photos.rename(tmp_path / "new")
    collection.relink(tmp_path / "new", old=photos)
    assert collection.search(tmp_path / "new" / "3.png", k=1)[0].id == "3.png"


def test_prune_removes_vanished_images_and_no_more(collection: Collection, photos: Path) -> None:
    (photos / "0.png").unlink()
    assert collection.prune(photos) == ("0.png",)
    assert collection.prune(photos) == ()
    assert len(collection) == COUNT - 1
    for seed in range(1, COUNT - 1):
        (photos / f"{seed}.png").unlink()
    with pytest.raises(InputError, match="not removed unasked"):
        collection.prune(photos)
    assert len(collection) == COUNT - 1
    assert len(collection.prune(photos, most=1)) == COUNT - 2


@pytest.mark.parametrize("state", ["missing", "empty", "remote"])
def test_an_unmounted_disk_prunes_nothing(collection: Collection, photos: Path, state: str) -> None:
    shutil.rmtree(photos)
    if state == "empty":
        photos.mkdir()
    with pytest.raises(InputError, match="cannot prune"):
        collection.prune("s3://bucket/photos" if state == "remote" else photos, most=1)
    assert len(collection) == COUNT


def test_a_large_collection_is_not_searched_unasked(
    collection: Collection, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moved_files, "SEARCHED", 2)
    photos.rename(tmp_path / "new")
    assert collection.add(tmp_path / "new").moved == 0


def test_the_commands(collection: Collection, photos: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    photos.rename(new)
    home = str(collection.path)
    found = run(app, ["relink", home, str(photos), str(new), "--json"])
    assert json.loads(found.stdout)["moved"] == COUNT
    new.rename(photos)
    assert "6 images have new paths" in run(app, ["relink", home, str(photos)]).stdout
    (photos / "0.png").unlink()
    assert "removed 1 images" in run(app, ["index", str(photos), "--into", home, "--prune"]).stdout
    for seed in range(1, COUNT - 1):
        (photos / f"{seed}.png").unlink()
    assert isinstance(run(app, ["index", str(photos), "--into", home, "--prune"]).exception, InputError)
    found = run(app, ["index", str(photos), "--into", home, "--prune", "--yes", "--json"])
    assert len(json.loads(found.stdout)["removed"]) == COUNT - 2
