"""What the integration tests share: a collection of twelve scenes, and a service of three images."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from support.running import run
from support.scenes import draw_scene, look_at, write_jpeg, write_scenes
from support.uploads import draw_jpeg

import resight
from resight.apps.service.app import create_app
from resight.apps.service.settings import ServiceSettings


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of twelve scenes."""
    folder = tmp_path_factory.mktemp("scenes") / "photos"
    write_scenes(folder, 12)
    return folder


@pytest.fixture(scope="session")
def view(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A slanted photograph of a part of scene 7."""
    return write_jpeg(tmp_path_factory.mktemp("view") / "view.jpg", look_at(draw_scene(7)))


@pytest.fixture(scope="session")
def indexed(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of the scenes that has been searched once, for tests that only read."""
    collection = tmp_path_factory.mktemp("indexed") / "scenes.resight"
    assert run("index", scenes, "--into", collection).code == 0
    assert run("search", collection, scenes / "scene_00.jpg").code == 0
    return collection


@pytest.fixture
def own(indexed: Path, tmp_path: Path) -> Path:
    """A copy of that collection, for tests that change it."""
    return Path(shutil.copytree(indexed, tmp_path / "own.resight"))


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of three images that lie beside it."""
    folder = tmp_path_factory.mktemp("three")
    for seed in range(3):
        (folder / f"own_{seed}.jpg").write_bytes(draw_jpeg(seed))
    collection = resight.open(folder / "photos.resight", "sift")
    collection.add(*folder.glob("*.jpg"))
    collection.search(folder / "own_0.jpg")
    return folder


@pytest.fixture
def folder(three: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(three / "photos.resight", tmp_path / "photos.resight"))


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    app = create_app(ServiceSettings({"photos": folder}, workers=1, max_files=10))
    with TestClient(app, "http://localhost") as made:
        yield made
