"""Images that a program gives to `add`: as files, in memory, and what is refused."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from support.download_server import Served, serve_files
from support.scenes import draw_scene, write_scenes

from resight.collection.image_list import ImageList, list_images
from resight.errors import InputError
from resight.types import ImageRef, Skipped

PIXELS = draw_scene(3, 120, 90)


def test_a_list_of_paths_is_listed_like_each_path_alone(tmp_path: Path) -> None:
    first, second = write_scenes(tmp_path / "a", 2)
    write_scenes(tmp_path / "b", 1)
    images = ImageList([first, str(second), tmp_path / "b"])
    assert [ref.id for ref in images.refs] == ["scene_00.jpg", "scene_01.jpg", "scene_00.jpg"]
    assert not images.ids_are_given


def test_a_mapping_gives_the_ids(tmp_path: Path) -> None:
    (path,) = write_scenes(tmp_path, 1)
    images = ImageList({"x": path, 7: str(path), "z": ImageRef("old", path, (0, 0, 9, 9), {"label": "q"})})
    assert list(images.refs) == [
        ImageRef("x", path),
        ImageRef("7", path),
        ImageRef("z", path, (0, 0, 9, 9), {"label": "q"}),
    ]
    assert images.ids_are_given


def test_images_in_memory_are_saved_under_their_ids(tmp_path: Path) -> None:
    jpeg = io.BytesIO()
    Image.fromarray(PIXELS).save(jpeg, "JPEG")
    given = {"a": PIXELS, "b/c": jpeg.getvalue(), "d.jpg": io.BytesIO(jpeg.getvalue()), "e": Image.fromarray(PIXELS)}
    images = list(ImageList(given, tmp_path / "kept").refs)
    names = [ref.path.relative_to(tmp_path / "kept").as_posix() for ref in images]
    assert names == ["a.png", "b/c.jpg", "d.jpg", "e.png"]
    assert [ref.id for ref in images] == list(given)
    assert np.array_equal(np.asarray(Image.open(images[0].path)), PIXELS)
    assert images[1].path.read_bytes() == jpeg.getvalue()
    assert [ref.path for ref in ImageList({"a": PIXELS}, tmp_path / "kept").refs] == [images[0].path]  # once more


def test_images_in_memory_without_ids_are_named_by_their_content(tmp_path: Path) -> None:
    (one, other) = ImageList([PIXELS, PIXELS[::-1]], tmp_path).refs
    assert one.id != other.id and {one.path.name, other.path.name} == {path.name for path in tmp_path.iterdir()}


def test_an_address_is_saved_as_it_is(tmp_path: Path) -> None:
    content = io.BytesIO()
    Image.fromarray(PIXELS).save(content, "PNG")
    with serve_files({"/a.png": Served(content.getvalue())}) as server:
        found = list(ImageList([f"{server.url}/a.png", f"{server.url}/gone.png"], tmp_path))
    assert isinstance(found[0], ImageRef) and found[0].path == tmp_path / "a.png"
    assert (tmp_path / "a.png").read_bytes() == content.getvalue()
    assert isinstance(found[1], Skipped)


def test_one_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    found = list(ImageList({"a": b"no image", "b": PIXELS}, tmp_path))
    assert isinstance(found[0], Skipped) and found[0].path == "a" and found[0].reason == "unsupported format"
    assert isinstance(found[1], ImageRef)


def test_another_file_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"mine")
    with pytest.raises(InputError, match="is another file"):
        ImageList({"a": PIXELS}, tmp_path)
    assert (tmp_path / "a.png").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["../a", "/etc/a", "a\n"])
def test_an_id_cannot_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="is named"):
        ImageList({name: PIXELS}, tmp_path)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (PIXELS, "cannot add a ndarray alone"),
        (b"", "cannot add a bytes alone"),
        (3, "cannot add a int alone"),
        ([PIXELS], "has no file"),
        ({"a": PIXELS}, "has no file"),
        ([ImageRef("a", Path("a.jpg")), Path("b.jpg")], "paths and other images"),
    ],
)
def test_what_cannot_be_added_is_refused_with_an_example(given: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        list_images([given])
    assert caught.value.expected and caught.value.fix
