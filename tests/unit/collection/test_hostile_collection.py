"""A collection that a stranger made, local or remote, reads and writes no file outside its own folders."""

import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from support.hostile import HOSTILE_NAMES, hostile_names

import resight
from resight.collection import location, metadata
from resight.errors import CollectionError, RecipeError, ResightError
from resight.files import remote
from resight.files.fingerprint import fingerprint

KEPT = Path(__file__).parents[2] / "support" / "kept_collection.zip"
SECRET = b"the secret of this machine"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small local collection, in a folder of its own, with a secret two folders up."""
    monkeypatch.setenv("RESIGHT_CACHE", str(tmp_path / "cache"))
    with zipfile.ZipFile(KEPT) as archive:
        archive.extractall(tmp_path / "unpacked")
    home = tmp_path / "theirs" / "kept.resight"
    home.parent.mkdir()
    shutil.copytree(tmp_path / "unpacked" / "kept.resight", home)
    shutil.rmtree(tmp_path / "unpacked")
    (tmp_path / "secret.npz").write_bytes(SECRET)
    return home


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "collection.json"
    table = json.loads(path.read_text())
    edit(table)
    path.write_text(json.dumps(table))


def set_codebook(folder: Path, name: str) -> None:
    change(folder, lambda table: table["recipe"]["branches"][0]["descriptor"].update(codebook=name))


def list_tree(root: Path) -> set[str]:
    return {str(path) for path in root.rglob("*") if "cache" not in path.relative_to(root).parts[:1]}


def as_remote(folder: Path) -> Path:
    return Path(f"file://{folder}")


@pytest.mark.parametrize("place", [Path, as_remote], ids=["local", "remote"])
@pytest.mark.parametrize("name", ["files/../../../secret.npz", "files/../../x", "files/", "files/x\0", "files/a/b.npz"])
def test_a_hostile_recipe_reads_and_writes_nothing_outside(
    folder: Path, tmp_path: Path, place: Callable[[Path], Path], name: str
) -> None:
    set_codebook(folder, name)
    before = list_tree(tmp_path)
    with pytest.raises(CollectionError, match="a file of the collection is named"):
        resight.open(place(folder), must_exist=True)
    assert list_tree(tmp_path) == before
    copies = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert not copies


def test_a_collection_in_memory_is_kept_inside_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setenv("RESIGHT_CACHE", str(tmp_path / "cache"))
    files = fsspec.filesystem("memory")
    recipe = {
        "name": "x",
        "branches": [{"encoder": "sift", "descriptor": {"name": "vlad", "codebook": "files/../../x"}}],
    }
    table = {"format": 1, "recipe": recipe, "spaces": ["s"], "created": "2026"}
    files.pipe_file("/theirs/collection.json", json.dumps(table).encode())
    files.pipe_file("/x", b"bytes of a stranger")
    with pytest.raises(CollectionError, match="a file of the collection is named"):
        metadata.read(Path("memory://theirs"))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A remote folder whose every name holds bytes: also those that lead out."""
    monkeypatch.setenv("RESIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(remote, "read_bytes", lambda _: b"bytes of a stranger")
    monkeypatch.setattr(remote, "stat", lambda _: remote.Status(1, 1))
    monkeypatch.setattr(remote, "write_bytes", lambda *_: None)
    yield Path("s3://bucket/theirs")


@given(name=hostile_names())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_name_of_a_remote_file_is_written_outside_the_cache(store: Path, tmp_path: Path, name: str) -> None:
    local = tmp_path / "local"
    local.mkdir(exist_ok=True)
    calls: list[Callable[[], object]] = [
        lambda: location.fetch(store, name),
        lambda: location.fetch(local, name),
        lambda: location.fetch_newest(store, name),
        lambda: location.read_file(local, name),
        lambda: location.write_file(local, name, b"x"),
        lambda: location.exists(local, name),
    ]
    for call in calls:
        try:
            call()
        except (ResightError, OSError):  # a name that is a folder, or lies below a file
            continue
    written = [path.resolve() for path in tmp_path.rglob("*") if path.is_file()]
    home = location.find_local_folder(store)
    assert all(path.is_relative_to(home) or path.is_relative_to(local) for path in written)
    assert {path.name for path in tmp_path.iterdir()} <= {"local", "cache"}


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_fixed_hostile_names_are_refused_everywhere(store: Path, tmp_path: Path, name: str) -> None:
    for call in (location.fetch, location.fetch_newest, location.read_file, location.exists):
        for folder in (store, tmp_path):
            if call is location.fetch_newest or folder is store or name:
                with pytest.raises(CollectionError):
                    call(folder, name)
    with pytest.raises(CollectionError):
        location.write_file(tmp_path, name, b"x")


def test_a_file_must_have_the_content_that_its_name_promises(store: Path) -> None:
    good = f"files/{fingerprint(b'bytes of a stranger', 12)}.npz"
    assert location.fetch(store, good).read_bytes() == b"bytes of a stranger"
    with pytest.raises(CollectionError, match="not the file that its name promises"):
        location.fetch(store, "files/0123456789ab.npz")
    assert not (location.find_local_folder(store) / "files" / "0123456789ab.npz").exists()
    location.fetch(store, good).write_bytes(b"changed later")
    with pytest.raises(CollectionError, match="not the file that its name promises"):
        location.fetch(store, good)


def test_a_local_file_is_a_plain_one_with_its_content(folder: Path, tmp_path: Path) -> None:
    name = f"files/{fingerprint(SECRET, 12)}.npz"
    (folder / "files").mkdir(exist_ok=True)
    (folder / name).symlink_to(tmp_path / "secret.npz")
    set_codebook(folder, name)
    with pytest.raises(CollectionError, match="a link that leads out"):
        resight.open(folder, must_exist=True)
    (folder / name).unlink()
    os.mkfifo(folder / name)  # reading it would wait for ever
    with pytest.raises(CollectionError, match="is not a file"):
        resight.open(folder, must_exist=True)
    (folder / name).unlink()
    (folder / name).write_bytes(b"other")
    with pytest.raises(CollectionError, match="not the file that its name promises"):
        resight.open(folder, must_exist=True)


def test_a_remote_collection_names_no_server_and_no_folder_of_this_machine(folder: Path) -> None:
    change(folder, lambda table: table["recipe"].update(index={"name": "qdrant", "url": "https://thief.example"}))
    with pytest.raises(CollectionError, match="a server of its own choice"):
        metadata.read(as_remote(folder))
    change(folder, lambda table: table["recipe"].update(index={"name": "ray_shards", "cache": "/etc"}))
    assert "cache" not in metadata.read(as_remote(folder)).recipe.index.settings
    assert "cache" in metadata.read(folder).recipe.index.settings


DEEP = 100_000


@pytest.mark.parametrize(
    "text",
    [
        '{"format": 1e400}',
        '{"format": NaN}',
        '{"format": "1"}',
        '{"format": true}',
        '{"format": 1}',
        '{"format": 1, "recipe": [], "spaces": [], "created": ""}',
        '{"format": 1, "recipe": {}, "spaces": [], "created": ""}',
        '{"format": 1, "recipe": {"name": "x", "branches": 3}, "spaces": [], "created": ""}',
        '{"format": 1, "recipe": {"name": "x", "branches": [[]]}, "spaces": [], "created": ""}',
        '{"format": 1, "recipe": "sift", "spaces": [], "created": ""}',
        "[]",
        "null",
        "1",
        "",
        "\xff",
        "[" * DEEP,
        '{"a":' * DEEP,
        '{"format": 1, "recipe": ' + '{"a":' * 900 + "1" + "}" * 900 + "}",
    ],
)
def test_odd_metadata_is_an_error_in_words(folder: Path, text: str) -> None:
    (folder / "collection.json").write_text(text, encoding="latin-1")
    with pytest.raises((CollectionError, RecipeError)):
        resight.open(folder, must_exist=True)


@pytest.mark.parametrize("spaces", [3, "abc", [1], [[]], None])
def test_odd_spaces_are_an_error_in_words(folder: Path, spaces: Any) -> None:
    change(folder, lambda table: table.update(spaces=spaces))
    with pytest.raises(CollectionError):
        resight.open(folder, must_exist=True)
