"""What the integration tests share: a collection of twelve scenes."""

import shutil
from pathlib import Path

import pytest
from support.running import run
from support.scenes import draw_scene, look_at, write_jpeg, write_scenes


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
