"""What the tests of the docs share: a folder with photographs, a query and a collection of them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

import resight
from resight.apps.cli.demo import find_photos

SIDE = 480  # pixels of the longer side: enough to recognise, and quick to encode
CHOSEN = (
    "building2-2.png",
    "building2-3.png",
    "campus/P1070491.png",
    "campus/P1070493.png",
    "campus/P1070501.png",
    "campus/P1070503.png",
    "castle.png",
    "eiffel-2.png",
    "monalisa.png",
    "notre-dame.png",
)
QUERY = "eiffel-1.png"  # the same tower as eiffel-2.png, from further away
TRUTH = (
    "path,role,positives",
    "photos/castle.png,database,",
    "photos/eiffel-2.png,database,",
    "query.jpg,query,photos/eiffel-2.png",
)


@pytest.fixture(scope="session")
def photo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photos/ (ten photographs), query.jpg, photos.resight and truth.csv, for tests that only read."""
    pytest.importorskip("mvtbdata", reason="needs the extra demo")
    source, folder = find_photos(), tmp_path_factory.mktemp("docs")
    for name in CHOSEN:
        shrink(source / name, folder / "photos" / Path(name).name)
    shrink(source / QUERY, folder / "query.jpg")
    (folder / "truth.csv").write_text("\n".join(TRUTH), encoding="utf-8")
    photos = resight.open(folder / "photos.resight")
    photos.add(folder / "photos")
    photos.search(folder / "query.jpg")  # writes the index
    return folder


@pytest.fixture
def own_photo_folder(photo_folder: Path, tmp_path: Path) -> Iterator[Path]:
    """The same folder, for a test that changes it: restored afterwards, since a collection knows its images by path."""
    backup = shutil.copytree(photo_folder, tmp_path / "backup")
    yield photo_folder
    shutil.rmtree(photo_folder)
    shutil.copytree(backup, photo_folder)


def shrink(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    with Image.open(source) as image:
        image.thumbnail((SIDE, SIDE))
        image.convert("RGB").save(target)
