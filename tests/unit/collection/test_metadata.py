"""A collection that was made under the old names of plug-ins still opens and gives the answers it gave then."""

import errno
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import resight
from resight import plugins
from resight.collection import metadata
from resight.collection.metadata import FUSIONS, INDEXES, REGIONS, RERANKERS, rename_plugins
from resight.collection.upkeep.repair import repair
from resight.collection.upkeep.upgrade import upgrade
from resight.errors import CollectionError, StorageError

KEPT = Path(__file__).parents[2] / "support" / "kept_collection.zip"  # made before the names changed, with its answer


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    with zipfile.ZipFile(KEPT) as archive:
        archive.extractall(tmp_path)
    return tmp_path


def test_a_kept_collection_opens_and_answers_as_before(kept: Path) -> None:
    before = json.loads((kept / "answer.json").read_text(encoding="utf-8"))["hits"]
    collection = resight.open(kept / "kept.resight", must_exist=True)
    found = collection.search(kept / "photos" / "1.png")
    assert [hit.id for hit in found] == [hit["id"] for hit in before]
    for hit, old in zip(found, before, strict=True):
        # Verification has got a second signal since then, which makes the score.
        assert {name: hit.stages[name] for name in old["stages"]} == pytest.approx(old["stages"], rel=1e-5)
        assert hit.score == pytest.approx(np.log1p(hit.stages["significance"]), rel=1e-5)


def test_a_kept_collection_takes_more_images(kept: Path) -> None:
    collection = resight.open(kept / "kept.resight", must_exist=True)
    Image.new("RGB", (64, 48), "teal").save(kept / "photos" / "new.png")
    assert collection.add(kept / "photos" / "new.png").added == 1
    assert collection.add(kept / "photos" / "2.png").moved == 1  # it lies in another folder now
    assert len(collection) == 4


def test_images_survive_when_the_description_of_their_collection_is_lost(
    kept: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, photo = kept / "kept.resight", kept / "photos" / "1.png"
    images = len(resight.open(folder))
    assert upgrade(folder) == (1, 2)
    (folder / "collection.json").unlink()
    assert len(resight.open(folder)) == images and "its copy serves" in caplog.text
    assert resight.open(folder).search(photo)
    repair(folder)
    assert (folder / "collection.json").read_bytes() == (folder / "collection.copy.json").read_bytes()
    for path in folder.iterdir():
        if path.name not in ("images.lance", "files"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(CollectionError, match="holds images, but neither"):
        resight.open(folder)
    assert any((folder / "images.lance" / "data").iterdir())


def test_making_a_collection_can_be_repeated_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "_write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            resight.open(tmp_path / "new.resight", "sift")
    assert (tmp_path / "new.resight" / "commits").is_dir()
    assert len(resight.open(tmp_path / "new.resight", "sift")) == 0


def test_a_lack_of_file_descriptors_is_no_damage(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(metadata.location, "read_file", refuse)
    with pytest.raises(StorageError, match="not damaged"):
        metadata.read(kept / "kept.resight")


def test_names_are_changed_only_where_they_name_a_plug_in() -> None:
    table = {
        "name": "late",
        "fusion": "standout",
        "index": {"name": "ray_shards", "inner": {"name": "inverted", "idf": True}},
        "branches": [
            {"encoder": "sift", "descriptor": {"name": "local"}, "index": "histogram"},
            {"encoder": "a", "descriptor": "pooled", "regions": {"name": "joined", "sources": ["grid", "joined"]}},
        ],
        "rerankers": ["geometry", {"name": "closer", "grow": 0.5}, {"name": "late", "candidates": 3}],
    }
    assert rename_plugins(table) == {
        "name": "late",
        "fusion": "robust_zscore",
        "index": {"name": "ray_shards", "inner": {"name": "asmk_inverted", "idf": True}},
        "branches": [
            {"encoder": "sift", "descriptor": {"name": "local"}, "index": "bow_histogram"},
            {"encoder": "a", "descriptor": "pooled", "regions": {"name": "union", "sources": ["grid", "union"]}},
        ],
        "rerankers": ["geometry", {"name": "patch_refine", "grow": 0.5}, {"name": "late", "candidates": 3}],
    }


@pytest.mark.parametrize(
    ("package", "names"),
    [
        ("resight.index", INDEXES),
        ("resight.search.rerankers", RERANKERS),
        ("resight.search.fusions", FUSIONS),
        ("resight.encode.descriptors.regions", REGIONS),
    ],
)
def test_every_new_name_is_a_plug_in_and_no_old_one_is(package: str, names: dict[str, str]) -> None:
    existing = set(plugins.names(package))
    assert set(names.values()) <= existing
    assert not set(names) & existing
