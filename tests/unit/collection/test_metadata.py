"""A collection that was made under the old names of plug-ins still opens and gives the answers it gave then."""

import json
import zipfile
from pathlib import Path

import pytest
from PIL import Image

import resight
from resight import plugins
from resight.collection.metadata import FUSIONS, INDEXES, REGIONS, RERANKERS, rename_plugins

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
        assert hit.score == pytest.approx(old["score"], rel=1e-5)
        assert hit.stages == pytest.approx(old["stages"], rel=1e-5)


def test_a_kept_collection_takes_more_images(kept: Path) -> None:
    collection = resight.open(kept / "kept.resight", must_exist=True)
    Image.new("RGB", (64, 48), "teal").save(kept / "photos" / "new.png")
    assert collection.add(kept / "photos" / "new.png").added == 1
    assert collection.add(kept / "photos" / "2.png").moved == 1  # it lies in another folder now
    assert len(collection) == 4


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
